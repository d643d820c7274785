"""The choice with first copies that start early against trying everything: every staying tensor, tile size, loop order
and set of double buffers of every call beside every one of the call before, priced by an independent walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiler import walk
from tests.tiler.calls import TARGET
from tests.tiler.test_network_search import Net, _layer, _lives, _options, _sensible, _tilings, nets
from tiler.bound import BoundCall
from tiler.schedule import BoundOperand
from tiler.stay_choice import choose_stays
from tiler.tails import Early

HOP = TARGET.hops["l2_l1"]


@dataclass(frozen=True, slots=True)
class Priced:
    """A tiling: its own cycles, bytes of L1, cycles and bytes of what may start early and the least bytes of a part of
    it, cycles behind which it can start the next call's."""

    cycles: int
    l1: int
    gain: float
    most: int
    least: int
    hide: float


def _priced(call: BoundCall, stays: frozenset[str], able: frozenset[str], room: int) -> list[Priced]:
    """Every tiling of a call that fits, `stays` being in L1 and operands of roots `able` in L2 before it begins."""
    moving = replace(call, operands=tuple(o for o in call.operands if o.root not in stays))
    return [
        _price(moving, loops, double, able)
        for loops in _tilings(moving)
        for double in product([False, True], repeat=len(moving.operands))
        if walk.l1_bytes(moving, loops, double) <= room and _sensible(moving, loops, double)
    ]


def _price(call: BoundCall, loops: walk.Loops, double: Sequence[bool], able: frozenset[str]) -> Priced:
    moved = [_moved(call, o, loops) for o in call.operands]
    firsts = [
        (cycles / copies, walk.align(walk.tile_bytes(call, o, loops)))
        for o, two, (cycles, copies) in zip(call.operands, double, moved, strict=True)
        if o.root in able and o.role != "out" and (copies == 1 or (two and _walked_once(o, loops)))
    ]
    beside = sum(cycles - cycles / copies for two, (cycles, copies) in zip(double, moved, strict=True) if two)
    waits = any(copies > 1 and not two for two, (_, copies) in zip(double, moved, strict=True))
    return Priced(
        walk.total_cycles(call, loops, double, TARGET),
        walk.l1_bytes(call, loops, double),
        sum(gain for gain, _ in firsts),
        sum(size for _, size in firsts),
        min((size for _, size in firsts), default=0),
        0.0 if waits else max(0.0, walk.compute(call, loops, TARGET) - beside),
    )


def _moved(call: BoundCall, o: BoundOperand, loops: walk.Loops) -> tuple[float, int]:
    """Cycles of an operand's copies, those of issuing them aside, and how many they are."""
    size, _, lines, copies = walk.traffic(call, o, loops, HOP)
    return copies * HOP.latency + lines * HOP.per_run + size / HOP.bytes_per_cycle, copies


def _walked_once(o: BoundOperand, loops: walk.Loops) -> bool:
    """Whether its tiles change with the outermost loop alone: the first is copied before all loops, and once."""
    return walk.depth_of(o, loops) == 1


def _early(before: Priced, here: Priced, room: int, rest: tuple[float, float]) -> float:
    """The most that starting early takes off, within what the call before leaves of its room; of a part of the first
    copies no more than its bytes, and what all of them cost beside bytes: `rest`, and cycles a byte."""
    free = room - before.l1
    if not here.gain or free < here.least:
        return 0.0
    fits = here.gain if free >= here.most else min(here.gain, rest[0] + free * rest[1])
    return min(fits, before.hide)


def _rest(call: BoundCall, able: frozenset[str], early: Early) -> tuple[float, float]:
    operands = [o for o in call.operands if o.role != "out" and o.root in able]
    lines = sum(int(np.prod(o.extent[:-1])) for o in operands)
    beside = len(operands) * HOP.latency + lines * HOP.per_run
    return (beside, 1 / HOP.bytes_per_cycle) if early is Early.MOST else (0.0, 0.0)


def _able(net: Net, call: int) -> frozenset[str]:
    """What is in L2 before the call before begins: constants, inputs, results of calls before that."""
    made = {o.root: i for i, c in enumerate(net.calls) for o in c.operands if o.role == "out"}
    used = net.calls[call].operands if call else ()
    return frozenset(o.root for o in used if o.role == "const" or (o.role == "in" and made.get(o.root, -1) < call - 1))


def _least_of_all(net: Net, stays: frozenset[str], rooms: Sequence[int], early: Early) -> float | None:
    """Over every tiling of every call."""
    priced = [_priced(c, stays, _able(net, i), room) for i, (c, room) in enumerate(zip(net.calls, rooms, strict=True))]
    if not all(priced):
        return None
    best = [float(p.cycles) for p in priced[0]]
    for i in range(1, len(priced)):
        rest = _rest(net.calls[i], _able(net, i), early)
        best = [
            min(b + _cycles(x, y, rooms[i - 1], rest) for b, x in zip(best, priced[i - 1], strict=True))
            for y in priced[i]
        ]
    return min(best)


def _cycles(before: Priced, here: Priced, room: int, rest: tuple[float, float]) -> int:
    return ceil(round(here.cycles - _early(before, here, room, rest), 6))


@pytest.mark.parametrize("early", [Early.MOST, Early.ALL])
@settings(max_examples=6)
@given(net=nets(), l1=st.sampled_from([160, 250, 400, 700]))
def test_nothing_over_all_tilings_and_early_starts_is_better(net: Net, l1: int, early: Early) -> None:
    options, lives = _options(net, l1), net.lives[:1]  # one: an input and its result never overlap
    totals = []
    for stays in ((), lives):
        rooms = [l1 - sum(walk.align(v.bytes) for v in stays if v.first <= i <= v.last) for i in range(len(options))]
        least = _least_of_all(net, frozenset(v.root for v in stays), rooms, early)
        totals += [] if least is None else [least]
    found = choose_stays(options, net.lives, lives, l1, [0] * len(options), early=early)
    assert (found is None) == (not totals)
    if found is not None:
        assert found.proven
        assert found.cost[0] == found.least == min(totals)


@pytest.mark.parametrize("early", [Early.MOST, Early.ALL])
def test_first_copies_start_early_in_the_least_of_all(early: Early) -> None:
    """What the drawn networks are compared by is no plain sum of the calls' least cycles."""
    widths, rows = {"t0": 16, "t1": 16, "t2": 16}, 5
    calls = (_layer("t0", "t1", rows, 16, 16), _layer("t1", "t2", rows, 16, 16))
    net = Net(calls, _lives(calls, rows, widths))
    least = _least_of_all(net, frozenset(), (2000, 2000), early)
    plain = sum(min(p.cycles for p in _priced(c, frozenset(), frozenset(), 2000)) for c in calls)
    found = choose_stays(_options(net, 2000), net.lives, (), 2000, [0, 0], early=early)
    assert found is not None
    assert least is not None
    assert found.cost[0] == least < plain
