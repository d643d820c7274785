"""Lower bounds: what no schedule gets below, to stand beside its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from fusion_engine.expr import Expr, evaluate, names
from fusion_engine.graph import FusedGraph
from tiler.bound import BoundCall
from tiler.liveness import Life, end_lives, logical_bytes, most_live
from tiler.options import CallOptions
from tiler.schedule import BoundOperand, Bounds
from tiler.target import Target

ENUMERATED = 1_000_000  # index maps of more points are bounded by the extent


def touched_bytes(graph: FusedGraph, call: BoundCall, operand: BoundOperand) -> int:
    """Bytes of an operand that the call reads or writes at all, each counted once (rows that a stride skips are
    not)."""
    extents = call.extents
    touched = (
        prod(_touched(i, e, extents) for i, e in zip(operand.index, operand.extent, strict=True)) * operand.itemsize
    )
    return min(touched, graph.buffer[operand.buffer].nbytes)


def _touched(index: Expr | None, extent: int, extents: Mapping[str, int]) -> int:
    if index is None:
        return extent
    read = sorted(names(index))
    if prod(extents[a] for a in read) > ENUMERATED:
        return extent
    points = {a: np.arange(extents[a]).reshape([-1 if b == a else 1 for b in read]) for a in read}
    values = np.unique(np.asarray(evaluate(index, points)))
    return int(np.count_nonzero((values >= 0) & (values < extent)))


def call_bytes(graph: FusedGraph, call: BoundCall, stays: frozenset[str] = frozenset()) -> int:
    """Bytes between L2 and L1 that the call cannot do without, the roots of `stays` being in L1."""
    return sum(touched_bytes(graph, call, o) for o in call.operands if o.root not in stays)


def network_bounds(
    graph: FusedGraph,
    options: Sequence[CallOptions],
    per_call: int,
    lives: Sequence[Life],
    target: Target,
    kept: int | None = None,
) -> Bounds:
    """The bounds of a whole network; `per_call` is the sum of `call_bytes` over its calls, `kept` the least bytes of
    activations in L2 where that was proven."""
    constants = tuple(o.buffer for c in options for o in c.bound[0].operands if o.role == "const")
    ends = logical_bytes(graph, graph.inputs) + logical_bytes(graph, graph.outputs)
    weights = logical_bytes(graph, constants)
    live = most_live(lives, len(options))
    spare = target.budget("l2") - live
    deep = max(0, weights - max(spare, 0)) / target.hops["l3_l2"].bytes_per_cycle
    return Bounds(
        bytes_per_call=per_call,
        fused_bytes=weights + ends,
        live_bytes=live,
        kept_bytes=most_live(end_lives(graph, lives), len(options)) if kept is None else kept,
        compute_cycles=sum(c.least_cycles() for c in options),
        bandwidth_cycles={"l2_l1": int(per_call / target.hops["l2_l1"].bytes_per_cycle), "l3_l2": int(deep)},
    )
