"""Binds a call to an implementation: sizes solved, groups folded, storage orders checked, constants given their
packing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm, prod
from typing import Any, cast

import numpy as np

from fusion_engine.expr import Apply, Expr, Item, ListOf, Name, Num, evaluate, names, parse_expr, substitute
from fusion_engine.graph import Call, FusedGraph, Storage
from fusion_engine.kernels.descriptor import Implementation, Kernel, OperandType
from fusion_engine.kernels.sizes import Sizes, solve_sizes
from tiler.bound import BoundAccumulator, BoundAxis, BoundCall, BoundScratch, Packing
from tiler.groups import (
    FoldedAxis,
    GroupMember,
    axis_index,
    axis_names,
    fold_group,
    in_order,
    plain_axis,
)
from tiler.schedule import BoundOperand


class DeclinedError(Exception):
    """Why an implementation does not take a call; becomes the returned reason."""


@dataclass(frozen=True, slots=True)
class _Actual:
    """An operand of the call: its type in the signature, its buffer, where it lies."""

    name: str
    type: OperandType
    buffer: str
    dtype: str
    shape: tuple[int, ...]
    storage: Storage
    constant: bool
    part: int  # which part of a variadic operand
    role: str

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class _Dim:
    """One dim of an operand before ordering: token in `orders`, name, coordinate, extent and far stride (elements)."""

    token: str
    name: str
    index: Expr | None
    extent: int
    stride: int
    logical: tuple[str, ...]  # names of the logical axes it stands for, outermost first
    grouped: bool = False


def bind(
    kernel: Kernel, implementation: Implementation, graph: FusedGraph, call: Call, isa: Sequence[str] | None = None
) -> BoundCall | str:
    """Bind `call` of `graph` to `implementation`, or say in one sentence why it does not take it.

    `isa` lists the target's instruction sets (None: do not check). Reads only shapes, element types, storages and
    attributes.
    """
    try:
        return _Binder(kernel, implementation, graph, call, isa).bind()
    except DeclinedError as e:
        return str(e)


class _Binder:
    def __init__(
        self, kernel: Kernel, implementation: Implementation, graph: FusedGraph, call: Call, isa: Sequence[str] | None
    ) -> None:
        self.kernel, self.implementation, self.graph, self.call, self.isa = kernel, implementation, graph, call, isa

    def bind(self) -> BoundCall:
        self._check_isa()
        self.actuals = self._actuals()
        self.sizes = self._solve()
        self.env = self.sizes.environment
        self._check_when()
        self.members = self._members()
        self.folded = self._fold()
        self.groups = {g: axis_names(g, len(f)) for g, f in self.folded.items()}
        bound = [self._operand(a) for a in self.actuals]
        operands = tuple(b for b, _ in bound)
        axes = self._axes(operands)
        return BoundCall(
            call=self.call.name,
            kernel=self.kernel.name,
            implementation=self.implementation.name,
            axes=axes,
            groups=self.groups,
            operands=operands,
            packings=tuple(p for _, p in bound if p is not None),
            attrs=self.sizes.attrs,
            cycles=self._formula(self.implementation.cycles),
            scratch=tuple(BoundScratch(s.name, self._formula(s.bytes), s.per) for s in self.implementation.scratch),
            accumulate=self._accumulator(),
        )

    # ---- what the call is ----

    def _check_isa(self) -> None:
        lacking = [i for i in self.implementation.isa if self.isa is not None and i not in self.isa]
        if lacking:
            raise DeclinedError(f"the target lacks the instruction set {lacking[0]}")

    def _actuals(self) -> tuple[_Actual, ...]:
        inputs, results = dict(self.call.operands), dict(self.call.results)
        found = [a for o in self.kernel.inputs for a in self._actual(o, inputs, "in")]
        return (*found, *(a for o in self.kernel.outputs for a in self._actual(o, results, "out")))

    def _actual(self, o: OperandType, given: Mapping[str, str], role: str) -> list[_Actual]:
        count = sum(re.fullmatch(rf"{o.name}\d+", n) is not None for n in given) if o.variadic else 1
        wanted = [f"{o.name}{i}" for i in range(count)] if o.variadic else [o.name]
        return [self._place(o, n, i, given[n], role) for i, n in enumerate(wanted) if n in given]

    def _place(self, o: OperandType, name: str, part: int, buffer: str, role: str) -> _Actual:
        b, storage = self.graph.buffer[buffer], self.graph.storage(buffer)
        constant = role == "in" and self.graph.buffer[storage.root].data is not None
        if o.const and not constant:
            raise DeclinedError(f"{name} must be a constant")
        return _Actual(name, o, buffer, b.dtype, b.shape, storage, constant, part, "const" if constant else role)

    def _solve(self) -> Sizes:
        shapes = {a.name: a.shape for a in self.actuals}
        solved = solve_sizes(self.kernel, shapes, {a.name: a.dtype for a in self.actuals}, dict(self.call.attrs))
        if isinstance(solved, str):
            raise DeclinedError(solved)
        return solved

    def _check_when(self) -> None:
        for text, condition in self.implementation.when:
            if not bool(evaluate(condition, self.env)):
                raise DeclinedError(f"it needs {text}")

    # ---- groups of any rank ----

    def _members(self) -> dict[str, list[GroupMember]]:
        """Per group axis, every operand that it indexes."""
        result: dict[str, list[GroupMember]] = {g: [] for g, extent in self.kernel.axes if extent.startswith("*")}
        for a in self.actuals:
            for group, first, length in self._group_positions(a):
                result[group].append(self._member(a, group, first, length))
        return result

    def _group_positions(self, a: _Actual) -> list[tuple[str, int, int]]:
        """(group axis, first logical axis, how many) of every group among the operand's dims."""
        result, position = [], 0
        for d, index in zip(a.type.dims, self._index(a), strict=True):
            length = self._length(a, d)
            if d.startswith("*"):
                if not isinstance(index, Name) or index.name not in dict(self.kernel.axes):
                    raise DeclinedError(f"the index of the group {d} of {a.name} is not an axis")
                result.append((index.name, position, length))
            position += length
        return result

    def _length(self, a: _Actual, dim: str) -> int:
        groups = [d for d in a.type.dims if d.startswith("*")]
        if not dim.startswith("*"):
            return 1
        if len(groups) == 1:
            return len(a.shape) - len(a.type.dims) + 1
        bound = self.env[dim[1:]]
        return len(bound[a.part] if bound and isinstance(bound[0], tuple) else bound)

    def _index(self, a: _Actual) -> tuple[Expr | None, ...]:
        """The operand's index map; where two accesses differ, the whole extent."""
        maps = [m.index for m in self.kernel.access if m.operand == a.type.name]
        if not maps:
            return (None,) * len(a.type.dims)
        return tuple(column[0] if len(set(column)) == 1 else None for column in zip(*maps, strict=True))

    def _member(self, a: _Actual, group: str, first: int, length: int) -> GroupMember:
        extents = self._group_extents(group)
        lead = len(extents) - length
        if lead < 0:
            raise DeclinedError(f"{a.name} has more axes than the group {group}")
        axes = []
        for j, extent in enumerate(extents):
            own = first + j - lead if j >= lead else None
            size = 1 if own is None else a.shape[own]
            stride = 0 if own is None else a.storage.strides[own]
            if size not in (1, extent):
                raise DeclinedError(f"{a.name} has extent {size} where the group {group} has {extent}")
            axes.append(plain_axis(own, extent, size, stride))
        return GroupMember(a.name, tuple(axes), a.constant)

    def _group_extents(self, group: str) -> tuple[int, ...]:
        return tuple(self.env[dict(self.kernel.axes)[group][1:]])

    def _fold(self) -> dict[str, tuple[FoldedAxis, ...]]:
        result = {}
        for group, members in self.members.items():
            rank = self.implementation.rank
            if rank is None:
                raise DeclinedError("it takes groups of any rank but states no `rank`")
            outputs = {a.name for a in self.actuals if a.role == "out"}
            reference = next((m for m in members if m.operand in outputs), members[0])
            folded = fold_group(self._group_extents(group), members, reference, rank)
            if isinstance(folded, str):
                raise DeclinedError(folded)
            result[group] = folded
        return result

    # ---- operands ----

    def _operand(self, a: _Actual) -> tuple[BoundOperand, Packing | None]:
        dims = self._ordered(a, self._dims(a))
        if a.constant:
            return self._constant(a, dims)
        dims = self._gathered(a, dims)
        outside = self.kernel.outside.get(a.type.name)
        operand = BoundOperand(
            name=a.name,
            buffer=a.buffer,
            root=a.storage.root,
            role=a.role,
            dtype=a.dtype,
            itemsize=a.itemsize,
            dims=tuple(d.name for d in dims),
            index=tuple(d.index for d in dims),
            extent=tuple(d.extent for d in dims),
            far_offset=a.storage.offset + self._gather_offset(a),
            far_strides=tuple(d.stride for d in dims),
            outside=outside.do if outside else "never",
            gather=a.type.name in self.implementation.gather,
        )
        return operand, None

    def _dims(self, a: _Actual) -> list[_Dim]:
        result: list[_Dim] = []
        logical = _logical_names(a.type, len(a.shape))
        position = 0
        for d, index in zip(a.type.dims, self._index(a), strict=True):
            length = self._length(a, d)
            if d.startswith("*"):
                assert isinstance(index, Name)
                result.extend(self._group_dims(a, d.lower(), index.name, logical))
            else:
                name = d.lower()
                stride = a.storage.strides[position]
                bound = None if index is None else self._bound_index(a, index)
                result.append(_Dim(name, name, bound, a.shape[position], stride, (logical[position],)))
            position += length
        return result

    def _group_dims(self, a: _Actual, token: str, group: str, logical: tuple[str, ...]) -> list[_Dim]:
        member = next(m for m in self.members[group] if m.operand == a.name)
        pairs = zip(self.folded[group], self.groups[group], strict=True)
        return [_group_dim(member, token, f, name, logical) for f, name in pairs]

    def _bound_index(self, a: _Actual, index: Expr) -> Expr:
        """The map in terms of axes only."""
        env = {k: v for k, v in self.env.items() if k not in dict(self.kernel.axes)}
        for d in a.type.dims:
            value = env.get(d)
            if a.type.variadic and isinstance(value, tuple):
                env[d] = value[a.part]
        result = substitute(substitute(index, env), self._single())
        free = names(result) - set(dict(self.kernel.axes))
        if free:
            raise DeclinedError(f"the index of {a.name} reads {sorted(free)[0]}, which is no number here")
        return result

    def _ordered(self, a: _Actual, dims: list[_Dim]) -> list[_Dim]:
        """Dims in L1 order; declines an activation whose elements do not run that way."""
        wanted = self.implementation.orders.get(a.type.name)
        if isinstance(wanted, tuple):
            ordered = _by_tokens(dims, wanted)
            if not a.constant:
                self._check_demanded(a, ordered, " ".join(wanted))
            return ordered
        if any(d.grouped for d in dims):
            return self._ordered_group(a, dims, wanted)
        if wanted is None:
            if not a.constant:
                self._check_demanded(a, dims, " ".join(d.name for d in dims))
            return dims
        return self._ordered_as_stored(a, dims, wanted)

    def _check_demanded(self, a: _Actual, dims: list[_Dim], text: str) -> None:
        """Named dims run in that order, and the innermost is the one that runs fastest; a group may lie anywhere
        outside it."""
        real = [d for d in dims if d.extent > 1]
        named = [d.stride for d in real if not d.grouped]
        falling = all(x > y for x, y in itertools.pairwise(named))
        if not falling or (real and real[-1].stride > min(d.stride for d in real)):
            raise DeclinedError(f"{a.name} is not stored in the order {text}")

    def _ordered_group(self, a: _Actual, dims: list[_Dim], wanted: str | None) -> list[_Dim]:
        """A group keeps the folded order where the operand runs in it; else `any` takes the operand's own."""
        fits = all(in_order(m, self.folded[g]) for g, ms in self.members.items() for m in ms if m.operand == a.name)
        tied = wanted is not None and wanted.startswith("same:")
        tied = tied or f"same:{a.type.name}" in self.implementation.orders.values()
        if fits or a.constant:
            return dims
        if tied:
            raise DeclinedError(f"{a.name} is stored in another order than the operands it must follow")
        grouped = iter(sorted((d for d in dims if d.grouped), key=lambda d: -d.stride))
        ordered = [next(grouped) if d.grouped else d for d in dims]
        self._check_demanded(a, ordered, " ".join(d.token for d in dims)) if any(not d.grouped for d in dims) else None
        return ordered

    def _ordered_as_stored(self, a: _Actual, dims: list[_Dim], wanted: str) -> list[_Dim]:
        """`any` and `same:x` for named dims: one permutation for all that are tied, from the one with most real
        extents."""
        base = wanted[5:] if wanted.startswith("same:") else a.type.name
        tied = [
            x
            for x in self.actuals
            if x.type.name == base or self.implementation.orders.get(x.type.name) == f"same:{base}"
        ]
        stored = [x for x in tied if not x.constant and len(x.shape) == len(dims)]
        if not stored:
            return dims
        model = max(stored, key=lambda x: sum(e > 1 for e in x.shape))
        rows = list(range(len(dims)))
        moving = sorted((r for r in rows if model.shape[r] > 1), key=lambda r: -model.storage.strides[r])
        order = [r for r in rows if model.shape[r] == 1] + moving
        ordered = [dims[r] for r in order]
        if not a.constant:
            strides = [d.stride for d in ordered if d.extent > 1]
            if any(x <= y for x, y in itertools.pairwise(strides)):
                raise DeclinedError(f"{a.name} is stored in another order than {model.name}")
        return ordered

    def _gathered(self, a: _Actual, dims: list[_Dim]) -> list[_Dim]:
        if a.type.name not in self.implementation.gather:
            return dims
        return [self._gather(a, d) for d in dims]

    def _gather(self, a: _Actual, d: _Dim) -> _Dim:
        """A dim read at every s-th element, as the dense dim of those elements."""
        line = _line(d.index, self._extents())
        if line is None or line.slope == 1:
            return d
        if line.origin < 0 or line.last >= d.extent:
            raise DeclinedError(f"{a.name} cannot be gathered: its index leaves the tensor")
        return replace(d, index=Name(line.axis), extent=self._extents()[line.axis], stride=d.stride * line.slope)

    def _gather_offset(self, a: _Actual) -> int:
        if a.type.name not in self.implementation.gather:
            return 0
        lines = [(_line(d.index, self._extents()), d) for d in self._dims(a)]
        return sum(line.origin * d.stride for line, d in lines if line is not None and line.slope > 1)

    def _constant(self, a: _Actual, dims: list[_Dim]) -> tuple[BoundOperand, Packing]:
        """A constant lies as the implementation wants it, dense; blocked dims become two."""
        wanted = self.implementation.orders.get(a.type.name)
        tokens = wanted if isinstance(wanted, tuple) else ()
        blocked = [b for t in tokens if (b := _block(t)) is not None]
        parts = [self._blocked(dims, t) for t in tokens] if blocked else dims
        parts = [d for d in parts if not (d.token.isdigit() and d.extent == 1)]
        logical = _logical_names(a.type, len(a.shape))
        order = tuple(n for d in parts for n in d.logical)
        moved = order != tuple(n for n, e in zip(logical, a.shape, strict=True) if e > 1 or n in order)
        root = f"{a.buffer}|{' '.join(order)}" if moved else a.buffer
        extents = tuple(d.extent for d in parts)
        strides = tuple(prod(extents[i + 1 :]) for i in range(len(extents)))
        operand = BoundOperand(
            name=a.name,
            buffer=a.buffer,
            root=root,
            role="const",
            dtype=a.dtype,
            itemsize=a.itemsize,
            dims=tuple(d.name for d in parts),
            index=tuple(d.index for d in parts),
            extent=extents,
            far_offset=0,
            far_strides=strides,
        )
        return operand, Packing(root, a.buffer, logical, order, prod(extents) * a.itemsize)

    @staticmethod
    def _blocked(dims: list[_Dim], token: str) -> _Dim:
        block = _block(token)
        if block is None:
            return next(d for d in dims if d.token == token)
        base, kind, size = block
        d = next(x for x in dims if x.token == base)
        if kind == "%":
            return _Dim(token, token, None, size, 0, (token,))
        index = None if d.index is None else Apply("//", (d.index, Num(size)))
        return _Dim(token, token, index, -(-d.extent // size), 0, (token,))

    # ---- axes and formulas ----

    def _single(self) -> dict[str, int]:
        """Axes of one step: their only value."""
        return {
            a: 0
            for a, text in self.kernel.axes
            if not text.startswith("*") and int(evaluate(parse_expr(text), self.env)) == 1
        }

    def _extents(self) -> dict[str, int]:
        result: dict[str, int] = {}
        for axis, text in self.kernel.axes:
            if text.startswith("*"):
                names_ = self.groups[axis]
                result.update({n: f.extent for n, f in zip(names_, self.folded[axis], strict=True)})
            else:
                result[axis] = int(evaluate(parse_expr(text), self.env))
        return result

    def _axes(self, operands: tuple[BoundOperand, ...]) -> tuple[BoundAxis, ...]:
        over = self.implementation.accumulate.over if self.implementation.accumulate else ()
        over = self._expand(over)
        whole = set(self._expand(self.implementation.whole))
        steps = self._block_steps(operands)
        outputs = [_reads(o) for o in operands if o.role == "out"]
        result = []
        for axis, extent in self._extents().items():
            reduced = any(axis not in reads for reads in outputs) and axis not in over
            step, limit = self._tile_rule(axis)
            step = lcm(step, steps.get(axis, 1))
            if limit is not None and limit < extent:
                limit = max(step, limit // step * step)
            result.append(BoundAxis(axis, extent, axis in whole or reduced, step, limit))
        return tuple(result)

    def _expand(self, axes: Sequence[str]) -> tuple[str, ...]:
        return tuple(n for a in axes for n in self.groups.get(a, (a,)))

    def _tile_rule(self, axis: str) -> tuple[int, int | None]:
        rules = self.implementation.tile or {}
        group = next((g for g, ns in self.groups.items() if axis in ns), axis)
        rule = rules.get(axis) or rules.get(group)
        if rule is None:
            return 1, None
        step = 1 if rule.step is None else int(evaluate(rule.step, self.env))
        limit = None if rule.max is None else int(evaluate(rule.max, self.env))
        if step < 1 or (limit is not None and limit < 1):
            raise DeclinedError(f"the tile rule of {axis} gives step {step}, max {limit}")
        return step, limit

    def _block_steps(self, operands: tuple[BoundOperand, ...]) -> dict[str, int]:
        """An axis that walks a blocked dim starts its tiles at whole blocks."""
        result: dict[str, int] = {}
        for o in operands:
            for index in o.index:
                if (
                    o.role == "const"
                    and isinstance(index, Apply)
                    and index.fn == "//"
                    and isinstance(index.args[1], Num)
                ):
                    size = int(index.args[1].value)
                    for axis in sorted(names(index.args[0])):
                        result[axis] = lcm(result.get(axis, 1), self._axis_step(o, index.args[0], axis, size))
        return result

    def _axis_step(self, o: BoundOperand, index: Expr, axis: str, size: int) -> int:
        """The step of `axis` that moves `index` by whole blocks."""
        extents = self._extents()
        if extents[axis] == 1:
            return 1
        zero = dict.fromkeys(extents, 0)
        slope = int(evaluate(index, {**zero, axis: 1})) - int(evaluate(index, zero))
        if slope % size == 0:
            return 1
        if slope != 1:
            raise DeclinedError(f"{axis} moves {o.name} by {slope} elements, its blocks have {size}")
        return size

    def _formula(self, expr: Expr) -> Expr:
        """Sizes and attributes as numbers; `numel(i)` of a group as a product of its axes."""
        tiles = set(self._extents()) | set(self.groups)
        env = {k: v for k, v in self.env.items() if k not in tiles and not isinstance(v, str)}
        return substitute(self._ungrouped(expr), env)

    def _ungrouped(self, expr: Expr) -> Expr:
        match expr:
            case Apply("numel", (Name(group),)) if group in self.groups:
                return _product(self.groups[group])
            case Item(group, i) if group in self.groups:
                return Name(self.groups[group][i])
            case Name(group) if group in self.groups:
                return _product(self.groups[group])
            case Apply(fn, args):
                return Apply(fn, tuple(self._ungrouped(a) for a in args))
            case ListOf(items):
                return ListOf(tuple(self._ungrouped(i) for i in items))
        return expr

    def _accumulator(self) -> BoundAccumulator | None:
        acc = self.implementation.accumulate
        if acc is None:
            return None
        index: list[Expr] = []
        for e in acc.index:
            if isinstance(e, Name) and e.name in self.groups:
                index.extend(Name(n) for n in self.groups[e.name])
            else:
                env = {k: v for k, v in self.env.items() if k not in dict(self.kernel.axes)}
                index.append(substitute(substitute(e, env), self._single()))
        return BoundAccumulator(acc.name, np.dtype(acc.dtype).itemsize, tuple(index), self._expand(acc.over))


# ---- pure leaves ----


@dataclass(frozen=True, slots=True)
class _Line:
    """origin + slope * axis, over the axis' extent up to `last`."""

    axis: str
    slope: int
    origin: int
    last: int


def _line(index: Expr | None, extents: Mapping[str, int]) -> _Line | None:
    """The index as a straight line of one axis, or None."""
    if index is None or len(names(index)) != 1:
        return None
    axis = next(iter(names(index)))
    points = np.arange(extents[axis], dtype=np.int64)
    values = np.broadcast_to(np.asarray(evaluate(index, {axis: points})), points.shape)
    slope = int(values[1] - values[0]) if len(points) > 1 else 1
    if slope < 1 or not np.array_equal(values, values[0] + slope * points):
        return None
    return _Line(axis, slope, int(values[0]), int(values[-1]))


def _reads(o: BoundOperand) -> frozenset[str]:
    return frozenset().union(*(names(i) for i in o.index if i is not None))


def _product(axes: Sequence[str]) -> Expr:
    result: Expr = Name(axes[0]) if axes else Num(1)
    for a in axes[1:]:
        result = Apply("*", (result, Name(a)))
    return result


def _by_tokens(dims: list[_Dim], tokens: tuple[str, ...]) -> list[_Dim]:
    """Dims in the order of `tokens`, a blocked dim where its outer token stands, literal extents in their own
    sequence."""
    left = list(dims)
    result: list[_Dim] = []
    for token in tokens:
        block = _block(token)
        if block is not None and block[1] == "%":
            continue
        base = block[0] if block is not None else token
        if base.startswith("*"):
            taken = [d for d in left if d.grouped and (base == "*" or d.token == base)]
        else:
            taken = [d for d in left if d.token == base][:1]
        result.extend(taken)
        left = [d for d in left if d not in taken or (d.grouped and d not in result)]
    return [*left, *result]


def _block(token: str) -> tuple[str, str, int] | None:
    m = re.fullmatch(r"(\w+)([/%])(\d+)", token)
    return None if m is None else (m[1], cast("Any", m[2]), int(m[3]))


def _logical_names(o: OperandType, rank: int) -> tuple[str, ...]:
    """Distinct names of an operand's logical axes: its dims (a literal extent by its place), d0, d1, ... inside a
    group."""
    lead = next((i for i, d in enumerate(o.dims) if d.startswith("*")), None)
    if lead is None:
        return tuple(f"d{i}" if d.isdigit() else d.lower() for i, d in enumerate(o.dims))
    tail = len(o.dims) - lead - 1
    named = [*o.dims[:lead], *[""] * (rank - lead - tail), *o.dims[lead + 1 :]]
    return tuple(f"d{i}" if not d or d[0] in "*0123456789" else d.lower() for i, d in enumerate(named))


def _group_dim(member: GroupMember, token: str, folded: FoldedAxis, name: str, logical: tuple[str, ...]) -> _Dim:
    index = axis_index(member, folded, name)
    if index is None:
        return _Dim(token, name, Num(0), 1, 0, (), True)
    own = [member.axes[j].axis for j in folded.parts]
    stood_for = tuple(logical[i] for i in own if i is not None)
    return _Dim(token, name, index, folded.extent, member.axes[folded.parts[-1]].stride, stood_for, True)
