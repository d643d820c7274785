"""Calls whose results can be made some rows at a time, and which rows of their operands that takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from fusion_engine.expr import Expr, Name, evaluate, names
from fusion_engine.graph import FusedGraph
from tiler.bound import BoundCall
from tiler.boxes import dim_range
from tiler.choice import Bundle
from tiler.grid import Ints
from tiler.schedule import BoundOperand
from tiler.target import Target


@dataclass(frozen=True, slots=True)
class Rows:
    """An operand along its image: `dim` is its outermost dim that moves, `unit` elements of it are one of `count`
    rows, `bytes` long."""

    dim: int
    unit: int
    count: int
    bytes: int


@dataclass(frozen=True)
class RollCall:
    """A call that can roll: `axis` walks the rows of its result, `unit` of its values a row.

    Rows are [first, end); arrays of them are one entry a step.
    """

    bound: BoundCall
    axis: str
    unit: int
    rows: Mapping[str, Rows]  # of operands whose rows run outermost, by operand name
    bundle: Bundle | None = None  # its constants that one command brings
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def out(self) -> BoundOperand:
        return next(o for o in self.bound.operands if o.role == "out")

    @property
    def height(self) -> int:
        return self.rows[self.out.name].count

    def needed(self, o: BoundOperand, end: Ints) -> Ints:
        """How many rows of an operand, from its first, `end` rows of the result read."""
        rows = self.rows[o.name]
        start, last = self._corners(np.zeros_like(end), end)
        found = dim_range(o.index[rows.dim], o.extent[rows.dim], start, last)
        return np.where(end > 0, -(-(found.start + found.count) // rows.unit), 0)

    def begins(self, o: BoundOperand, first: Ints) -> Ints:
        """The first row of an operand that row `first` of the result reads, clipped to the tensor."""
        rows = self.rows[o.name]
        if rows.unit > 1:
            return first
        start, last = self._corners(first, first + 1)
        found = dim_range(o.index[rows.dim], o.extent[rows.dim], start, last)
        return np.broadcast_to(found.start, first.shape)

    def boxes(self, o: BoundOperand, first: Ints, end: Ints) -> list[Ints]:
        """Extents of an operand's tiles, one array a dim; empty tiles where there are no rows."""
        start, last = self._corners(first, end)
        counts = [dim_range(i, e, start, last).count for i, e in zip(o.index, o.extent, strict=True)]
        return [np.where(end > first, c, 0) for c in counts]

    def _corners(self, first: Any, end: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        start: dict[str, Any] = dict.fromkeys(self.bound.extents, 0)
        last: dict[str, Any] = {a: n - 1 for a, n in self.bound.extents.items()}
        return start | {self.axis: first * self.unit}, last | {self.axis: end * self.unit - 1}

    def walks(self, o: BoundOperand) -> bool:
        """Whether the kernel can walk rows of an operand inside its whole tensor or a ring of its rows."""
        if o.near and all(near == "stride" for near in o.near):
            return True
        if "whole" in o.near or not o.near:
            return False
        row = self.rows[o.name].dim if o.name in self.rows else None
        counts = self._box(o, self.height)
        still = row is not None or not any(_reads(i, self.axis) for i in o.index)
        return still and all(n == e for d, (n, e) in enumerate(zip(counts, o.extent, strict=True)) if d != row)

    def _box(self, o: BoundOperand, rows: int) -> list[int]:
        """Extents of an operand's tile for the first `rows` rows of the result."""
        start, last = self._corners(0, rows)
        return [int(dim_range(i, e, start, last).count) for i, e in zip(o.index, o.extent, strict=True)]

    def cycles(self, rows: int, target: Target) -> float:
        """Of one start with `rows` rows of the result."""
        key = "cycles", rows
        if key not in self.memo:
            self.memo[key] = float(evaluate(self.bound.cycles, self.environment(rows, target.cores))) + target.fork
        result: float = self.memo[key]
        return result

    def environment(self, rows: int, cores: int) -> dict[str, Any]:
        """What the formulas read, `rows` rows of the result in the tile."""
        lengths: dict[str, Any] = dict(self.bound.extents) | {self.axis: rows * self.unit, "cores": cores}
        for o in self.bound.operands:
            for dim, extent in zip(o.dims, self._box(o, rows), strict=True):
                if "%" not in dim:
                    factor = int(dim.split("/")[1]) if "/" in dim else 1
                    lengths.setdefault(f"{o.name}_{dim.split('/')[0]}", extent * factor)
        return lengths


def roll_call(graph: FusedGraph, bound: BoundCall) -> RollCall | None:
    """How a call rolls, or None: its result's rows must run outermost, one axis walking them in whole tensors."""
    outs = [o for o in bound.operands if o.role == "out"]
    if len(outs) != 1 or bound.accumulate is not None:
        return None
    rows = {o.name: r for o in bound.operands if o.role != "const" and (r := _rows(graph, o)) is not None}
    out = outs[0]
    if out.name not in rows:
        return None
    index = out.index[rows[out.name].dim]
    if not isinstance(index, Name):
        return None
    axis = next(a for a in bound.axes if a.name == index.name)
    unit = rows[out.name].unit
    if axis.whole or unit % axis.step or axis.limit is not None:
        return None
    if any(_reads(o.index[d], axis.name) for o in bound.operands if o.role == "const" for d in range(len(o.dims))):
        return None
    kept = {n: r for n, r in rows.items() if _plain(bound, n, r, axis.name, unit)}
    return RollCall(bound, axis.name, unit, kept) if out.name in kept else None


def _plain(bound: BoundCall, name: str, rows: Rows, axis: str, unit: int) -> bool:
    """Rows map to rows: no other dim moves with the axis, and units agree where they are not single."""
    o = next(x for x in bound.operands if x.name == name)
    if any(_reads(i, axis) for d, i in enumerate(o.index) if d != rows.dim):
        return False
    index = o.index[rows.dim]
    return (rows.unit == 1 and unit == 1) or (isinstance(index, Name) and index.name == axis and rows.unit == unit)


def _reads(index: Expr | None, axis: str) -> bool:
    return index is not None and axis in names(index)


def _rows(graph: FusedGraph, o: BoundOperand) -> Rows | None:
    """The rows of an operand that is a whole tensor, stored with its rows outermost."""
    root = graph.buffer[o.root]
    extents = [root.shape[a] for a in root.storage_order if root.shape[a] > 1]
    moving = [d for d, e in enumerate(o.extent) if e > 1]
    if len(extents) < 2 or not moving or o.far_offset or prod(o.extent) * o.itemsize != root.nbytes:
        return None
    if any(s != prod(o.extent[d + 1 :]) for d, s in enumerate(o.far_strides) if o.extent[d] > 1):
        return None
    dim, height = moving[0], extents[0]
    if o.extent[dim] % height:
        return None
    return Rows(dim, o.extent[dim] // height, height, root.nbytes // height)
