"""Whether a schedule holds together in L2: everything has its own bytes while it lives, and each constant is where a
step reads it.

An independent walk: step by step, each byte of L2 knows which byte of L3 it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from tiler.boxes import tile_box
from tiler.checking_stages import stage_steps
from tiler.schedule import CallPlan, OperandPlan, Schedule, Shares, Transfer

Moment = tuple[int, int]  # call, step
END = 1 << 30  # a step behind all of a call's


@dataclass(frozen=True, slots=True)
class _Block:
    """Bytes [at, end) of L2 over the moments first..last (inclusive)."""

    name: str
    at: int
    end: int
    first: Moment
    last: Moment


def l2_faults(schedule: Schedule) -> tuple[str, ...]:
    """What is wrong, a sentence each; nothing for a schedule that the tiler made."""
    blocks = sorted(_blocks(schedule), key=lambda b: (b.at, b.end, b.name))
    return (*_budget(schedule, blocks), *_overlaps(blocks), *_homeless(schedule), *_Walk(schedule).faults())


def _blocks(schedule: Schedule) -> Iterator[_Block]:
    for r in schedule.residencies:
        last = END if r.last_step < 0 else r.last_step
        yield _Block(r.root, r.offset, r.offset + r.bytes, (r.first, r.first_step), (r.last, last))
    for i, call in enumerate(schedule.calls):
        for o in call.operands:
            for at in o.stage:
                size = o.tile_bytes if o.l2_tile is None else o.l2_tile.bytes
                yield _Block(f"{call.call}'s stage of {o.operand.name}", at, at + size, (i, 0), (i, END))


def _budget(schedule: Schedule, blocks: list[_Block]) -> Iterator[str]:
    peak, budget = schedule.peaks["l2"], schedule.budgets["l2"]
    yield from (f"{b.name} lies beyond the peak" for b in blocks if b.at < 0 or b.end > peak)
    if peak + schedule.tables.bytes > budget:
        yield f"{peak} bytes and {schedule.tables.bytes} of tables are more than {budget}"


def _overlaps(blocks: list[_Block]) -> Iterator[str]:
    for i, a in enumerate(blocks):
        for b in blocks[i + 1 :]:
            if b.at >= a.end:
                break
            if a.first <= b.last and b.first <= a.last:
                yield f"{a.name} and {b.name} lie over each other"


def _homeless(schedule: Schedule) -> Iterator[str]:
    """Activations that a call looks for where they do not lie."""
    for i, call in enumerate(schedule.calls):
        for o in (o for o in call.operands if o.level == "l2" and o.operand.role != "const"):
            root = o.operand.root
            if not any(r.root == root and r.offset == o.far and r.first <= i <= r.last for r in schedule.residencies):
                yield f"{call.call} looks for {root} at {o.far}, which is not its home then"


class _Walk:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.cold = {c.name: c.cold for c in schedule.constants}
        self.rolls = {r.first: r for r in schedule.rolls}
        self.held = np.full(max([schedule.peaks["l2"], *(t.l2 + t.bytes for t in schedule.transfers)]), -1)
        self.waiting = list(schedule.transfers)
        self.under_way: list[Transfer] = []

    def faults(self) -> Iterator[str]:
        inside = {i for r in self.schedule.rolls for i in range(r.first + 1, r.last + 1)}
        for i, call in enumerate(self.schedule.calls):
            steps = self.rolls[i].steps if i in self.rolls else call.loops[0].trips if call.loops else 1
            stages = stage_steps(call, self.held)
            for step in range(0 if i in inside else steps):
                self._move((i, step))
                yield from self._read(i, step)
                yield from () if i in self.rolls else next(stages)
        yield from (f"the copy of {t.roots[0]} to {t.l2} is never started" for t in self.waiting)

    def _move(self, now: Moment) -> None:
        """Copies that start overwrite what was there; so do what is written and stages, when they begin to live."""
        for t in [t for t in self.waiting if (t.start, t.start_step) <= now]:
            self.held[t.l2 : t.l2 + t.bytes] = np.arange(t.l3, t.l3 + t.bytes)
            self.waiting.remove(t)
            self.under_way.append(t)
        self.under_way = [t for t in self.under_way if (t.wait, t.wait_step) > now]
        for b in _blocks(self.schedule):
            if b.name not in self.cold and b.first == now:
                self.held[b.at : b.end] = -1

    def _read(self, number: int, step: int) -> Iterator[str]:
        roll = self.rolls.get(number)
        for j in range(number, number + 1 if roll is None else roll.last + 1):
            call = self.schedule.calls[j]
            # what a rolled group reads may be on its way until the group's end
            at = 0 if roll is not None else step
            yield from (fault for o in call.operands for fault in self._missing(call, o, _own(call, o, at), step))
        if step == 0 and roll is None and number + 1 < len(self.schedule.calls):
            following = self.schedule.calls[number + 1]
            early = [o for o in following.operands if o.ahead]
            yield from (fault for o in early for fault in self._missing(following, o, (0,), step))

    def _missing(self, call: CallPlan, o: OperandPlan, iterations: Sequence[int], now: int) -> Iterator[str]:
        """What of the tiles of some iterations of the outermost loop, copied in a step, is not there."""
        if o.operand.role != "const" or o.level != "l2" or _inside(call, o):
            return
        cold = self.cold[o.operand.root]
        for outer, (begin, end) in set(_copied(call, o, iterations)):
            at = (o.places[outer] if o.places else o.far) + begin
            there = np.array_equal(self.held[at : at + end - begin], np.arange(cold + begin, cold + end))
            late = any(t.l2 < at + end - begin and at < t.l2 + t.bytes for t in self.under_way)
            if late or not there:
                yield f"{call.call} reads {o.operand.root} at {at} in step {now}: " + (
                    "it is still on its way" if late and there else "it is not there"
                )


def _own(call: CallPlan, o: OperandPlan, step: int) -> Sequence[int]:
    """The iterations of the outermost loop whose tiles a call itself copies in a step: the next one's where tiles are
    double-buffered; the first one's only where the call before has not."""
    if not o.depth or not call.loops:
        return () if step or o.ahead else (0,)
    doubled = o.depth == 1 and len(o.l1) > 1
    first = () if step or o.ahead else (0,)
    return (*first, step + doubled) if step or doubled else first


