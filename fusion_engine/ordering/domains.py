"""Which storage orders are worth considering for each root buffer: row-major, and what calls near it ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from fusion_engine.graph import Buffer, FusedGraph, ViewError, resolve_storage
from fusion_engine.ordering.choice import Site, order_like
from fusion_engine.ordering.demands import Order, canonical, pull, running_order

MAX_ORDERS = 6


class Domains:
    """Candidate orders per root activation buffer, row-major first; axes of extent 1 do not count."""

    def __init__(self, graph: FusedGraph, sites: Sequence[Site]) -> None:
        self.graph = graph
        self.root_of: dict[str, str] = {b.name: graph.root(b.name) for b in graph.buffers}
        self.orders: dict[str, list[Order]] = {
            b.name: [canonical(b.shape, tuple(range(len(b.shape))))]
            for b in graph.buffers
            if b.alias is None and b.data is None
        }
        self._running: dict[tuple[str, Order], Order | None] = {}
        for site in sites:
            self._add_demands(site)
        self._spread(sites)

    def running(self, name: str, order: Order) -> Order | None:
        """How the axes of `name` run when its root is stored in `order`; None where a reshape moves bytes."""
        key = (name, order)
        if key not in self._running:
            root = self.graph.buffer[self.root_of[name]]
            self._running[key] = running_over(self.graph.buffer, name, root, order)
        return self._running[key]

    def _add_demands(self, site: Site) -> None:
        buffers = dict(site.operands)
        for way in site.ways:
            for d in way.demands:
                if d.wanted is not None:
                    self._add(buffers[d.operand], d.wanted.axes)

    def _add(self, buffer: Buffer, order: Order) -> bool:
        root = self.graph.buffer[self.root_of[buffer.name]]
        pulled = pull_to_root(self.graph.buffer, buffer, order)
        if pulled is None:
            return False
        known = self.orders[root.name]
        wanted = canonical(root.shape, pulled)
        if wanted in known or len(known) >= MAX_ORDERS:
            return False
        known.append(wanted)
        return True

    def _spread(self, sites: Sequence[Site]) -> None:
        """Operands that must run alike share what their neighbours consider, until nothing is new."""
        touching: dict[str, list[Site]] = {}
        for site in sites:
            for _, b in site.operands:
                touching.setdefault(self.root_of[b.name], []).append(site)
        todo = list(sites)
        while todo:
            site = todo.pop(0)
            for source, target, order in list(self._offers(site)):
                if source is not target and self._add(target, order):
                    todo.extend(touching[self.root_of[target.name]])

    def _offers(self, site: Site) -> Iterator[tuple[Buffer, Buffer, Order]]:
        buffers = dict(site.operands)
        for way in site.ways:
            free = [d for d in way.demands if d.wanted is None]
            for d, e in permutations(free, 2):
                if d.tied == e.tied:
                    yield from self._orders_as(buffers[d.operand], buffers[e.operand])

    def _orders_as(self, source: Buffer, target: Buffer) -> Iterator[tuple[Buffer, Buffer, Order]]:
        for order in list(self.orders[self.root_of[source.name]]):
            runs = self.running(source.name, order)
            if runs is None:
                continue
            covered = {a - len(source.shape) for a in runs}
            if {a - len(target.shape) for a, d in enumerate(target.shape) if d != 1} <= covered:
                yield source, target, order_like(target.shape, source.shape, runs)


def running_over(buffers: Mapping[str, Buffer], name: str, root: Buffer, order: Order) -> Order | None:
    """The running order of buffer `name` when `root` is stored in `order`."""
    overlaid = {**_chain(buffers, name), root.name: replace(root, order=order, data=None)}
    try:
        storage = resolve_storage(overlaid, name)
    except ViewError:
        return None
    return running_order(storage.shape, storage.strides)


def _chain(buffers: Mapping[str, Buffer], name: str) -> dict[str, Buffer]:
    chain = {}
    b = buffers[name]
    while b.alias is not None:
        chain[b.name] = b
        b = buffers[b.alias.of]
    return chain


def pull_to_root(buffers: Mapping[str, Buffer], buffer: Buffer, order: Order) -> Order | None:
    """The order of the root under which `buffer` runs in `order`, or None."""
    current: Order | None = order
    while buffer.alias is not None and current is not None:
        of = buffers[buffer.alias.of]
        current = pull(buffer.alias, buffer.shape, of.shape, current)
        buffer = of
    return current
