"""Tiles in L2 of operands that lie in L3: what a stage may hold, and what moving that takes.

A stage holds what several L1 tiles touch: rows that they share come from L3 once, with one command, and what an inner
loop reads again and again is read from L2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from fusion_engine.expr import Expr, names
from tiler.boxes import dim_range
from tiler.moves import HopLimits, count_commands, merge_box
from tiler.schedule import BoundOperand, L2Tile
from tiler.target import Hop

Loops = Sequence[tuple[str, int]]  # (axis, tile), outermost first


@dataclass(frozen=True, slots=True)
class Leg:
    """One of an operand's ways, between L3 and its stage or between that and L1, over the whole call: `copies` of boxes
    that are not empty, `lines` of strided commands."""

    bytes: int
    commands: int
    lines: int
    copies: int

    def moved(self, hop: Hop) -> float:
        """Cycles of the hop's engine."""
        return self.copies * hop.latency + self.lines * hop.per_run + self.bytes / hop.bytes_per_cycle


@dataclass(frozen=True, slots=True)
class Legs:
    """Both ways under an L2 tile of `most` bytes at most; `following`: the share of the copies between L3 and L2 that
    find another of them before them in their own loop."""

    deep: Leg
    near: Leg
    most: int
    following: float


def shapes(operand: BoundOperand, extents: Mapping[str, int], loops: Loops, depth: int) -> Iterator[tuple[int, int]]:
    """(depth, block) of every L2 tile: of the loops that cut the operand each number of tiles that is the least for so
    many blocks. The first is the L1 tile. What a stage holds of a result is all made."""
    every = _shapes(operand, extents, loops, depth)
    return every if operand.role != "out" else (s for s in every if not _is_torn(operand, loops, s))


def _is_torn(result: BoundOperand, loops: Loops, shape: tuple[int, int]) -> bool:
    """Whether two loops move one dim, as in `y[g*8 + k]`, and a block holds several tiles of one, not all of both."""
    for index in result.index:
        moving = [i for i, (axis, _) in enumerate(loops) if index is not None and axis in names(index)]
        single = all(i < shape[0] - (shape[1] > 1) for i in moving)
        if len(moving) > 1 and not single and not all(i >= shape[0] for i in moving):
            return True
    return False