def _copied(call: CallPlan, o: OperandPlan, iterations: Sequence[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """(iteration of the outermost loop, first byte and end in the whole) of each tile of these iterations."""
    if not o.depth or not call.loops:
        yield from ((0, _span(call, o, dict.fromkeys(call.axes, 0), dict(call.axes))) for _ in iterations)
        return
    outer, *inner = call.loops[: o.depth]
    for n in iterations:
        if n >= outer.trips:
            continue
        at = outer.last - n * outer.tile if outer.down else n * outer.tile
        for starts in product([at], *(range(0, x.extent, x.tile) for x in inner)):
            begin = dict(zip((x.axis for x in (outer, *inner)), starts, strict=True))
            tile = {x.axis: min(x.tile, x.extent - begin[x.axis]) for x in (outer, *inner)}
            number = at // outer.tile
            yield number, _span(call, o, dict.fromkeys(call.axes, 0) | begin, dict(call.axes) | tile)


def _inside(call: CallPlan, o: OperandPlan) -> bool:
    """Whether its tiles lie in the shares of another, which are looked at whole."""
    return any(x.shares is not None and x.operand.name == o.lead for x in call.operands)


def _span(call: CallPlan, o: OperandPlan, start: dict[str, int], length: dict[str, int]) -> tuple[int, int]:
    """First byte and end of a tile, or of its share, in its operand as it lies in L3."""
    if o.shares is not None:
        return _share_span(call, o.shares, start, length)
    box = tile_box(o.operand, start, length)
    low = sum(r.start * s for r, s in zip(box, o.operand.far_strides, strict=True))
    high = sum((r.start + r.count - 1) * s for r, s in zip(box, o.operand.far_strides, strict=True)) + 1
    offset, item = o.operand.far_offset, o.operand.itemsize
    return (offset + low) * item, (offset + high) * item if all(r.count for r in box) else (offset + low) * item


def _share_span(call: CallPlan, shares: Shares, start: dict[str, int], length: dict[str, int]) -> tuple[int, int]:
    number = 0
    for loop in (x for x in call.loops if x.axis in shares.axes):
        number = number * loop.trips + start[loop.axis] // loop.tile
    last = next(x.operand for x in call.operands if x.operand.name == shares.operands[-1])
    size = shares.offsets[-1] + prod(int(r.count) for r in tile_box(last, start, length)) * last.itemsize
    return number * shares.pitch, number * shares.pitch + size
