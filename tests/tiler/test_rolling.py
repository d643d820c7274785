"""Rolled groups as figures: what hides behind what, and what moving kept rows down less often costs in L1."""

from __future__ import annotations

from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder
from tiler.options import call_options
from tiler.roll_time import Moves, times
from tiler.rolling import RollSteps, roll_plans
from tiler.row_calls import RollCall, roll_call


def _moves(role: str, cycles: list[float]) -> Moves:
    return Moves(role, [10 if c else 0 for c in cycles], cycles, 1, 1, 1)


def test_rows_of_the_next_step_come_behind_the_calls_that_follow() -> None:
    """Of three inputs only the first is waited for; each command's issue is."""
    moves = [[_moves("in", [100.0, 100.0, 100.0])], []]
    assert times(moves, [[50.0] * 3, [200.0] * 3]).exposed == (30 + 100, 0)


def test_what_a_short_step_cannot_hide_is_waited_for() -> None:
    moves = [[_moves("in", [100.0, 100.0])], []]
    assert times(moves, [[50.0] * 2, [40.0] * 2]).exposed == (20 + 100 + 60, 0)


def test_constants_of_later_calls_come_behind_earlier_ones_and_the_last_result_is_waited_for() -> None:
    moves = [[_moves("const", [100.0])], [_moves("const", [100.0]), _moves("out", [70.0])]]
    assert times(moves, [[500.0], [500.0]]).exposed == (10 + 100 - 10, 10 + 10 + 70)


def _chain() -> tuple[RollCall, ...]:
    b = Builder()
    x = b.tensor(8, 24, 8)
    graph = b.graph([x], [b.conv(b.conv(x, 8), 8)])
    calls = [
        next(r for c in o.bound if (r := roll_call(graph, c)) is not None) for o in call_options(graph, KERNELS, TARGET)
    ]
    return tuple(calls)


def test_a_taller_ring_is_moved_down_less_often() -> None:
    """The second convolution reads one row on either side: two rows are kept, 64 bytes each."""
    steps = RollSteps(_chain(), 2, frozenset(), TARGET)
    rings = {every: steps.ring(0, every) for every in (1, 2, 4, steps.count)}
    assert [r.rows for r, _ in rings.values()] == [4, 6, 10, 24]
    assert [moved for _, moved in rings.values()] == [11 * 128, 5 * 128, 2 * 128, 0]


def test_plans_of_one_step_size_trade_l1_for_moving() -> None:
    plans = roll_plans(RollSteps(_chain(), 2, frozenset(), TARGET), 100_000)
    assert len(plans) > 2
    ranked = sorted(plans, key=lambda p: p.l1_bytes)
    cycles = [p.key[0] for p in ranked]
    assert cycles == sorted(cycles, reverse=True)
    least = ranked[0].l1_bytes
    assert roll_plans(RollSteps(_chain(), 2, frozenset(), TARGET), least)
    assert not roll_plans(RollSteps(_chain(), 2, frozenset(), TARGET), least - 1)