def _shapes(operand: BoundOperand, extents: Mapping[str, int], loops: Loops, depth: int) -> Iterator[tuple[int, int]]:
    read = axes_of(operand)
    for d in range(depth, 0, -1):
        axis, tile = loops[d - 1]
        if axis in read:
            trips = -(-extents[axis] // tile)
            blocks = sorted({-(-trips // n) for n in range(2, trips + 1)} | {1})
            yield from ((d, b) for b in blocks if b < trips)
    if depth:
        yield 0, 1


def axes_of(operand: BoundOperand) -> frozenset[str]:
    """The axes that move an operand's tiles."""
    return frozenset(n for i in operand.index if i is not None for n in names(i))


def held(extents: Mapping[str, int], loops: Loops, tile: L2Tile, at: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Per axis the start and length of what a stage holds while the tile that begins `at` is in L1."""
    result = {axis: (0, n) for axis, n in extents.items()}
    for i, (axis, size) in enumerate(loops[: tile.depth]):
        step = size * (tile.block if i == tile.depth - 1 else 1)
        start = at[axis] // step * step
        result[axis] = start, min(step, extents[axis] - start)
    return result


def l2_sizes(operand: BoundOperand, extents: Mapping[str, int], loops: Loops, tile: L2Tile) -> dict[str, int]:
    """Per loop that moves the operand, outermost first, how much of its axis an L2 tile holds."""
    found = held(extents, loops, tile, dict.fromkeys(extents, 0))
    return {axis: found[axis][1] for axis, _ in loops if axis in axes_of(operand)}


@lru_cache(maxsize=1 << 14)
def legs(
    operand: BoundOperand,
    axes: tuple[tuple[str, int], ...],
    loops: tuple[tuple[str, int], ...],
    depth: int,
    shape: tuple[int, int],
    hops: tuple[Hop, Hop],
) -> Legs:
    """What moves where the operand, copied to L1 in loop `depth`, has an L2 tile of the shape (depth, block); exact
    over ragged and clipped tiles. `axes` with their extents; `hops`: between L2 and L1, between L3 and L2."""
    extents, read = dict(axes), axes_of(operand)
    dims = [_dim(i, e, *_cut(i, extents, loops, shape)) for i, e in zip(operand.index, operand.extent, strict=True)]
    far = [s * operand.itemsize for s in operand.far_strides]
    deep = _leg([[(n, n, t) for n, t in d.blocks] for d in dims], operand, far, hops[1])
    near = _leg([d.pairs for d in dims], operand, None, hops[0])
    most = prod(max(n for n, _ in d.blocks) for d in dims) * operand.itemsize
    deep = _repeated(deep, extents, [x for x in loops[: shape[0]] if x[0] not in read])
    near = _repeated(near, extents, [x for x in loops[:depth] if x[0] not in read])
    return Legs(deep, near, most, _following(extents, loops, shape))


def _following(extents: Mapping[str, int], loops: Loops, shape: tuple[int, int]) -> float:
    if not shape[0]:
        return 0.0
    axis, size = loops[shape[0] - 1]
    return 1 - 1 / -(-extents[axis] // (size * shape[1]))


@dataclass(frozen=True, slots=True)
class _Dim:
    """Along one dim: (elements of a block, times), (elements of a tile's block, of the tile, times)."""

    blocks: list[tuple[int, int]]
    pairs: list[tuple[int, int, int]]


Cut = tuple[str, int, int, int]  # an axis, its extent, its tile, what of it a block holds


def _cut(
    index: Expr | None, extents: Mapping[str, int], loops: Loops, shape: tuple[int, int]
) -> tuple[tuple[tuple[str, int], ...], tuple[Cut, ...]]:
    """The axes that an index map reads, whole, and those of them that loops cut."""
    read = frozenset() if index is None else names(index)
    steps = [
        size if i < shape[0] - 1 else size * shape[1] if i == shape[0] - 1 else extents[axis]
        for i, (axis, size) in enumerate(loops)
    ]
    cut = tuple((a, extents[a], size, step) for (a, size), step in zip(loops, steps, strict=True) if a in read)
    return tuple((a, n) for a, n in extents.items() if a in read), cut


@lru_cache(maxsize=1 << 14)
def _dim(index: Expr | None, extent: int, whole: tuple[tuple[str, int], ...], cut: tuple[Cut, ...]) -> _Dim:
    tile: dict[str, Any] = {a: (0, n - 1) for a, n in whole}
    block = dict(tile)
    begins = []
    for place, (axis, n, size, step) in enumerate(cut):
        along = [-1 if k == place else 1 for k in range(len(cut))]
        at = np.arange(0, n, size)
        start = at // step * step
        tile[axis] = at.reshape(along), (np.minimum(at + size, n) - 1).reshape(along)
        block[axis] = start.reshape(along), (np.minimum(start + step, n) - 1).reshape(along)
        begins.append(np.flatnonzero(at == start))
    trips = [-(-n // size) for _, n, size, _ in cut]
    inner, outer = (np.broadcast_to(_count(index, extent, r), trips) for r in (tile, block))
    pairs, times = np.unique(np.stack([outer.ravel(), inner.ravel()]), axis=1, return_counts=True)
    blocks, often = np.unique(outer[np.ix_(*begins)] if cut else outer, return_counts=True)
    return _Dim(
        list(zip(blocks.tolist(), often.tolist(), strict=True)),
        list(zip(*pairs.tolist(), times.tolist(), strict=True)),
    )


def _count(index: Expr | None, extent: int, ranges: Mapping[str, tuple[Any, Any]]) -> Any:
    first, last = ({a: r[k] for a, r in ranges.items()} for k in (0, 1))
    return dim_range(index, extent, first, last).count


def _leg(dims: Sequence[Sequence[tuple[int, int, int]]], operand: BoundOperand, far: list[int] | None, hop: Hop) -> Leg:
    """Every box once: of (elements around it, its own, times) per dim. Without pitches of its `far` side it lies in
    what is around it, which is dense."""
    limits = HopLimits(hop.max_bytes, hop.max_stride)
    total = [0, 0, 0, 0]
    for boxes in product(*dims):
        extent, times = [n for _, n, _ in boxes], prod(t for _, _, t in boxes)
        pitch = far if far is not None else dense_pitches([n for n, _, _ in boxes], operand.itemsize)
        merged = merge_box(extent, pitch, operand.itemsize)
        if merged is None:
            continue
        commands = count_commands(merged, limits)
        strided = 0 <= merged.pitch <= limits.max_pitch and 2 * merged.run <= limits.max_bytes and merged.runs > 1
        figures = prod(extent) * operand.itemsize, commands, merged.outer * merged.runs if strided else 0, 1
        total = [a + b * times for a, b in zip(total, figures, strict=True)]
    return Leg(*total)


def dense_pitches(extent: Sequence[int], item: int) -> list[int]:
    """Bytes from element to element along each dim of a dense box."""
    return [item * prod(extent[d + 1 :]) for d in range(len(extent))]


def _repeated(leg: Leg, extents: Mapping[str, int], loops: Loops) -> Leg:
    times = prod(-(-extents[axis] // size) for axis, size in loops)
    return Leg(leg.bytes * times, leg.commands * times, leg.lines * times, leg.copies * times)
