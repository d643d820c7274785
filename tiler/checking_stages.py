"""Whether what passes through stages in L2 is there when it is read: each byte of a stage knows which byte of L3 it
holds, block by block and tile by tile, in the order of the emitted loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from tiler.boxes import DimRange, tile_box
from tiler.l2_tiles import dense_pitches, held
from tiler.schedule import BoundOperand, CallPlan, L2Tile, Loop, OperandPlan

Bytes = NDArray[np.int64]


def stage_steps(call: CallPlan, l2: Bytes) -> Iterator[list[str]]:
    """For each iteration of the outermost loop what is wrong in it, a sentence each. `l2`: the byte of L3 that each
    byte of L2 holds, which stages overwrite."""
    walks = [_Walk(call, o, o.l2_tile, l2) for o in call.operands if o.level == "l3" and o.l2_tile is not None]
    orders = [list(enumerate(_starts(loop))) for loop in call.loops]
    for outer in orders[0] if orders else [(0, 0)]:
        faults: list[str] = []
        for turn in product([outer], *orders[1:]) if orders else [()]:
            for w in walks:
                faults += w.turn([n for n, _ in turn], [at for _, at in turn])
        if not orders or outer == orders[0][-1]:
            faults += [fault for w in walks for fault in w.end()]
        yield faults


def _starts(loop: Loop) -> Sequence[int]:
    starts = range(0, loop.extent, loop.tile)
    return starts[::-1] if loop.down else starts


@dataclass
class _Walk:
    """One operand's way."""

    call: CallPlan
    plan: OperandPlan
    tile: L2Tile
    l2: Bytes
    half: int = 0
    drained: int = 0

    def turn(self, numbers: Sequence[int], starts: Sequence[int]) -> Iterator[str]:
        """An iteration of all loops: their numbers, and where their axes stand."""
        loops, tile, depth = self.call.loops, self.tile, self.plan.depth
        at = dict.fromkeys(self.call.axes, 0) | {x.axis: s for x, s in zip(loops, starts, strict=True)}
        output = self.plan.operand.role == "out"
        last = [x.trips - 1 for x in loops]
        begins = not any(numbers[tile.depth :]) and self._first(starts)
        ends = list(numbers[tile.depth :]) == last[tile.depth :] and self._last(starts)
        if begins and not output:
            yield from self._fetch(at, numbers)
        if not output and not any(numbers[depth:]):
            yield from self._load(at)
        if output and list(numbers[depth:]) == last[depth:]:
            self._store(at)
        if ends and output:
            yield from self._drain(at)
        if ends and len(self.plan.stage) > 1:
            self.half ^= 1

    def end(self) -> Iterator[str]:
        size = prod(self.plan.operand.extent)
        if self.plan.operand.role == "out" and self.drained != size:
            yield f"{self.call.call} sends {self.drained} elements of {self.plan.operand.root} to L3, of {size}"

    def _first(self, starts: Sequence[int]) -> bool:
        """Whether a block begins in this iteration of its loop."""
        if not self.tile.depth:
            return True
        loop, at = self.call.loops[self.tile.depth - 1], starts[self.tile.depth - 1]
        step = loop.tile * self.tile.block
        return at == loop.last or (at + loop.tile) % step == 0 if loop.down else at % step == 0

    def _last(self, starts: Sequence[int]) -> bool:
        if not self.tile.depth:
            return True
        loop, at = self.call.loops[self.tile.depth - 1], starts[self.tile.depth - 1]
        step = loop.tile * self.tile.block
        return at % step == 0 if loop.down else at == loop.last or (at + loop.tile) % step == 0

    def _fetch(self, at: Mapping[str, int], numbers: Sequence[int]) -> Iterator[str]:
        """A block comes; into two halves the first one alone, then always the next one."""
        if len(self.plan.stage) == 1:
            yield from self._fill(at, 0)
            return
        loop = self.call.loops[self.tile.depth - 1]
        if not numbers[self.tile.depth - 1]:
            yield from self._fill(at, self.half)
        step = loop.tile * self.tile.block * (-1 if loop.down else 1)
        if 0 <= at[loop.axis] + step < loop.extent:
            yield from self._fill({**at, loop.axis: at[loop.axis] + step}, self.half ^ 1)

    def _fill(self, at: Mapping[str, int], half: int) -> Iterator[str]:
        box = self._block(at)
        if prod(int(r.count) for r in box) * self.plan.operand.itemsize > self.tile.bytes:
            yield f"{self.call.call}'s stage of {self.plan.operand.name} does not hold all that comes"
        else:
            self.l2[_inside(self.plan.operand, box, box, self.plan.stage[half])] = self._far(box)

    def _load(self, at: Mapping[str, int]) -> Iterator[str]:
        box = self._tile(at)
        if not np.array_equal(self.l2[self._near(at, box)], self._far(box)):
            yield f"{self.call.call} reads {self.plan.operand.root} in its stage: it is not there"

    def _store(self, at: Mapping[str, int]) -> None:
        box = self._tile(at)
        self.l2[self._near(at, box)] = self._far(box)

    def _drain(self, at: Mapping[str, int]) -> Iterator[str]:
        box, stage = self._block(at), self.plan.stage[self.half]
        self.drained += prod(int(r.count) for r in box)
        if not np.array_equal(self.l2[_inside(self.plan.operand, box, box, stage)], self._far(box)):
            yield f"{self.call.call} sends {self.plan.operand.root} to L3 before it is in its stage"

    def _tile(self, at: Mapping[str, int]) -> tuple[DimRange, ...]:
        inner = {x.axis: min(x.tile, x.extent - at[x.axis]) for x in self.call.loops[: self.plan.depth]}
        start = {a: at[a] if a in inner else 0 for a in at}
        return tile_box(self.plan.operand, start, dict(self.call.axes) | inner)

    def _block(self, at: Mapping[str, int]) -> tuple[DimRange, ...]:
        found = held(self.call.axes, [(x.axis, x.tile) for x in self.call.loops], self.tile, at)
        return tile_box(self.plan.operand, {a: s for a, (s, _) in found.items()}, {a: n for a, (_, n) in found.items()})

    def _near(self, at: Mapping[str, int], box: Sequence[DimRange]) -> Bytes:
        return _inside(self.plan.operand, self._block(at), box, self.plan.stage[self.half])

    def _far(self, box: Sequence[DimRange]) -> Bytes:
        """The bytes of L3."""
        o = self.plan.operand
        pitches = [s * o.itemsize for s in o.far_strides]
        starts = [int(r.start) for r in box]
        return _addresses(o, box, starts, pitches, self.plan.far + o.far_offset * o.itemsize)


def _inside(o: BoundOperand, block: Sequence[DimRange], box: Sequence[DimRange], stage: int) -> Bytes:
    """The bytes of L2 of a box in a stage that holds `block`, dense."""
    pitches = dense_pitches([int(r.count) for r in block], o.itemsize)
    return _addresses(o, box, [int(r.start - b.start) for r, b in zip(box, block, strict=True)], pitches, stage)


def _addresses(
    o: BoundOperand, box: Sequence[DimRange], starts: Sequence[int], pitches: Sequence[int], base: int
) -> Bytes:
    found = np.array([base], np.int64)
    for r, start, pitch in zip(box, starts, pitches, strict=True):
        found = np.add.outer(found, (start + np.arange(int(r.count))) * pitch).ravel()
    return np.add.outer(found, np.arange(o.itemsize)).ravel()
