"""A one-call graph around a kernel, in the storage orders that an implementation wants, and its binding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fusion_engine.graph import Alias, Buffer, Call, CallAttr, FusedGraph, Provenance
from fusion_engine.kernels import solve_sizes
from fusion_engine.kernels.descriptor import Implementation, Kernel, OperandType
from tiler.binding import bind
from tiler.bound import BoundCall

Operands = Mapping[str, np.ndarray]
Attrs = Mapping[str, CallAttr]
Orders = Mapping[str, Sequence[int]]
FRAME = (1, 2)  # elements in front of and behind a framed tensor, along each axis


def bind_kernel(
    kernel: Kernel,
    implementation: Implementation,
    operands: Operands,
    attrs: Attrs,
    results: Mapping[str, Sequence[int]] | None = None,
    orders: Orders | None = None,
    dtypes: Mapping[str, str] | None = None,
    framed: bool = False,
) -> tuple[FusedGraph, BoundCall] | str:
    """The graph of one call and its binding, or why the implementation does not take it.

    `results` gives output shapes that the kernel cannot tell from its inputs (sizes `given`); `orders` storage orders
    (logical axes, outermost first) of operands and results by name; else those the implementation wants; `dtypes`
    those of results that the inputs do not tell (cast). `framed`: activations lie inside larger tensors.
    """
    shapes = {n: v.shape for n, v in operands.items()} | {n: tuple(s) for n, s in (results or {}).items()}
    sizes = solve_sizes(kernel, shapes, {n: str(v.dtype) for n, v in operands.items()} | dict(dtypes or {}), attrs)
    if isinstance(sizes, str):
        return sizes
    graph = _graph(kernel, implementation, operands, attrs, sizes.shapes, sizes.dtypes, orders or {})
    graph = _framed(graph) if framed else graph
    bound = bind(kernel, implementation, graph, graph.calls[0])
    return bound if isinstance(bound, str) else (graph, bound)


def _graph(
    kernel: Kernel,
    implementation: Implementation,
    operands: Operands,
    attrs: Attrs,
    shapes: Mapping[str, tuple[int, ...]],
    dtypes: Mapping[str, str],
    orders: Orders,
) -> FusedGraph:
    types = _types(kernel, operands)
    chosen = _orders(
        implementation, types, {n: v.ndim for n, v in operands.items()} | {n: len(s) for n, s in shapes.items()}, orders
    )
    inputs = [n for n in operands if not types[n].const]
    buffers = [
        Buffer(n, str(v.dtype), v.shape, data=v)
        if types[n].const
        else Buffer(n, str(v.dtype), v.shape, order=chosen[n])
        for n, v in operands.items()
    ]
    buffers += [Buffer(n, dtypes[n], shapes[n], order=chosen[n]) for n in shapes]
    call = Call(
        "call",
        kernel.name,
        tuple((n, n) for n in operands),
        tuple((n, n) for n in shapes),
        tuple(attrs.items()),
        Provenance("test", "", "", ()),
    )
    return FusedGraph("test", tuple(buffers), (call,), tuple(inputs), tuple(shapes))


def _framed(graph: FusedGraph) -> FusedGraph:
    """Every activation a box of a tensor that goes on by FRAME on each side."""
    buffers: list[Buffer] = []
    for b in graph.buffers:
        if b.data is None and b.shape:
            before, after = FRAME
            shape = tuple(n + before + after for n in b.shape)
            buffers.append(replace(b, name=f"{b.name}.framed", shape=shape))
            b = replace(b, order=None, alias=Alias(f"{b.name}.framed", start=(before,) * len(shape)))
        buffers.append(b)
    return replace(graph, buffers=tuple(buffers))


def _types(kernel: Kernel, operands: Operands) -> dict[str, OperandType]:
    types = {o.name: o for o in kernel.operands}
    for o in kernel.inputs:
        if o.variadic:
            types |= {n: o for n in operands if n.startswith(o.name) and n[len(o.name) :].isdigit()}
    return types


def _orders(
    implementation: Implementation, types: Mapping[str, OperandType], ranks: Mapping[str, int], given: Orders
) -> dict[str, tuple[int, ...]]:
    result: dict[str, tuple[int, ...]] = {}
    for name, rank in ranks.items():
        wanted = implementation.orders.get(types[name].name)
        order = given.get(name)
        if order is None and isinstance(wanted, str) and wanted.startswith("same:"):
            order = given.get(wanted[5:])
            order = order if order is not None and len(order) == rank else None
        if order is None and isinstance(wanted, tuple):
            order = _demanded(types[name], wanted, rank)
        result[name] = tuple(order) if order is not None else tuple(range(rank))
    return result


def _demanded(operand: OperandType, wanted: Sequence[str], rank: int) -> list[int]:
    axes: dict[str, list[int]] = {}
    position, group = 0, rank - len(operand.dims) + 1
    for d in operand.dims:
        length = group if d.startswith("*") else 1
        axes[d.lower()] = list(range(position, position + length))
        position += length
    order = [a for token in wanted for a in axes.get(token, [])]
    return [a for a in range(rank) if a not in order] + order
