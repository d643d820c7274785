"""The modelled cycles of a tiling: computing, and what of the data movement is not hidden behind it.

Core 0 issues every command (`start` cycles each, never hidden). A copy then takes `latency`, `per_run` for each line
and its bytes over the bandwidth. Copies of an operand with one buffer are waited for; with two, all but the first
run beside the computing, together at most as fast as the hop. A tile from L3 waits for its way between L1 and its
stage in L2. Its way between the stage and L3 is waited for too, or, where the stage has two halves, runs beside the
computing: as much of it as the engine holds commands of, for core 0 waits until it takes the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusion_engine.expr import Expr, bounds, names
from tiler.grid import Grid, Ints, axis_classes, formula
from tiler.target import Hop, Target
from tiler.traffic import Commands, OperandTraffic

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MoveCost:
    """One operand's movement over a grid with every tile copied once: multiply by the repeats of a loop order.

    `issue` cycles are core 0's, `waited` cannot be hidden, `moved` can be by two buffers in L1, or (from L3) by two
    halves of the stage in L2.
    """

    issue: Floats
    waited: Floats
    moved: Floats
    copies: Ints


def move_cost(traffic: OperandTraffic, level: str, hops: Mapping[str, Hop]) -> MoveCost:
    """The cost of moving one operand's tiles between `level` and L1."""
    near, deep = hops["l2_l1"], hops["l3_l2"]
    if level != "l3":
        c = traffic.far["l2_l1"]
        issue, moved = _issue(c, near), _moved(traffic, c, near)
        return MoveCost(issue, np.zeros(()), moved, traffic.copies)
    c, d = traffic.dense["l2_l1"], traffic.far["l3_l2"]
    beside = np.minimum(1.0, deep.in_flight * traffic.copies / np.maximum(d.commands, 1))
    moved = _moved(traffic, d, deep)
    waited = _issue(d, deep) + _moved(traffic, c, near) + moved * (1 - beside)
    return MoveCost(_issue(c, near), waited, moved * beside, traffic.copies)


def _issue(c: Commands, hop: Hop) -> Floats:
    return np.asarray(c.commands * hop.start, np.float64)


def _moved(traffic: OperandTraffic, c: Commands, hop: Hop) -> Floats:
    cycles = traffic.copies * hop.latency + c.lines * hop.per_run + traffic.bytes / hop.bytes_per_cycle
    return np.asarray(cycles, np.float64)


def compute_cycles(grid: Grid, target: Target) -> Floats:
    """Cycles of all tiles of a call, forks included, in grid shape; ragged tiles exact."""
    expr = grid.call.cycles
    read = _axes_read(grid, names(expr))
    counted: Any = np.zeros((1,) * len(grid.axes))
    for shape in product(*(_lengths(grid, a) for a in read)):
        lengths = dict(grid.extents) | {a: n for a, (n, _) in zip(read, shape, strict=True)}
        times: Any = 1
        for _, t in shape:
            times = times * t
        counted = counted + (formula(grid, expr, lengths, target.cores) + target.fork) * times
    for axis in grid.axes:
        counted = counted * (1 if axis in read else grid.trips(axis))
    return np.asarray(np.broadcast_to(counted, grid.shape), np.float64)


def _axes_read(grid: Grid, read: frozenset[str]) -> list[str]:
    """Splittable axes that the formula depends on, directly or through the extent of an operand's tile."""
    result = set(read)
    for o in grid.call.operands:
        for dim, index in zip(o.dims, o.index, strict=True):
            if index is not None and f"{o.name}_{dim.split('/')[0]}" in read:
                result |= names(index)
    return [a for a in grid.axes if a in result]


def _lengths(grid: Grid, axis: str) -> list[tuple[Ints, Ints]]:
    classes = axis_classes(grid, axis)
    return [(classes.count[..., k], classes.times[..., k]) for k in range(classes.count.shape[-1])]


def scratch_bytes(grid: Grid, target: Target) -> dict[str, Any]:
    """Bytes of one piece of each scratch buffer at full tiles, aligned to 16, in grid shape (or one number)."""
    lengths = {a: grid.tile(a) for a in grid.extents}
    return {s.name: align16(formula(grid, s.bytes, lengths, target.cores)) for s in grid.call.scratch}


def accumulator_bytes(grid: Grid) -> Any:
    """Bytes of the partial sums of one full tile."""
    acc = grid.call.accumulate
    if acc is None:
        return 0
    size: Any = acc.itemsize
    for index in acc.index:
        size = size * _span(grid, index)
    return size


def _span(grid: Grid, index: Expr) -> Any:
    zero: dict[str, Any] = dict.fromkeys(grid.extents, 0)
    last = {a: grid.tile(a) - 1 for a in grid.extents}
    low, high = bounds(index, zero, last)
    return high - low + 1


def align16(value: Any) -> Any:
    """Rounded up to the alignment of every L1 and L2 buffer."""
    if isinstance(value, (int, float)):
        return -(-int(np.ceil(value)) // 16) * 16
    return (-(-np.ceil(value).astype(np.int64) // 16)) * 16
