"""All tilings of a call as one grid: per splittable axis the tile sizes at breakpoints, per dim what its tiles hold.

Arrays are indexed by grid position, one array axis per splittable axis of the call, extent 1 where a quantity does
not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusion_engine.expr import Expr, Name, bounds, evaluate, names
from tiler.bound import BoundAxis, BoundCall
from tiler.boxes import dim_range
from tiler.schedule import BoundOperand

Ints = NDArray[np.int64]

GRID_LIMIT = 60_000  # grid positions; above it the axes with most candidates are thinned


@dataclass(frozen=True, slots=True)
class DimClasses:
    """The distinct counts of one dim over all tile positions, in grid shape + (classes,): `times` tiles have `count`
    elements."""

    count: Ints
    times: Ints

    @property
    def most(self) -> Ints:
        """The greatest count at each grid position."""
        return np.asarray(np.where(self.times > 0, self.count, 0).max(axis=-1), np.int64)


@dataclass(frozen=True)
class Grid:
    """The tilings of one call. `tiles[a]` are the candidates of splittable axis a, ascending; `thinned` says some
    were left out."""

    call: BoundCall
    axes: tuple[str, ...]
    extents: Mapping[str, int]
    tiles: tuple[Ints, ...]
    thinned: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(t) for t in self.tiles)

    def along(self, axis: str, values: Ints) -> Ints:
        """`values`, one per candidate of `axis`, shaped to broadcast over the grid."""
        position = self.axes.index(axis)
        return values.reshape([-1 if i == position else 1 for i in range(len(self.axes))])

    def tile(self, axis: str) -> Any:
        """Tile size along an axis: the candidates in grid shape, or the whole extent."""
        return self.along(axis, self.tiles[self.axes.index(axis)]) if axis in self.axes else self.extents[axis]

    def tiles_of(self, axis: str) -> list[int]:
        """The candidates of a splittable axis, ascending."""
        return [int(t) for t in self.tiles[self.axes.index(axis)]]

    def trips(self, axis: str) -> Ints:
        """How many tiles along a splittable axis, in grid shape."""
        return -(-self.extents[axis] // self.along(axis, self.tiles[self.axes.index(axis)]))


def breakpoints(axis: BoundAxis) -> Ints:
    """Tile sizes worth trying: the least for each number of tiles, rounded up to the step, within the limit;
    ascending."""
    n = axis.extent
    if axis.whole or n == 1:
        return np.array([n], dtype=np.int64)
    root = int(np.sqrt(n)) + 1
    few = -(-n // np.arange(1, root + 1, dtype=np.int64))
    sizes = np.unique(np.concatenate([few, np.arange(1, root + 1, dtype=np.int64)]))
    counts = -(-n // sizes)
    least = -(-n // counts)
    rounded = np.minimum(-(-least // axis.step) * axis.step, n)
    limit = n if axis.limit is None else min(axis.limit, n)
    kept = np.unique(np.minimum(rounded, limit))
    _, least_of_count = np.unique(-(-n // kept), return_index=True)
    return np.sort(kept[least_of_count]).astype(np.int64)


def make_grid(call: BoundCall, limit: int = GRID_LIMIT) -> Grid:
    """The grid of a call's tilings. Axes that cannot be split are left out of it."""
    candidates = {a.name: breakpoints(a) for a in call.axes}
    axes = tuple(a.name for a in call.axes if len(candidates[a.name]) > 1 or candidates[a.name][0] < a.extent)
    tiles = [candidates[a] for a in axes]
    thinned = False
    while int(np.prod([len(t) for t in tiles], dtype=np.float64)) > limit:
        widest = max(range(len(tiles)), key=lambda i: len(tiles[i]))
        tiles[widest] = _thin(tiles[widest])
        thinned = True
    return Grid(call, axes, call.extents, tuple(tiles), thinned)


def _thin(tiles: Ints) -> Ints:
    """Every second candidate, the smallest and the greatest kept."""
    return np.unique(np.concatenate([tiles[:1], tiles[-1::-2]]))


def grid_axes_of(grid: Grid, index: Expr | None) -> tuple[str, ...]:
    """The splittable axes that an index map reads, in grid order."""
    read = frozenset() if index is None else names(index)
    return tuple(a for a in grid.axes if a in read)


def operand_axes(grid: Grid, operand: BoundOperand) -> frozenset[str]:
    """The splittable axes that an operand's box depends on."""
    return frozenset(a for i in operand.index for a in grid_axes_of(grid, i))


def dim_classes(grid: Grid, index: Expr | None, extent: int) -> DimClasses:
    """What the tiles hold along a dim with this index map."""
    axes = grid_axes_of(grid, index)
    flat = (1,) * len(grid.axes)
    if not axes:
        zero, last = _whole_ranges(grid)
        count = dim_range(index, extent, zero, last).count
        return DimClasses(np.full((*flat, 1), count, np.int64), np.ones((*flat, 1), np.int64))
    if isinstance(index, Name) and grid.extents[index.name] <= extent:  # a frame behind alone: an axis may go on
        return _plain_classes(grid, index.name)
    if len(axes) == 1:
        return _axis_classes(grid, index, extent, axes[0])
    return _joint_classes(grid, index, extent, axes)


def _whole_ranges(grid: Grid) -> tuple[dict[str, Any], dict[str, Any]]:
    return dict.fromkeys(grid.extents, 0), {a: n - 1 for a, n in grid.extents.items()}


