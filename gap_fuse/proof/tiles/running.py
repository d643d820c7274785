"""Drives an implementation tile by tile as emitted code would, with every byte around the tiles guarded."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from fusion_engine.expr import evaluate, names
from fusion_engine.graph import FusedGraph, resolve_storage
from fusion_engine.kernels.descriptor import Implementation, Kernel
from gap_fuse.proof.tiles.building import FLAGS, Library, library, structure
from gap_fuse.proof.tiles.inside import check_beside, staying
from gap_fuse.proof.tiles.l1 import L1
from gap_fuse.proof.tiles.one_call import Operands
from gap_fuse.proof.tiles.sharing import busy_cores, check_sharing, written_alone
from tiler.bound import BoundCall
from tiler.emit.affine import number
from tiler.emit.args import ArgMember, args_members
from tiler.emit.boxes import AxisRange, DimBox, operand_box
from tiler.emit.fill import Tile, member_value
from tiler.emit.pack import pack
from tiler.schedule import BoundOperand

Boxes = Mapping[str, tuple[DimBox, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class BoundKernel:
    """One call of an implementation: its operands (logical arrays by name, variadic ones x0, x1, ...; absent ones left
    out), and what `bind_kernel` makes of it."""

    kernel: Kernel
    implementation: Implementation
    operands: Operands
    graph: FusedGraph
    bound: BoundCall


@dataclass(frozen=True, slots=True)
class Setting:
    """How a call is run: in tiles of `tiles` (axes left out are whole), by so many `cores`, with their sequence and all
    junk out of `seed`, compiled with `flags`, results lying on an operand as `reused` says (see `in_place`); `inside`:
    activations stay in L1, tiles inside their tensors where the C can walk them there, nothing beside them written."""

    tiles: Mapping[str, int] = field(default_factory=dict)
    cores: int = 8
    seed: int = 0
    flags: tuple[str, ...] = FLAGS
    reused: Mapping[str, str] = field(default_factory=dict)
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Team:
    """How many cores wrote a result, or sums, in one tile at most; the most cycles that `cycles` says a team saves in a
    tile that one core computed alone. Seen in the first tile and in every later one whose number is a power of two."""

    busy: int
    unshared: float


def run_team(call: BoundKernel, setting: Setting) -> tuple[dict[str, np.ndarray], Team]:
    """The results (logical order) of the compiled C, computed in tiles, and how the team shared the work.

    Reduction axes of an accumulating implementation run innermost with first/last. Cores run one after the other in
    random order. Tiles, scratch and sums stand between guards in L1 and start as junk. Operands of `reads_at` hold junk
    in the other calls. Raises StrayAccess for a write outside the tiles, or into an operand, and where two cores write
    one element.
    """
    run = TiledRun(call, setting)
    return run.all_tiles(), Team(run.busy, run.unshared)


class TiledRun:
    """One call in tiles; `_call` runs the C of one."""

    def __init__(self, call: BoundKernel, setting: Setting) -> None:
        self.kernel, self.implementation = call.kernel, call.implementation
        self.graph, self.bound = call.graph, call.bound
        self.setting, self.cores, self.reused = setting, setting.cores, setting.reused
        self.rng = np.random.default_rng(setting.seed)
        self.stays: frozenset[str] = frozenset()  # the operands whose tiles lie inside their tensors
        self.calls, self.busy, self.unshared = 0, 0, 0.0
        self.sizes: Mapping[str, int] = {}  # of the tile at hand, as formulas read them
        self.operands = {o.name: o for o in call.bound.operands}
        self.variadic = sum(
            f"{o.name}{i}" in call.operands for o in call.kernel.inputs if o.variadic for i in range(len(call.operands))
        )
        self.members = args_members(call.kernel, call.implementation, self.variadic)
        self.structure = structure(self.members)
        self.far = {o.name: self._home(o, call.operands) for o in call.bound.operands}

    @cached_property
    def library(self) -> Library:
        return library(self.kernel, self.implementation, dict(self.bound.attrs), self.variadic, self.setting.flags)

    # ---- homes of the operands ----

    def _home(self, o: BoundOperand, operands: Operands) -> np.ndarray:
        if o.role == "out":
            b = self.graph.buffer[o.root]
            return self._junk(prod(b.shape), np.dtype(b.dtype))
        data = np.asarray(operands[o.buffer], order="C")  # ascontiguousarray would give a scalar an axis
        if o.role == "const":
            packing = next(p for p in self.bound.packings if p.root == o.root)
            packed = pack(data, packing.dims, packing.order).ravel()
            assert packed.nbytes == packing.bytes
            return packed
        root, storage = self.graph.buffer[o.root], resolve_storage(self.graph.buffer, o.buffer)
        flat = self._junk(prod(root.shape), data.dtype)
        strides = tuple(s * flat.itemsize for s in storage.strides)
        np.lib.stride_tricks.as_strided(flat[storage.offset :], storage.shape, strides)[...] = data
        return flat

    def _junk(self, count: int, dtype: np.dtype) -> np.ndarray:
        return np.frombuffer(self.rng.bytes(count * dtype.itemsize), dtype).copy()

    # ---- loops ----

    def all_tiles(self) -> dict[str, np.ndarray]:
        over = self.bound.accumulate.over if self.bound.accumulate else ()
        extents = self.bound.extents
        sizes = {a: self.setting.tiles.get(a, n) or 1 for a, n in extents.items()}
        self.stays = staying(self.bound, sizes) if self.setting.inside else frozenset()
        outer = {a: (sizes[a] if a not in over else extents[a]) for a in extents}
        for position in _positions(extents, outer):
            self._outer_tile({**position}, over, sizes)
        return {o.name: self._logical(o) for o in self.bound.operands if o.role == "out"}

    def _outer_tile(self, position: dict[str, tuple[int, int]], over: Sequence[str], sizes: Mapping[str, int]) -> None:
        extents = {a: self.bound.extents[a] for a in over}
        inner = list(_positions(extents, sizes))
        kept = L1(self.rng)
        for i, p in enumerate(inner):
            kept = self._tile({**position, **p}, i == 0, i == len(inner) - 1, kept)

    def _tile(self, position: Mapping[str, tuple[int, int]], first: bool, last: bool, kept: L1) -> L1:
        ranges = {a: AxisRange(number(at), number(n)) for a, (at, n) in position.items()}
        boxes = {n: operand_box(o, ranges, self.bound.extents) for n, o in self.operands.items()}
        tile = Tile(self.kernel, self.operands, boxes, ranges, self.bound.attrs, self.stays)
        self.sizes = self._sizes(position, boxes)
        l1 = L1(self.rng)
        self._place_operands(l1, boxes, first, last)
        self._place_scratch(l1)
        self._place_sums(l1, ranges, None if first else kept)
        self._call(tile, l1, first, last)
        for name, o in self.operands.items():
            if o.role == "out" and name in self.stays:
                self._stays_on(o, boxes[name], l1)
            elif o.role == "out" and (last or self._runs_along(o)):
                _view(o, boxes[name], self.far[name])[...] = l1.array(name)
        return l1

    def _sizes(self, position: Mapping[str, tuple[int, int]], boxes: Boxes) -> dict[str, int]:
        """The names of `cycles` and `scratch` in this tile."""
        found = {a: n for a, (_, n) in position.items()} | {"cores": self.cores}
        for n, box in boxes.items():
            found |= {f"{n}_{d}": b.extent.const for d, b in zip(self.operands[n].dims, box, strict=True)}
        return found

    def _place_operands(self, l1: L1, boxes: Boxes, first: bool, last: bool) -> None:
        for name, o in self.operands.items():
            if name in self.reused:
                l1.place_over(name, self.reused[name])
            elif name in self.stays:
                l1.place_inside(name, self.far[name], _offset(o, boxes[name]))
            else:
                incoming = o.role != "out"
                data = self._incoming(o, boxes[name], first, last) if incoming else self._outgoing(o, boxes[name])
                l1.place(name, data)

    def _place_scratch(self, l1: L1) -> None:
        for s in self.bound.scratch:
            size = -(-int(evaluate(s.bytes, self.sizes)) // 16) * 16
            per_core = s.per == "core"
            space = self._junk(size * (self.cores if per_core else 1), np.dtype(np.uint8))
            l1.place(s.name, space, size if per_core else 0, working=True)

    def _place_sums(self, l1: L1, ranges: Mapping[str, AxisRange], kept: L1 | None) -> None:
        """Junk, or the sums that the tile before left."""
        acc = self.bound.accumulate
        if acc is not None:
            junk = self._junk(self._sums(ranges), np.dtype(np.uint8))
            l1.place(acc.name, junk if kept is None else kept.bytes_of(acc.name), working=True)

    def _stays_on(self, o: BoundOperand, box: tuple[DimBox, ...], l1: L1) -> None:
        """A result's tensor as the call left it, for the next tile."""
        made, mask = l1.array(o.name), np.zeros(self.far[o.name].size, bool)
        _view(o, box, mask)[...] = True
        check_beside(o.name, self.far[o.name], made, mask, f"{self.kernel.name}/{self.implementation.name}")
        self.far[o.name] = made.copy()

    def _runs_along(self, o: BoundOperand) -> bool:
        """Whether a result has its own part in each tile of the kept axes: a recurrence's sequence."""
        over = self.bound.accumulate.over if self.bound.accumulate else ()
        return any(names(i) & set(over) for i in o.index if i is not None)

    def _sums(self, ranges: Mapping[str, AxisRange]) -> int:
        acc = self.bound.accumulate
        assert acc is not None
        o = BoundOperand(acc.name, "", "", "in", "int32", acc.itemsize, (), acc.index, (2**30,) * len(acc.index), 0, ())
        return prod(b.extent.const for b in operand_box(o, ranges, self.bound.extents)) * acc.itemsize

    def _incoming(self, o: BoundOperand, box: tuple[DimBox, ...], first: bool, last: bool) -> np.ndarray:
        data = _view(o, box, self.far[o.name])
        at = (self.implementation.reads_at or {}).get(o.name)
        if (at == "first" and not first) or (at == "last" and not last):
            return self._junk(data.size, data.dtype).reshape(data.shape)
        return data.copy()

    def _outgoing(self, o: BoundOperand, box: tuple[DimBox, ...]) -> np.ndarray:
        data = _view(o, box, self.far[o.name])
        return self._junk(data.size, data.dtype).reshape(data.shape)

    # ---- the call ----

    def _call(self, tile: Tile, l1: L1, first: bool, last: bool) -> None:
        args = self._arguments(tile, l1, first, last)
        l1.seal(writable={n for n, o in self.operands.items() if o.role == "out"} | l1.working)
        what = f"{self.kernel.name}/{self.implementation.name}"
        l1.guard(self.library)
        try:
            self._run_team(args, l1, what)
        finally:
            l1.reveal(self.library)  # hidden memory must not be given back
        l1.check(what)

    def _run_team(self, args: ctypes.Structure, l1: L1, what: str) -> None:
        before = l1.contents()
        self.library.run(args, self.cores, tuple(int(i) for i in self.rng.permutation(self.cores)))
        self.calls += 1
        if self.cores > 1 and not self.reused and self.calls & (self.calls - 1) == 0:
            self._watch(args, l1, before, what)

    def _watch(self, args: ctypes.Structure, l1: L1, before: Mapping[str, bytes], what: str) -> None:
        """Which core wrote what of the tile just computed."""
        results = {n for n, o in self.operands.items() if o.role == "out"}
        wrote = written_alone(l1, before, results, lambda core: self.library.run(args, self.cores, (core,)), self.cores)
        check_sharing(wrote, l1.pitch, what)
        busy = busy_cores(wrote, l1.pitch)
        self.busy = max(self.busy, busy)
        if busy == 1:
            alone, shared = (float(evaluate(self.bound.cycles, {**self.sizes, "cores": c})) for c in (1, self.cores))
            self.unshared = max(self.unshared, alone - shared)

    def _arguments(self, tile: Tile, l1: L1, first: bool, last: bool) -> ctypes.Structure:
        args = self.structure()
        for m in self.members:
            setattr(args, m.name, self._value(m, tile, l1, first, last))
        return args

    def _value(self, m: ArgMember, tile: Tile, l1: L1, first: bool, last: bool) -> object:
        match m.kind:
            case "pointer" | "scratch" | "accumulator":
                return l1.address(m.of)
            case "pitch":
                return l1.pitch[m.of]
            case "first":
                return int(first)
            case "last":
                return int(last)
        value = member_value(m, tile)
        if isinstance(value, tuple):
            numbers = [v if isinstance(v, (int, float)) else v.const for v in value]
            return type(getattr(self.structure(), m.name))(*numbers)
        return value if isinstance(value, (int, float)) else value.const

    def _logical(self, o: BoundOperand) -> np.ndarray:
        storage = resolve_storage(self.graph.buffer, o.buffer)
        flat = self.far[o.name]
        strides = tuple(s * flat.itemsize for s in storage.strides)
        return np.lib.stride_tricks.as_strided(flat[storage.offset :], storage.shape, strides).copy()


