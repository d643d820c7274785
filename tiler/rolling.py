"""Rolled groups: consecutive calls that go down an image together, a few rows at a time.

Each step makes some rows of the last call's result; walking backwards, each call before it makes the rows that are
newly needed, from a ring in L1 in which the rows still needed are moved down between steps. No row is made twice.
Weights are copied in once and stay for the group; what the group reads or writes outside comes and goes by tiles of
rows, or stays in L1 whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, prod
from typing import Any

from fusion_engine.expr import Expr, Name, evaluate, names
from fusion_engine.graph import FusedGraph
from tiler.bound import BoundCall
from tiler.boxes import dim_range
from tiler.cost import align16
from tiler.moves import count_box, merge_box
from tiler.schedule import BoundOperand
from tiler.target import Target
from tiler.traffic import hop_limits

SLIDE = 4  # bytes per cycle that core 0 moves kept rows down
LONGEST = 10  # calls in a group
STEPS = (1, 2, 3, 4, 6, 8, 12, 16)  # rows of the last result per step that are tried


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
    """A call that can roll: `axis` walks the rows of its result, `unit` of its values a row."""

    bound: BoundCall
    axis: str
    unit: int
    rows: Mapping[str, Rows]  # of operands whose rows run outermost, by operand name
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def out(self) -> BoundOperand:
        return next(o for o in self.bound.operands if o.role == "out")

    @property
    def height(self) -> int:
        return self.rows[self.out.name].count

    def needs(self, o: BoundOperand, first: int, end: int) -> tuple[int, int]:
        """Rows [from, to) of an operand that rows [first, end) of the result read; from = to where there are none."""
        if end <= first:
            return 0, 0
        key = o.name, first, end
        if key not in self.memo:
            rows = self.rows[o.name]
            start, last = self._corners(first, end)
            found = dim_range(o.index[rows.dim], o.extent[rows.dim], start, last)
            self.memo[key] = found.start // rows.unit, ceil((found.start + found.count) / rows.unit)
        result: tuple[int, int] = self.memo[key]
        return result

    def walks(self, o: BoundOperand) -> bool:
        """Whether the kernel can walk rows of an operand inside its whole tensor or a ring of its rows."""
        if o.near and all(near == "stride" for near in o.near):
            return True
        if "whole" in o.near or not o.near:
            return False
        row = self.rows[o.name].dim if o.name in self.rows else None
        counts = self.box(o, 0, self.height)
        still = row is not None or not any(_reads(i, self.axis) for i in o.index)
        return still and all(n == e for d, (n, e) in enumerate(zip(counts, o.extent, strict=True)) if d != row)

    def begins(self, o: BoundOperand, first: int) -> int:
        """The first row of an operand that row `first` of the result reads, clipped to the tensor."""
        rows = self.rows[o.name]
        if rows.unit > 1:
            return first
        start, _ = self._corners(first, first + 1)
        low = dim_range(o.index[rows.dim], o.extent[rows.dim], start, start | self._zero_last()).start
        return int(low)

    def _zero_last(self) -> dict[str, int]:
        return {a: n - 1 for a, n in self.bound.extents.items() if a != self.axis}

    def box(self, o: BoundOperand, first: int, end: int) -> list[int]:
        """Extents of an operand's tile for rows [first, end) of the result."""
        key = "box", o.name, first, end
        if key not in self.memo:
            start, last = self._corners(first, end)
            self.memo[key] = [int(dim_range(i, e, start, last).count) for i, e in zip(o.index, o.extent, strict=True)]
        result: list[int] = self.memo[key]
        return result

    def _corners(self, first: int, end: int) -> tuple[dict[str, int], dict[str, int]]:
        start = dict.fromkeys(self.bound.extents, 0) | {self.axis: first * self.unit}
        last = {a: n - 1 for a, n in self.bound.extents.items()} | {self.axis: end * self.unit - 1}
        return start, last

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
            extents = self.box(o, 0, rows)
            for dim, extent in zip(o.dims, extents, strict=True):
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


@dataclass(frozen=True, slots=True)
class RingPlan:
    """An inner tensor: `rows` of `row_bytes` at most are in L1 at once."""

    root: str
    rows: int
    row_bytes: int
    height: int


