"""How a call is made once every root has its order: what of each operand is there, and what a copy of it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from fusion_engine.graph import Buffer, FusedGraph
from fusion_engine.ordering.choice import Decision, Site, Version, copy_cost, decide
from fusion_engine.ordering.demands import Order
from fusion_engine.ordering.domains import Domains


def decision(graph: FusedGraph, site: Site, domains: Domains, orders: Mapping[str, Order], cores: int) -> Decision:
    """The cheapest way to make a call where each root has its order of `orders`."""
    results = {n for n, _ in site.call.results}
    versions = {n: _versions(graph, b, n in results, domains, orders) for n, b in site.operands}
    copies = {n: _price(graph, b, n in results, versions[n], cores) for n, b in site.operands}
    return decide(site, versions, copies)


def _versions(
    graph: FusedGraph, buffer: Buffer, written: bool, domains: Domains, orders: Mapping[str, Order]
) -> list[Version]:
    """The chosen order, and for what is read of a graph input or output the row-major one that is there anyway."""
    root = domains.root_of[buffer.name]
    main = Version("main", domains.running(buffer.name, orders[root]))
    row_major = domains.orders[root][0]
    if written or orders[root] == row_major or not (root in graph.inputs or root in graph.outputs):
        return [main]
    return [main, Version("row", domains.running(buffer.name, row_major))]


def _price(graph: FusedGraph, buffer: Buffer, written: bool, versions: Sequence[Version], cores: int) -> float:
    """A copy of the operand; where no strides express it, of what the reshape looks at (nothing is written there)."""
    if any(v.order is not None for v in versions):
        return copy_cost(buffer, cores)
    if written:
        return inf
    total = copy_cost(buffer, cores)
    while buffer.alias is not None and not buffer.alias.reshape:
        buffer = graph.buffer[buffer.alias.of]
    return max(total, copy_cost(buffer, cores))
