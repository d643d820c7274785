"""A plan that is broken on purpose is found out; those that are not: tests/tiler/test_schedule.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder
from tiler import Schedule, schedule
from tiler.checking import l2_faults
from tiler.schedule import OperandPlan


@cache
def _passing(l2: int = 4000) -> Schedule:
    """Weights that pass through L2 in pieces."""
    b = Builder()
    first = x = b.tensor(40, 4, 4)
    for _ in range(6):
        x = b.conv(x, 40, 1)
    return schedule(b.graph([first], [x]), KERNELS, TARGET, l1=1500, l2=l2)


def _late(s: Schedule) -> Schedule:
    """The last copy is waited for after all calls."""
    *others, last = s.transfers
    return replace(s, transfers=(*others, replace(last, wait=len(s.calls))))


def _never(s: Schedule) -> Schedule:
    return replace(s, transfers=s.transfers[:-1])


def _early(s: Schedule) -> Schedule:
    """Everything comes at once: what comes later lies over what is still read."""
    return replace(s, transfers=tuple(replace(t, start=0, start_step=0, wait=0, wait_step=0) for t in s.transfers))


def _elsewhere(s: Schedule) -> Schedule:
    """A result is looked for beside its home."""
    at, o = next(
        (i, o) for i, c in enumerate(s.calls) for o in c.operands if o.level == "l2" and o.operand.role == "in"
    )
    moved = tuple(replace(x, far=x.far + 16) if x is o else x for x in s.calls[at].operands)
    return replace(s, calls=(*s.calls[:at], replace(s.calls[at], operands=moved), *s.calls[at + 1 :]))


def _upon_each_other(s: Schedule) -> Schedule:
    return replace(s, residencies=tuple(replace(r, offset=s.residencies[0].offset) for r in s.residencies))


def _low(s: Schedule) -> Schedule:
    return replace(s, peaks={**s.peaks, "l2": s.peaks["l2"] - 1})


def _tight(s: Schedule) -> Schedule:
    """The tables have no room."""
    return replace(s, budgets={**s.budgets, "l2": s.peaks["l2"] + s.tables.bytes - 1})


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (_late, "still on its way"),
        (_never, "is not there"),
        (_early, "is not there"),
        (_elsewhere, "not its home"),
        (_upon_each_other, "over each other"),
        (_low, "beyond the peak"),
        (_tight, "of tables are more than"),
    ],
)
def test_what_is_broken_is_found(broken: Callable[[Schedule], Schedule], said: str) -> None:
    s = _passing()
    assert l2_faults(s) == ()
    assert any(said in fault for fault in l2_faults(broken(s))), l2_faults(broken(s))


def test_the_call_before_copies_the_first_tile_alone() -> None:
    """It was taken to copy two where tiles are double-buffered, the second one's piece then still under way."""
    b = Builder()
    first = x = b.tensor(40, 4, 4)
    for channels in (40, 40, 40, 80, 40):
        x = b.conv(x, channels, 1)
    s = schedule(b.graph([first], [x]), KERNELS, TARGET, l1=6000, l2=9000)
    assert any(o.ahead and len(o.l1) > 1 for c in s.calls for o in c.operands)
    assert l2_faults(s) == ()


def _spilled() -> Schedule:
    """Activations that pass through stages in L2 of several tiles."""
    b = Builder()
    first = x = b.tensor(8, 24, 24)
    for _ in range(3):
        x = b.conv(x, 8, 3)
    return schedule(b.graph([first], [x]), KERNELS, TARGET, l1=2000, l2=6000)


def _one_half(o: OperandPlan) -> OperandPlan:
    """Both halves are one: the next block comes over the one that is read."""
    return replace(o, stage=(o.stage[0], o.stage[0]))


def _short(o: OperandPlan) -> OperandPlan:
    assert o.l2_tile is not None
    return replace(o, l2_tile=replace(o.l2_tile, bytes=o.l2_tile.bytes - 1))


def _long(o: OperandPlan) -> OperandPlan:
    assert o.l2_tile is not None
    return replace(o, l2_tile=replace(o.l2_tile, bytes=4 * o.l2_tile.bytes))


@pytest.mark.parametrize(
    ("broken", "said"),
    [(_one_half, "it is not there"), (_short, "does not hold all"), (_long, "lie over each other")],
)
def test_stages_that_hold_something_else_are_found(broken: Callable[[OperandPlan], OperandPlan], said: str) -> None:
    s = _spilled()
    assert l2_faults(s) == ()
    i, k = next(
        (i, k)
        for i, c in enumerate(s.calls)
        for k, o in enumerate(c.operands)
        if o.operand.role == "in" and len(o.stage) > 1
    )
    operands = list(s.calls[i].operands)
    operands[k] = broken(operands[k])
    calls = [*s.calls[:i], replace(s.calls[i], operands=tuple(operands)), *s.calls[i + 1 :]]
    faults = l2_faults(replace(s, calls=tuple(calls)))
    assert any(said in fault for fault in faults), faults
