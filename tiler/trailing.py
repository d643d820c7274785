"""A result that trails its input: an input whose last reader a call is and the result it makes, both whole in L1,
may share bytes, as long as every tile writes only what no tile still reads.

Walking the tiles upwards the result may begin some bytes below its input, downwards some bytes above it; how many
follows from the rows that each tile reads and writes. Within one tile no byte is both read and written, so kernels
need not know; but where an implementation says `reuse` (it reads each element before it writes the same one) and
both tensors lie alike, the result may lie exactly on its input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from fusion_engine.expr import bounds
from tiler.bound import BoundCall
from tiler.cost import align16
from tiler.grid import Grid, Ints
from tiler.schedule import BoundOperand

NOTHING = 2**40  # beyond every byte: the first of what a tile does not touch


@dataclass(frozen=True, slots=True)
class Trail:
    """Two operands of a call, by number, that may overlap. Let s be the result's first byte less the input's: right
    are s <= -below where the outermost loop runs upwards, s >= above where it runs downwards, and with `in_place`
    s = 0 whatever the loops. Multiples of 16."""

    input: int
    result: int
    below: int
    above: int
    in_place: bool

    def downwards(self, s: int) -> bool:
        """Whether the outermost loop must run downwards for a distance that is right."""
        upwards = s <= -self.below or (self.in_place and s == 0)
        assert upwards or s >= self.above, "tiles would overwrite what is still read"
        return not upwards


@dataclass(frozen=True)
class Overlap:
    """One pair of operands over the grid of a call: `below` and `above` per axis and tile size along it, that axis'
    loop outermost."""

    input: int
    result: int
    sizes: tuple[int, int]  # of the whole tensors
    below: Mapping[str, Ints]
    above: Mapping[str, Ints]
    in_place: bool

    def saved(self, axis: str) -> Ints:
        """Bytes that the two share at most, per tile size."""
        return shared(self.sizes, self.below[axis], self.above[axis])

    @property
    def saved_in_place(self) -> int:
        return min(self.sizes) if self.in_place else 0


def shared(sizes: tuple[int, int], below: Ints, above: Ints) -> Ints:
    """Bytes that an input and its result of some `sizes` share at the better of two distances, -below and above."""
    return np.maximum(_overlap(sizes, -below), _overlap(sizes, above))


def _overlap(sizes: tuple[int, int], s: Ints) -> Ints:
    ends = np.minimum(sizes[0], s + sizes[1])
    return np.asarray(np.maximum(ends - np.maximum(s, 0), 0))


def whole(o: BoundOperand, size: int) -> bool:
    """Whether an operand is all of a root of `size` bytes."""
    return not o.far_offset and prod(o.extent) * o.itemsize == size and all(s >= 0 for s in o.far_strides)


def overlaps(grid: Grid, inputs: Sequence[int], result: int) -> list[Overlap]:
    """How the result may overlap each of the inputs. Empty for a recurrence, whose loops have a sequence."""
    kept = grid.call.accumulate
    if kept is not None and kept.ordered:
        return []
    return [_pair(grid, i, result) for i in inputs]


def _pair(grid: Grid, number: int, result: int) -> Overlap:
    x, y = grid.call.operands[number], grid.call.operands[result]
    below, above = {}, {}
    for axis in grid.axes:
        found = [_distances(_reach(grid, x, axis, t), _reach(grid, y, axis, t)) for t in grid.tiles_of(axis)]
        below[axis] = align16(np.array([b for b, _ in found], np.int64))
        above[axis] = align16(np.array([a for _, a in found], np.int64))
    sizes = tuple(align16(prod(o.extent) * o.itemsize) for o in (x, y))
    return Overlap(number, result, (sizes[0], sizes[1]), below, above, _alike(grid.call, x, y))


def _alike(call: BoundCall, x: BoundOperand, y: BoundOperand) -> bool:
    """Whether each element of the result may lie where the element of the input lies from which it is made."""
    typed = x.dtype == y.dtype or x.itemsize == 1  # C may take other types for memory of their own
    same = typed and (x.index, x.extent, x.far_strides, x.itemsize) == (y.index, y.extent, y.far_strides, y.itemsize)
    return same and call.accumulate is None and x.name in call.reuse.get(y.name, ())


def _reach(grid: Grid, o: BoundOperand, axis: str, tile: int) -> tuple[Ints, Ints]:
    """First byte and end of what each tile along an axis touches of a whole tensor, all other axes whole."""
    n = grid.extents[axis]
    starts = np.arange(0, n, tile)
    zero = dict.fromkeys(grid.extents, 0) | {axis: starts}
    last = {a: e - 1 for a, e in grid.extents.items()} | {axis: np.minimum(starts + tile, n) - 1}
    first, end = np.zeros(len(starts), np.int64), np.ones(len(starts), np.int64)
    touched = np.ones(len(starts), bool)
    for index, extent, stride in zip(o.index, o.extent, o.far_strides, strict=True):
        low, high = (0, extent - 1) if index is None else bounds(index, zero, last)
        low, high = np.clip(low, 0, extent), np.clip(high, -1, extent - 1)
        touched = touched & (high >= low)
        first, end = first + low * stride, end + high * stride
    return np.where(touched, first * o.itemsize, NOTHING), np.where(touched, end * o.itemsize, -NOTHING)


def _distances(read: tuple[Ints, Ints], written: tuple[Ints, Ints]) -> tuple[int, int]:
    """(below, above) for tiles that read and write these bytes, tile by tile."""
    to_read = np.minimum.accumulate(read[0][::-1])[::-1]  # the first byte that this tile or a later one reads
    was_read = np.maximum.accumulate(read[1])
    return int((written[1] - to_read).max()), int((was_read - written[0]).max())
