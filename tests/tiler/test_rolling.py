"""Rolled groups as figures: what hides behind what, and what moving kept rows down less often costs in L1."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.expr import Apply, Num
from fusion_engine.graph import FusedGraph
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder
from tiler.again import remade
from tiler.graph_options import call_options
from tiler.roll_plans import roll_plans
from tiler.roll_time import Moves, times
from tiler.rolling import RollSteps
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
    return _rolling(b.graph([x], [b.conv(b.conv(x, 8), 8)]))


def _rolling(graph: FusedGraph) -> tuple[RollCall, ...]:
    options = call_options(graph, KERNELS, TARGET)
    return tuple(next(r for c in o.bound if (r := roll_call(graph, c)) is not None) for o in options)


def test_a_taller_ring_is_moved_down_less_often() -> None:
    """The second convolution reads one row on either side: two rows are kept, 64 bytes each."""
    steps = RollSteps(_chain(), 2, frozenset(), TARGET)
    rings = {every: steps.ring(0, every) for every in (1, 2, 4, steps.count)}
    assert [r.rows for r, _ in rings.values()] == [4, 6, 10, 24]
    assert [moved for _, moved in rings.values()] == [11 * 128, 5 * 128, 2 * 128, 0]


def test_rows_that_nothing_reads_are_made_all_the_same() -> None:
    """Of 25 rows windows read 23; those that read them are done before the last step, in which none ran again."""
    b = Builder()
    x = b.tensor(8, 25, 8)
    y = b.conv(x, 8)
    p = b.call("maxpool_i8", (("x", y),), b.tensor(8, 7, 2), kernel=(5, 5), strides=(3, 3))
    calls = _rolling(b.graph([x], [b.conv(p, 8)]))
    steps = RollSteps(calls, 3, frozenset(), TARGET, again=frozenset([0]))
    assert steps.made(1).tolist() == [4, 3, 0]
    assert steps.starts[0][-1] + steps.made(0)[-1] == 25
    assert steps.made(0)[-1] > 0


def test_rows_made_again_are_never_moved_and_widen_what_is_read_for_them() -> None:
    """Three rows of the first result a step and one on either side: of its input those and one more on either side."""
    kept = RollSteps(_chain(), 3, frozenset(), TARGET)
    again = replace(kept, again=frozenset([0]))
    assert kept.made(0).tolist() == [4, 3, 3, 3, 3, 3, 3, 2]
    assert again.made(0).tolist() == [4, 5, 5, 5, 5, 5, 5, 4]
    assert again.made(1).tolist() == [3] * 8
    ring, moved = again.ring(0, 1)
    assert (ring.rows, ring.again, moved) == (5, True, 0)
    x, wider = (m[0][0] for m in (kept.moves, again.moves))
    assert x is not None
    assert wider is not None
    assert (x.tile, wider.tile) == (5 * 64, 7 * 64)
    assert wider.total - x.total == 2 * 64 * 7


@st.composite
def _short_chains(draw: st.DrawFn) -> tuple[RollCall, ...]:
    """Three or four calls, some sums with an earlier tensor, each so many times quicker than it says."""
    b = Builder()
    made = [b.tensor(4, 24, 4)]
    for layer in draw(st.lists(st.sampled_from((b.conv, b.depthwise, b.add)), min_size=3, max_size=4)):
        other = {b.conv: 4, b.add: draw(st.sampled_from(made))}.get(layer)
        made.append(layer(made[-1], other) if other is not None else layer(made[-1]))  # type: ignore[operator]
    calls = _rolling(b.graph([made[0]], [made[-1]]))
    rates = draw(st.lists(st.sampled_from((1, 16, 64, 256)), min_size=len(calls), max_size=len(calls)))
    return tuple(
        replace(c, bound=replace(c.bound, cycles=Apply("/", (c.bound.cycles, Num(rate)))), memo={})
        for c, rate in zip(calls, rates, strict=True)
    )


@settings(max_examples=25, deadline=None)
@given(_short_chains(), st.integers(1, 8))
def test_the_tensors_weighed_are_those_that_pay(calls: tuple[RollCall, ...], step: int) -> None:
    """Where copies take no time no other set of tensors made again is quicker in any L1."""
    hop = replace(TARGET.hops["l2_l1"], start=0, latency=0, per_run=0, bytes_per_cycle=1e9)
    steps = RollSteps(calls, step, frozenset(), replace(TARGET, hops={**TARGET.hops, "l2_l1": hop}))
    inner = range(len(calls) - 1)
    every = [replace(steps, again=frozenset(s)) for n in range(len(calls)) for s in combinations(inner, n)]
    all_plans, weighed = (
        [p for s in sets for p in roll_plans(s, 100_000)] for sets in (every, [steps, *remade(steps)])
    )
    for plan in all_plans:
        assert any(p.l1_bytes <= plan.l1_bytes and p.key[0] <= plan.key[0] for p in weighed)


def test_plans_of_one_step_size_trade_l1_for_moving() -> None:
    plans = roll_plans(RollSteps(_chain(), 2, frozenset(), TARGET), 100_000)
    assert len(plans) > 2
    ranked = sorted(plans, key=lambda p: p.l1_bytes)
    cycles = [p.key[0] for p in ranked]
    assert cycles == sorted(cycles, reverse=True)
    least = ranked[0].l1_bytes
    assert roll_plans(RollSteps(_chain(), 2, frozenset(), TARGET), least)
    assert not roll_plans(RollSteps(_chain(), 2, frozenset(), TARGET), least - 1)
