"""Binds a call to an implementation: axes, operands, packings and formulas in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np

from fusion_engine.expr import Apply, Expr, Item, ListOf, Name, Num, evaluate, names, substitute
from fusion_engine.graph import Call, FusedGraph
from fusion_engine.kernels.descriptor import Implementation, Kernel
from tiler.actuals import DeclinedError, Signature
from tiler.bound import BoundAccumulator, BoundAxis, BoundCall, BoundScratch
from tiler.call_axes import CallAxes
from tiler.contiguous import why_torn
from tiler.operand_binding import OperandBinder
from tiler.schedule import BoundOperand


def bind(
    kernel: Kernel, implementation: Implementation, graph: FusedGraph, call: Call, isa: Sequence[str] | None = None
) -> BoundCall | str:
    """Bind `call` of `graph` to `implementation`, or say in one sentence why it does not take it.

    `isa` lists the target's instruction sets (None: do not check). Reads only shapes, element types, storages and
    attributes.
    """
    try:
        return _Binder(CallAxes(Signature(kernel, implementation, graph, call, isa))).bind()
    except DeclinedError as e:
        return str(e)


class _Binder:
    def __init__(self, axes: CallAxes) -> None:
        self.axes, self.implementation, self.env = axes, axes.implementation, axes.env

    def bind(self) -> BoundCall:
        signature, binder = self.axes.signature, OperandBinder(self.axes)
        bound = [binder.bind(a) for a in signature.actuals]
        operands = tuple(b for b, _ in bound)
        axes = self._axes(operands)
        for torn in (why_torn(o, axes) for o in operands if o.role == "out"):
            if torn is not None:
                raise DeclinedError(torn)
        return BoundCall(
            call=signature.call.name,
            kernel=signature.kernel.name,
            implementation=self.implementation.name,
            axes=axes,
            groups=self.axes.names,
            operands=operands,
            packings=tuple(p for _, p in bound if p is not None),
            attrs=signature.sizes.attrs,
            cycles=self._formula(self.implementation.cycles),
            scratch=tuple(BoundScratch(s.name, self._formula(s.bytes), s.per) for s in self.implementation.scratch),
            accumulate=self._accumulator(),
            reuse=self._reuse(operands),
        )

    def _axes(self, operands: tuple[BoundOperand, ...]) -> tuple[BoundAxis, ...]:
        over = self.implementation.accumulate.over if self.implementation.accumulate else ()
        over = self.axes.expand(over)
        whole = set(self.axes.expand(self.implementation.whole))
        steps = self._block_steps(operands)
        outputs = [_reads(o) for o in operands if o.role == "out"]
        result = []
        for axis, extent in self.axes.extents.items():
            reduced = any(axis not in reads for reads in outputs) and axis not in over
            step, limit = self._tile_rule(axis)
            step = lcm(step, steps.get(axis, 1))
            if limit is not None and limit < extent:
                limit = max(step, limit // step * step)
            result.append(BoundAxis(axis, extent, axis in whole or reduced, step, limit))
        return tuple(result)

    def _reuse(self, operands: tuple[BoundOperand, ...]) -> dict[str, tuple[str, ...]]:
        """Inputs that each result may be written over; a variadic one stands for all its operands."""
        variadic = [o.name for o in self.axes.kernel.inputs if o.variadic]
        named = {o.name: next((v for v in variadic if o.name[len(v) :].isdigit()), o.name) for o in operands}
        reuse = self.implementation.reuse or {}
        return {y: tuple(n for n, v in named.items() if v in inputs) for y, inputs in reuse.items()}

    def _tile_rule(self, axis: str) -> tuple[int, int | None]:
        rules = self.implementation.tile or {}
        group = next((g for g, ns in self.axes.names.items() if axis in ns), axis)
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
        extents = self.axes.extents
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
        tiles = set(self.axes.extents) | set(self.axes.names)
        env = {k: v for k, v in self.env.items() if k not in tiles and not isinstance(v, str)}
        return substitute(self._ungrouped(expr), env)

    def _ungrouped(self, expr: Expr) -> Expr:
        match expr:
            case Apply("numel", (Name(group),)) if group in self.axes.names:
                return _product(self.axes.names[group])
            case Item(group, i) if group in self.axes.names:
                return Name(self.axes.names[group][i])
            case Name(group) if group in self.axes.names:
                return _product(self.axes.names[group])
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
            if isinstance(e, Name) and e.name in self.axes.names:
                index.extend(Name(n) for n in self.axes.names[e.name])
            else:
                env = {k: v for k, v in self.env.items() if k not in dict(self.axes.kernel.axes)}
                index.append(substitute(substitute(e, env), self.axes.single()))
        return BoundAccumulator(
            acc.name, np.dtype(acc.dtype).itemsize, tuple(index), self.axes.expand(acc.over), acc.ordered
        )


def _reads(o: BoundOperand) -> frozenset[str]:
    return frozenset().union(*(names(i) for i in o.index if i is not None))


def _product(axes: Sequence[str]) -> Expr:
    result: Expr = Name(axes[0]) if axes else Num(1)
    for a in axes[1:]:
        result = Apply("*", (result, Name(a)))
    return result