def in_place(bound: BoundCall) -> list[tuple[str, str]]:
    """(result, operand) where the implementation says `reuse` and both have the same elements in every tile."""
    operands = {o.name: o for o in bound.operands}
    return [
        (result, name)
        for result, names_ in bound.reuse.items()
        for name in names_
        if name in operands and _same_tiles(operands[name], operands[result])
    ]


def _same_tiles(x: BoundOperand, y: BoundOperand) -> bool:
    return (x.index, x.extent, x.itemsize) == (y.index, y.extent, y.itemsize)


def _positions(extents: Mapping[str, int], tiles: Mapping[str, int]) -> Iterator[dict[str, tuple[int, int]]]:
    parts = [[(a, (at, min(tiles[a], n - at))) for at in range(0, n, tiles[a])] for a, n in extents.items()]
    for chosen in product(*parts):
        yield dict(chosen)


def _offset(o: BoundOperand, box: tuple[DimBox, ...]) -> int:
    """Where the box begins in the operand's home, in elements; 0 for an empty one."""
    if any(d.extent.const <= 0 for d in box):
        return 0
    return o.far_offset + sum(d.start.const * s for d, s in zip(box, o.far_strides, strict=True))


def _view(o: BoundOperand, box: tuple[DimBox, ...], flat: np.ndarray) -> np.ndarray:
    """The box within the operand's home."""
    shape = tuple(max(d.extent.const, 0) for d in box)
    if 0 in shape:
        return np.zeros(shape, flat.dtype)
    offset = _offset(o, box)
    reach = offset + sum((n - 1) * s for n, s in zip(shape, o.far_strides, strict=True))
    inside = offset >= 0 and reach < flat.size
    assert inside, f"the box of `{o.name}` leaves its root"
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, tuple(s * flat.itemsize for s in o.far_strides))
