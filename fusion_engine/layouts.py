"""order_layouts(): one storage order per buffer, and copies where a call would not take what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import inf

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.graph import FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.ordering.choice import Site, copy_cost, site_of
from fusion_engine.ordering.copies import with_copies
from fusion_engine.ordering.deciding import decision
from fusion_engine.ordering.demands import Order
from fusion_engine.ordering.domains import Domains
from fusion_engine.ordering.eliminate import Factor, eliminate


def order_layouts(
    graph: FusedGraph, kernels: Mapping[str, Kernel], cores: int = 8, isa: Sequence[str] = ()
) -> FusedGraph:
    """Choose each buffer's storage order; insert `copy` calls so that some implementation accepts every call.

    Graph inputs and outputs keep row-major storage. The least sum of the calls' cycles and of the copies' bytes and
    cycles, exact where the graph is a tree or narrow (see `eliminate`). Raises GapFuseError where no implementation
    takes a call.
    """
    sites = _sites(graph, kernels, cores, isa)
    domains = Domains(graph, sites)
    orders = _choose(graph, sites, domains, cores)
    if any(decision(graph, s, domains, orders, cores).cost == inf for s in sites):  # guesses that do not go together
        orders = {root: of[0] for root, of in domains.orders.items()}
    return with_copies(graph, sites, domains, orders, kernels, cores)


def _sites(graph: FusedGraph, kernels: Mapping[str, Kernel], cores: int, isa: Sequence[str]) -> list[Site]:
    sites: list[Site] = []
    problems: list[Diagnostic] = []
    for call in graph.calls:
        site = site_of(graph, kernels[call.kernel], call, cores, isa)
        if isinstance(site, str):
            nodes = ", ".join(call.provenance.nodes)
            problems.append(Diagnostic(f"no implementation of {call.kernel} takes {call.name} ({nodes}): {site}"))
        else:
            sites.append(site)
    if problems:
        raise GapFuseError(problems)
    return sites


def _choose(graph: FusedGraph, sites: Sequence[Site], domains: Domains, cores: int) -> dict[str, Order]:
    """The order of each root."""
    roots = list(domains.orders)
    number = {r: n for n, r in enumerate(roots)}
    sizes = {number[r]: len(o) for r, o in domains.orders.items()}
    factors = [_site_factor(graph, s, domains, number, cores) for s in sites]
    for r in roots:
        if r in graph.inputs or r in graph.outputs:
            copy = copy_cost(graph.buffer[r], cores)
            costs: dict[tuple[int, ...], float] = {(n,): (copy if n else 0.0) for n in range(sizes[number[r]])}
            factors.append(Factor((number[r],), costs))
    picked = eliminate(sizes, factors)
    return {r: domains.orders[r][picked[number[r]]] for r in roots}


def _site_factor(graph: FusedGraph, site: Site, domains: Domains, number: Mapping[str, int], cores: int) -> Factor:
    roots = sorted({domains.root_of[b.name] for _, b in site.operands}, key=lambda r: number[r])
    table = {}
    for options in product(*(range(len(domains.orders[r])) for r in roots)):
        orders = {r: domains.orders[r][o] for r, o in zip(roots, options, strict=True)}
        table[options] = decision(graph, site, domains, orders, cores).cost
    return Factor(tuple(number[r] for r in roots), table)
