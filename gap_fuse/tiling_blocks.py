"""What a picture of a schedule shows: spans of the engines over time, and blocks of L1 and L2, each of a kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fusion_engine.kernels.descriptor import Kernel
from tiler.schedule import CallPlan, Residency, Schedule

Time = tuple[float, float]

COMPUTING, WAITED, HIDDEN, FETCHED = "computing", "L2<->L1, waited for", "L2<->L1, hidden behind computing", "L3<->L2"
STAYS, RING, TILE, WORK = "stays in L1", "rows in a ring", "buffer of tiles", "scratch and partial sums"
ACTIVATION, CONSTANT, PASSING = "activation", "constant that stays in L2", "constant that passes through"
STAGE = "stage of tiles from or to L3"
_PACKING = re.compile(r"\|.*?(?= and \d+ more$|$)")  # the storage order in a packed constant's name


@dataclass(frozen=True, slots=True)
class Bar:
    """An engine busy from `start` for `cycles`, on a row of the picture; `name` is written in it."""

    row: int
    start: float
    cycles: float
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """`bytes` of a memory at `offset`, from `start` to `end` in cycles."""

    name: str
    offset: int
    bytes: int
    start: float
    end: float
    kind: str


def engine_bars(timetable: Schedule, calls: Sequence[Time], copies: Sequence[tuple[str, float, float]]) -> list[Bar]:
    """The cores on row 2, the copies of L2<->L1 on row 1, of L3<->L2 on row 0. Within a call what is waited for comes
    first: the plan says how much that is, not when."""
    bars: list[Bar] = []
    for plan, (start, end) in zip(timetable.calls, calls, strict=True):
        computing = min(plan.compute_cycles, end - start)
        moved, waited = min(plan.moved_cycles, end - start), end - start - computing
        bars.append(Bar(2, end - computing, computing, COMPUTING, plan.call))
        bars.append(Bar(1, start, min(waited, moved), WAITED))
        bars.append(Bar(1, start + min(waited, moved), max(0.0, moved - waited), HIDDEN))
    bars += [Bar(0, start, end - start, FETCHED, name) for name, start, end in copies]
    return [b for b in bars if b.cycles > 0]


def near_blocks(
    timetable: Schedule, kernels: Mapping[str, Kernel], cores: int, calls: Sequence[Time]
) -> Iterator[Block]:
    """All in L1: what stays, rings of rows, each call's buffers, scratch and partial sums."""
    for s in timetable.stays:
        yield Block(s.root, s.offset, s.bytes, calls[s.first][0], calls[s.last][1], STAYS)
    for roll in timetable.rolls:
        span = calls[roll.first][0], calls[roll.last][1]
        yield from (Block(r.root, r.offset, r.rows * r.row_bytes, *span, RING) for r in roll.rings)
    for plan, span in zip(timetable.calls, calls, strict=True):
        for o in plan.operands:
            yield from (Block(o.operand.name, at, o.span or o.tile_bytes, *span, TILE) for at in o.l1 if not o.joined)
        yield from _working(plan, kernels[plan.kernel], cores, span)


def _working(plan: CallPlan, kernel: Kernel, cores: int, span: Time) -> Iterator[Block]:
    implementation = next(i for i in kernel.implementations if i.name == plan.implementation)
    shared = {s.name for s in implementation.scratch if s.per == "call"}
    for name, (at, size) in plan.scratch.items():
        yield Block(name, at, size * (1 if name in shared else cores), *span, WORK)
    if plan.accumulator is not None:
        yield Block("sums", *plan.accumulator, *span, WORK)


def far_blocks(timetable: Schedule, calls: Sequence[Time]) -> Iterator[Block]:
    """All in L2."""
    constants = {c.name for c in timetable.constants}
    passing = {root for t in timetable.transfers if t.start >= 0 for root in t.roots}
    for r in timetable.residencies:
        kind = PASSING if r.root in passing else CONSTANT if r.root in constants else ACTIVATION
        yield Block(_PACKING.sub("", r.root), r.offset, r.bytes, *_lives(timetable, r, calls), kind)
    for plan, span in zip(timetable.calls, calls, strict=True):
        for o in plan.operands:
            size = o.l2_tile.bytes if o.l2_tile is not None else o.span or o.tile_bytes
            yield from (Block(o.operand.name, at, size, *span, STAGE) for at in o.stage)


def _lives(timetable: Schedule, r: Residency, calls: Sequence[Time]) -> Time:
    """From one step of a call to a step of another."""
    (begin, stop), (start, end) = calls[r.first], calls[r.last]
    first = begin + (stop - begin) * r.first_step / _steps(timetable, r.first)
    last = 1.0 if r.last_step < 0 else (r.last_step + 1) / _steps(timetable, r.last)
    return first, start + (end - start) * min(last, 1.0)


def _steps(timetable: Schedule, call: int) -> int:
    roll = next((r for r in timetable.rolls if r.first == call), None)
    loops = timetable.calls[call].loops
    return roll.steps if roll is not None else loops[0].trips if loops else 1


def spans(document: Mapping[str, Any]) -> tuple[list[Time], list[tuple[str, float, float]]]:
    """When each call runs, and each copy from L3, in cycles."""
    timeline = document["tiling"]["timeline"]
    calls = [(float(a), float(b)) for a, b in timeline["calls"]]
    return calls, [(str(name), float(a), float(b)) for name, a, b in timeline["copies"]]
