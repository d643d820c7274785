"""Binds one operand: its dims in L1 order, its far strides, and for a constant the packing that the implementation
wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np

from fusion_engine.expr import Expr, Name, evaluate, names, substitute
from tiler.actuals import Actual, DeclinedError
from tiler.bound import Packing
from tiler.call_axes import CallAxes
from tiler.groups import in_order
from tiler.operand_dims import OperandDim, by_tokens, group_dim, logical_names, packed_dims
from tiler.schedule import BoundOperand


class OperandBinder:
    """Binds the operands of one call, whose axes are known."""

    def __init__(self, axes: CallAxes) -> None:
        self.axes, self.signature = axes, axes.signature
        self.kernel, self.implementation, self.env = axes.kernel, axes.implementation, axes.env

    def bind(self, a: Actual) -> tuple[BoundOperand, Packing | None]:
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
            near=self._near(a, dims),
        )
        return operand, None

    def _near(self, a: Actual, dims: list[OperandDim]) -> tuple[str, ...]:
        """Per dim of the operand's tile how the C steps along it: by a stride, by the distance of rows, or as dense."""
        if (self.implementation.align or {}).get(a.type.name, 1) > a.itemsize:
            return ("whole",) * len(dims)  # tiles inside a tensor begin anywhere
        if isinstance(self.implementation.orders.get(a.type.name), str):
            return ("stride",) * len(dims)
        outer = "pitch" if a.type.name in self.implementation.pitch else "dense"
        line = "line" if a.type.name in self.implementation.lines else outer
        inner = {len(dims) - 1: "dense", len(dims) - 3: line}
        return tuple("stride" if d.grouped else inner.get(i, outer) for i, d in enumerate(dims))

    def _dims(self, a: Actual) -> list[OperandDim]:
        result: list[OperandDim] = []
        logical = logical_names(a.type, len(a.shape))
        position = 0
        for d, index in zip(a.type.dims, self.signature.index(a), strict=True):
            length = self.signature.length(a, d)
            if d.startswith("*"):
                assert isinstance(index, Name)
                result.extend(self._group_dims(a, d.lower(), index.name, logical))
            else:
                name = d.lower()
                stride = a.storage.strides[position]
                bound = None if index is None else self._bound_index(a, index)
                result.append(OperandDim(name, name, bound, a.shape[position], stride, (logical[position],)))
            position += length
        return result

    def _group_dims(self, a: Actual, token: str, group: str, logical: tuple[str, ...]) -> list[OperandDim]:
        member = next(m for m in self.axes.members[group] if m.operand == a.name)
        pairs = zip(self.axes.folded[group], self.axes.names[group], strict=True)
        return [group_dim(member, token, f, name, logical) for f, name in pairs]

    def _bound_index(self, a: Actual, index: Expr) -> Expr:
        """The map in terms of axes only."""
        env = {k: v for k, v in self.env.items() if k not in dict(self.kernel.axes)}
        for d in a.type.dims:
            value = env.get(d)
            if a.type.variadic and isinstance(value, tuple):
                env[d] = value[a.part]
        result = substitute(substitute(index, env), self.axes.single())
        free = names(result) - set(dict(self.kernel.axes))
        if free:
            raise DeclinedError(f"the index of {a.name} reads {sorted(free)[0]}, which is no number here")
        return result

    def _ordered(self, a: Actual, dims: list[OperandDim]) -> list[OperandDim]:
        """Dims in L1 order; declines an activation whose elements do not run that way."""
        wanted = self.implementation.orders.get(a.type.name)
        if isinstance(wanted, tuple):
            ordered = by_tokens(dims, wanted)
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

    def _check_demanded(self, a: Actual, dims: list[OperandDim], text: str) -> None:
        """Named dims run in that order, and the innermost is the one that runs fastest; a group may lie anywhere
        outside it."""
        real = [d for d in dims if d.extent > 1]
        named = [d.stride for d in real if not d.grouped]
        falling = all(x > y for x, y in pairwise(named))
        if not falling or (real and real[-1].stride > min(d.stride for d in real)):
            raise DeclinedError(f"{a.name} is not stored in the order {text}")

    def _ordered_group(self, a: Actual, dims: list[OperandDim], wanted: str | None) -> list[OperandDim]:
        """A group keeps the folded order where the operand runs in it; else `any` takes the operand's own."""
        fits = all(
            in_order(m, self.axes.folded[g]) for g, ms in self.axes.members.items() for m in ms if m.operand == a.name
        )
        tied = wanted is not None and wanted.startswith("same:")
        tied = tied or f"same:{a.type.name}" in self.implementation.orders.values()
        if fits or a.constant:
            return dims
        if tied:
            raise DeclinedError(f"{a.name} is stored in another order than the operands it must follow")
        grouped = iter(sorted((d for d in dims if d.grouped), key=lambda d: -d.stride))
        ordered = [next(grouped) if d.grouped else d for d in dims]
        if any(not d.grouped for d in dims):
            self._check_demanded(a, ordered, " ".join(d.token for d in dims))
        return ordered

    def _ordered_as_stored(self, a: Actual, dims: list[OperandDim], wanted: str) -> list[OperandDim]:
        """`any` and `same:x` for named dims: one permutation for all that are tied, from the one with most real
        extents."""
        base = wanted[5:] if wanted.startswith("same:") else a.type.name
        tied = [
            x
            for x in self.signature.actuals
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
            if any(x <= y for x, y in pairwise(strides)):
                raise DeclinedError(f"{a.name} is stored in another order than {model.name}")
        return ordered

    def _gathered(self, a: Actual, dims: list[OperandDim]) -> list[OperandDim]:
        if a.type.name not in self.implementation.gather:
            return dims
        return [self._gather(a, d) for d in dims]

    def _gather(self, a: Actual, d: OperandDim) -> OperandDim:
        """A dim read at every s-th element, as the dense dim of those elements."""
        line = _line(d.index, self.axes.extents)
        if line is None or line.slope == 1:
            return d
        if line.origin < 0 or line.last >= d.extent:
            raise DeclinedError(f"{a.name} cannot be gathered: its index leaves the tensor")
        return replace(d, index=Name(line.axis), extent=self.axes.extents[line.axis], stride=d.stride * line.slope)

    def _gather_offset(self, a: Actual) -> int:
        if a.type.name not in self.implementation.gather:
            return 0
        lines = [(_line(d.index, self.axes.extents), d) for d in self._dims(a)]
        return sum(line.origin * d.stride for line, d in lines if line is not None and line.slope > 1)

    def _constant(self, a: Actual, dims: list[OperandDim]) -> tuple[BoundOperand, Packing]:
        """A constant lies as the implementation wants it, dense; blocked dims become two."""
        wanted = self.implementation.orders.get(a.type.name)
        tokens = wanted if isinstance(wanted, tuple) else ()
        parts = packed_dims(dims, tokens)
        logical = logical_names(a.type, len(a.shape))
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
