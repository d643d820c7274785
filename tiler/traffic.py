"""What copying an operand's tiles takes, for every tiling of a grid: bytes, commands, lines and copies, exact over
all tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiler.grid import DimClasses, Grid, Ints, dim_classes
from tiler.moves import HopLimits
from tiler.schedule import BoundOperand
from tiler.target import Hop


@dataclass(frozen=True, slots=True)
class Commands:
    """Copying boxes once each, summed over all tiles: `commands`, `lines` (runs of commands that have several), as
    the moves say."""

    commands: Ints
    lines: Ints


@dataclass(frozen=True, slots=True)
class OperandTraffic:
    """One operand over a grid, every tile copied once: arrays in grid shape.

    `tile_bytes` is the greatest tile; `copies` counts tiles that are not empty; `far` are the commands between the
    far level and a dense tile under each hop's limits, `dense` those between two dense tiles. `in_place` is where a
    kernel can walk every tile inside the whole tensor, were that in L1.
    """

    tile_bytes: Ints
    bytes: Ints
    copies: Ints
    far: dict[str, Commands]
    dense: dict[str, Commands]
    in_place: NDArray[np.bool_]


def hop_limits(hop: Hop) -> HopLimits:
    """The limits of a hop's commands."""
    return HopLimits(max_bytes=hop.max_bytes, max_pitch=hop.max_stride)


def operand_traffic(grid: Grid, operand: BoundOperand, hops: Sequence[Hop]) -> OperandTraffic:
    """Tables of one operand. The sums run over the distinct tile shapes, so they equal a walk over all tiles."""
    dims = [dim_classes(grid, i, e) for i, e in zip(operand.index, operand.extent, strict=True)]
    most = _product([d.most for d in dims]) * operand.itemsize
    total = _product([(d.count * d.times).sum(-1) for d in dims]) * operand.itemsize
    copies = _product([(d.times * (d.count > 0)).sum(-1) for d in dims])
    pitches = [s * operand.itemsize for s in operand.far_strides]
    far = {h.name: _commands(dims, pitches, operand.itemsize, hop_limits(h)) for h in hops}
    dense = {h.name: _dense_commands(dims, operand.itemsize, hop_limits(h)) for h in hops}
    return OperandTraffic(most, total, copies, far, dense, in_place(dims, operand))


def in_place(dims: Sequence[DimClasses], operand: BoundOperand) -> NDArray[np.bool_]:
    """Where every tile runs through the whole tensor as its kernel walks it: dense, its rows a pitch apart, its lines
    of rows a distance apart, or by strides."""
    if not operand.near:
        return np.zeros((), bool)
    fits, even, step = np.ones((), bool), np.ones((), bool), np.ones((), np.int64)
    told = set[str]()
    for dim, stride, near in reversed(list(zip(dims, operand.far_strides, operand.near, strict=True))):
        if near == "stride":
            continue
        if near == "whole":
            fits = fits & (dim.times.sum(-1) == 1)
        if near in ("pitch", "line") and near not in told:  # rows, lines of rows may lie at any distance
            even, step = np.ones((), bool), np.zeros((), np.int64)
            told.add(near)
        many = dim.most > 1
        fits = fits & (~many | (step == 0) | (even & (stride == step)))
        step = np.where(many, stride * dim.most, step)
        even = even & (~many | _even(dim))
    return np.asarray(fits)


def _even(dim: DimClasses) -> NDArray[np.bool_]:
    """Where all tiles hold as many."""
    least = np.where(dim.times > 0, dim.count, dim.most[..., None]).min(axis=-1)
    return np.asarray(least == dim.most)


def _product(factors: Sequence[Any]) -> Ints:
    result = np.ones((), np.int64)
    for f in factors:
        result = result * f
    return np.asarray(result, np.int64)


def _classes(dims: Sequence[DimClasses]) -> list[list[tuple[Any, Any]]]:
    return [[(d.count[..., k], d.times[..., k]) for k in range(d.count.shape[-1])] for d in dims]


def _commands(dims: Sequence[DimClasses], pitches: Sequence[int], item: int, limits: HopLimits) -> Commands:
    commands, lines = np.zeros((), np.int64), np.zeros((), np.int64)
    for shape in product(*_classes(dims)):
        times = _product([t for _, t in shape])
        c, n = box_commands([count for count, _ in shape], pitches, item, limits)
        commands, lines = commands + c * times, lines + n * times
    return Commands(np.asarray(commands), np.asarray(lines))


def _dense_commands(dims: Sequence[DimClasses], item: int, limits: HopLimits) -> Commands:
    commands = np.zeros((), np.int64)
    for shape in product(*_classes(dims)):
        size = _product([count for count, _ in shape]) * item
        commands = commands + -(-size // limits.max_bytes) * _product([t for _, t in shape])
    return Commands(np.asarray(commands), np.zeros((), np.int64))


def box_commands(extent: Sequence[Any], pitch: Sequence[int], item: int, limits: HopLimits) -> tuple[Any, Any]:
    """`moves.count_commands` over arrays of boxes with the same pitches: (commands, lines of strided commands)."""
    size = _product([np.maximum(e, 0) for e in extent])
    block, block_pitch, rest = _merged(extent, pitch)
    is_run = block_pitch[0] == item
    run = np.maximum(np.where(is_run, block[0], 1), 1) * item  # an empty box counts below
    runs = np.where(is_run, block[1], block[0])
    far_pitch = np.where(is_run, block_pitch[1], block_pitch[0])
    outer = np.where(is_run, rest, rest * block[1])
    strided = (far_pitch >= 0) & (far_pitch <= limits.max_pitch) & (run <= limits.max_bytes)
    step = np.where(strided, np.minimum(limits.max_bytes // run, runs), 1)
    single = outer * runs * -(-run // limits.max_bytes)
    commands = np.where(step == 1, single, outer * -(-runs // np.maximum(step, 1)))
    lines = np.where(step == 1, 0, outer * runs)
    return np.where(size > 0, commands, 0), np.where(size > 0, lines, 0)


def _merged(extent: Sequence[Any], pitch: Sequence[int]) -> tuple[list[Any], list[Any], Any]:
    """The two innermost blocks after merging (extents and pitches, (1, 0) where absent) and the product of the
    others."""
    extents: list[Any] = [1, 1]
    pitches: list[Any] = [0, 0]
    rest: Any = 1
    found: Any = 0  # blocks begun
    reach: Any = 0  # pitch at which the next dim continues the block begun last
    for e, p in zip(reversed(extent), reversed(pitch), strict=True):
        if isinstance(e, np.ndarray) is False and e == 1:
            continue
        real = e != 1
        joins = real & (found > 0) & (reach == p)
        begins = real & ~joins
        found = found + begins
        for i in (0, 1):
            at = found == i + 1
            extents[i] = np.where(at & joins, extents[i] * e, np.where(at & begins, e, extents[i]))
            pitches[i] = np.where(at & begins, p, pitches[i])
        rest = np.where(real & (found > 2), rest * e, rest)
        reach = np.where(begins, e * p, np.where(joins, reach * e, reach))
    return extents, pitches, rest