def axis_classes(grid: Grid, axis: str) -> DimClasses:
    """Tile lengths along an axis: all but the last, and the last."""
    if axis in grid.axes:
        return _plain_classes(grid, axis)
    flat = (1,) * len(grid.axes)
    return DimClasses(np.full((*flat, 1), grid.extents[axis], np.int64), np.ones((*flat, 1), np.int64))


def _plain_classes(grid: Grid, axis: str) -> DimClasses:
    tile, trips = grid.tile(axis), grid.trips(axis)
    tail = grid.extents[axis] - (trips - 1) * tile
    return DimClasses(np.stack([tile, tail], -1), np.stack([trips - 1, np.ones_like(trips)], -1))


def _axis_classes(grid: Grid, index: Expr | None, extent: int, axis: str) -> DimClasses:
    """One axis: the map's least and greatest coordinate at each position once, then per tile size the range of each
    tile."""
    n = grid.extents[axis]
    zero, last = _whole_ranges(grid)
    points = np.arange(n, dtype=np.int64)
    assert index is not None
    low, high = bounds(index, {**zero, axis: points}, {**last, axis: points})
    low, high = np.broadcast_to(low, n), np.broadcast_to(high, n)
    rows = []
    for t in grid.tiles[grid.axes.index(axis)]:
        first = np.arange(0, n, t)
        end = np.minimum(first + t, n) - 1
        least, most = np.minimum(low[first], low[end]), np.maximum(high[first], high[end])
        count = np.minimum(np.maximum(most + 1, 0), extent) - np.minimum(np.maximum(least, 0), extent)
        rows.append(_distinct(count))
    return _stacked(rows, [len(grid.axes) - 1 - grid.axes.index(axis)], grid)


def _distinct(count: Ints) -> tuple[Ints, Ints]:
    tally = np.bincount(count)
    found = np.flatnonzero(tally)
    return found, tally[found]


def _stacked(rows: list[tuple[Ints, Ints]], trailing: list[int], grid: Grid) -> DimClasses:
    """Ragged classes of one axis, padded with classes of no tile."""
    width = max(len(c) for c, _ in rows)
    count, times = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.int64)
    for i, (c, t) in enumerate(rows):
        count[i, : len(c)], times[i, : len(t)] = c, t
    shape = [1] * (len(grid.axes) - 1 - trailing[0]) + [len(rows)] + [1] * trailing[0]
    return DimClasses(count.reshape([*shape, width]), times.reshape([*shape, width]))


def _joint_classes(grid: Grid, index: Expr | None, extent: int, axes: tuple[str, ...]) -> DimClasses:
    """Several axes in one map: every combination of their tile sizes by itself."""
    candidates = [grid.tiles[grid.axes.index(a)] for a in axes]
    rows = [
        _distinct(_joint_counts(grid, index, extent, dict(zip(axes, t, strict=True)))) for t in product(*candidates)
    ]
    width = max(len(c) for c, _ in rows)
    shape = [len(grid.tiles[i]) if a in axes else 1 for i, a in enumerate(grid.axes)]
    count, times = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.int64)
    for i, (c, t) in enumerate(rows):
        count[i, : len(c)], times[i, : len(t)] = c, t
    return DimClasses(count.reshape([*shape, width]), times.reshape([*shape, width]))


def _joint_counts(grid: Grid, index: Expr | None, extent: int, tile: Mapping[str, int]) -> Ints:
    first, last = _whole_ranges(grid)
    for position, (axis, t) in enumerate(tile.items()):
        start = np.arange(0, grid.extents[axis], t).reshape([-1 if i == position else 1 for i in range(len(tile))])
        first[axis], last[axis] = start, np.minimum(start + t, grid.extents[axis]) - 1
    count = dim_range(index, extent, first, last).count
    return np.asarray(np.broadcast_to(count, [-(-grid.extents[a] // t) for a, t in tile.items()]), np.int64).ravel()


def formula(grid: Grid, expr: Expr, lengths: Mapping[str, Any], cores: int) -> Any:
    """A cycle or scratch formula over tile lengths per axis (ints or arrays in grid shape)."""
    return evaluate(expr, {**lengths, "cores": cores, **_tile_extents(grid, expr, lengths)})


def _tile_extents(grid: Grid, expr: Expr, lengths: Mapping[str, Any]) -> dict[str, Any]:
    """`x_h`: the extent of operand x's tile along h, where the formula reads it."""
    read = names(expr) - set(lengths) - {"cores"}
    result: dict[str, Any] = {}
    if not read:
        return result
    zero = {a: 0 * n for a, n in lengths.items()}
    last = {a: n - 1 for a, n in lengths.items()}
    for o in grid.call.operands:
        for dim, index, extent in zip(o.dims, o.index, o.extent, strict=True):
            name = f"{o.name}_{dim.split('/')[0]}"
            if name in read and "%" not in dim:
                factor = int(dim.split("/")[1]) if "/" in dim else 1
                result[name] = _unclipped(index, extent, zero, last) * factor
    return result


def _unclipped(index: Expr | None, extent: int, first: Mapping[str, Any], last: Mapping[str, Any]) -> Any:
    if index is None:
        return extent
    low, high = bounds(index, first, last)
    count = high - low + 1
    return np.minimum(count, extent) if isinstance(count, np.ndarray) else min(count, extent)