@dataclass(frozen=True)
class RollPlan:
    """A group rolled with `step` rows of the last result at a time, its outer tensors in L2 or, those of `stays`, in
    L1. Figures per call in their order."""

    calls: tuple[RollCall, ...]
    step: int
    stays: frozenset[str]
    target: Target

    # ---- rows ----

    @cached_property
    def steps(self) -> int:
        return -(-self.calls[-1].height // self.step)

    @cached_property
    def ends(self) -> tuple[tuple[int, ...], ...]:
        """Per step and call, how many rows of its result are done behind the step."""
        return tuple(self._ends(s) for s in range(self.steps))

    def _ends(self, step: int) -> tuple[int, ...]:
        if step == self.steps - 1:
            return tuple(c.height for c in self.calls)
        ends = [0] * len(self.calls)
        ends[-1] = self.step * (step + 1)
        for i in reversed(range(len(self.calls) - 1)):
            ends[i] = max(c.needs(o, 0, ends[j])[1] for j, c, o in self.readers[i])
        return tuple(ends)

    @cached_property
    def readers(self) -> list[list[tuple[int, RollCall, BoundOperand]]]:
        operands = [(j, c, o) for j, c in enumerate(self.calls) for o in c.bound.operands if o.role == "in"]
        return [[x for x in operands if x[2].root == c.out.root] for c in self.calls]

    @cached_property
    def spans(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per call and step, its rows [from, to)."""
        return tuple(
            tuple((self.ends[s - 1][i] if s else 0, self.ends[s][i]) for s in range(self.steps))
            for i in range(len(self.calls))
        )

    @cached_property
    def bases(self) -> tuple[tuple[int, ...], ...]:
        """Per inner tensor (of each call but the last) and step, the first row that its ring holds."""
        return tuple(
            tuple(0 if s == 0 else self._keep(i, s) for s in range(self.steps)) for i in range(len(self.calls) - 1)
        )

    def _keep(self, number: int, step: int) -> int:
        """The first row still read behind a step: by windows that begin where each reader has come to."""
        done = self.ends[step - 1][number]
        return min(done, *(c.begins(o, self.ends[step - 1][j]) for j, c, o in self.readers[number]))

    @cached_property
    def rings(self) -> tuple[RingPlan, ...]:
        result = []
        for i, c in enumerate(self.calls[:-1]):
            most = max(self.ends[s][i] - self.bases[i][s] for s in range(self.steps))
            rows = c.rows[c.out.name]
            result.append(RingPlan(c.out.root, most, rows.bytes, rows.count))
        return tuple(result)

    # ---- memory ----

    @cached_property
    def inner(self) -> frozenset[str]:
        return frozenset(c.out.root for c in self.calls[:-1])

    def travels(self, o: BoundOperand) -> bool:
        """Whether tiles of rows of it are copied."""
        return o.role != "const" and o.root not in self.inner and o.root not in self.stays

    def tile_bytes(self, number: int, o: BoundOperand) -> int:
        """The buffer of a constant or of a travelling operand; 0 for what has none."""
        if o.role == "const":
            return prod(o.extent) * o.itemsize
        if not self.travels(o):
            return 0
        call = self.calls[number]
        return max(prod(call.box(o, a, b)) for a, b in self.spans[number] if b > a) * o.itemsize

    def scratch(self, number: int) -> dict[str, int]:
        """Bytes of one piece of each scratch buffer."""
        call = self.calls[number]
        most = max(b - a for a, b in self.spans[number])
        lengths = call.environment(most, self.target.cores)
        return {s.name: align16(evaluate(s.bytes, lengths)) for s in call.bound.scratch}

    def scratch_bytes(self, number: int) -> int:
        """All scratch of a call."""
        per = {s.name: s.per for s in self.calls[number].bound.scratch}
        total = 0
        for name, size in self.scratch(number).items():
            total += size * (self.target.cores if per[name] == "core" else 1)
        return total

    @cached_property
    def l1_bytes(self) -> int:
        """Of everything that the group has there."""
        rings: int = sum(align16(r.rows * r.row_bytes) for r in self.rings)
        tiles: int = sum(align16(self.tile_bytes(i, o)) for i, c in enumerate(self.calls) for o in c.bound.operands)
        return rings + tiles + max(self.scratch_bytes(i) for i in range(len(self.calls)))

    # ---- figures ----

    def compute(self, number: int) -> int:
        """Cycles of computing, kept rows moved down included."""
        call = self.calls[number]
        total = sum(call.cycles(end - first, self.target) for first, end in self.spans[number] if end > first)
        if number < len(self.calls) - 1:
            bases, moved = self.bases[number], range(1, self.steps)
            kept = sum(self.ends[s - 1][number] - bases[s] for s in moved if bases[s] > bases[s - 1])
            total += kept * self.rings[number].row_bytes / SLIDE
        return int(-(-total // 1))

    def traffic(self, number: int, o: BoundOperand) -> tuple[int, int, int]:
        """(bytes, transfers, cycles) between L2 and L1, none of it hidden."""
        hop = self.target.hops["l2_l1"]
        if o.role == "const":
            boxes = [list(o.extent)]
        elif self.travels(o):
            boxes = [self.calls[number].box(o, a, b) for a, b in self.spans[number] if b > a]
        else:
            boxes = []
        pitch = [s * o.itemsize for s in o.far_strides]
        size = transfers = 0
        cycles = 0.0
        known: dict[tuple[int, ...], tuple[int, int, int]] = {}
        for box in boxes:
            shape = tuple(box)
            if shape not in known:
                merged = merge_box(box, pitch, o.itemsize)
                lines = merged.outer * merged.runs if merged is not None and merged.runs > 1 else 0
                known[shape] = (*count_box(box, pitch, o.itemsize, hop_limits(hop)), lines)
            moved, commands, lines = known[shape]
            size, transfers = size + moved, transfers + commands
            cycles += commands * hop.start + hop.latency + lines * hop.per_run + moved / hop.bytes_per_cycle
        return size, transfers, ceil(cycles)

    @cached_property
    def key(self) -> tuple[int, int, int, int]:
        """(cycles, bytes, transfers, tiles) of the group."""
        moved = [self.traffic(i, o) for i, c in enumerate(self.calls) for o in c.bound.operands]
        cycles = sum(self.compute(i) for i in range(len(self.calls))) + sum(m[2] for m in moved)
        tiles = sum(b > a for spans in self.spans for a, b in spans)
        return cycles, sum(m[0] for m in moved), sum(m[1] for m in moved), tiles


def chains(graph: FusedGraph, calls: Sequence[RollCall | None], l1: int) -> dict[int, list[int]]:
    """By first call, the last calls of groups worth rolling: everything made inside is read inside, and some tensor
    inside does not fit L1 beside what it is made of or becomes."""
    outputs = {graph.storage(n).root for n in graph.outputs}
    readers: dict[str, list[int]] = {}
    for i, c in enumerate(graph.calls):
        for _, name in c.operands:
            readers.setdefault(graph.storage(name).root, []).append(i)
    found: dict[int, list[int]] = {}
    for first in range(len(calls)):
        inner: list[tuple[str, int]] = []
        constants = 0
        for last in range(first, min(first + LONGEST, len(calls))):
            call = calls[last]
            if call is None:
                break
            constants += sum(prod(o.extent) * o.itemsize for o in call.bound.operands if o.role == "const")
            if constants > l1:
                break
            if (
                last > first
                and _closed(calls, inner, readers, outputs, first, last)
                and _tight(graph, inner, readers, l1)
            ):
                found.setdefault(first, []).append(last)
            inner.append((call.out.root, last))
    return found


def _closed(
    calls: Sequence[RollCall | None],
    inner: Sequence[tuple[str, int]],
    readers: Mapping[str, list[int]],
    outputs: set[str],
    first: int,
    last: int,
) -> bool:
    for root, made in inner:
        here = readers.get(root, [])
        if root in outputs or not here or max(here) > last or min(here) <= made:
            return False
        for i in set(here):
            call = calls[i]
            assert call is not None
            if any(o.root == root and (o.name not in call.rows or not call.walks(o)) for o in call.bound.operands):
                return False
        maker = calls[made]
        if maker is None or not maker.walks(maker.out):
            return False
    return first < last


def _tight(graph: FusedGraph, inner: Sequence[tuple[str, int]], readers: Mapping[str, list[int]], l1: int) -> bool:
    """Whether the maker or a reader of some inner tensor does not fit L1 with all its tensors whole."""
    for root, made in inner:
        for i in {made, *readers[root]}:
            call = graph.calls[i]
            roots = {graph.storage(n).root for _, n in (*call.operands, *call.results)}
            if sum(graph.buffer[r].nbytes for r in roots) > l1:
                return True
    return False
