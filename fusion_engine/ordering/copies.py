"""The graph in its chosen orders, with `copy` calls where one stored order does not do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import Buffer, Call, FusedGraph, Provenance, ViewError, resolve_storage
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.ordering.choice import Pick, Site
from fusion_engine.ordering.deciding import decision
from fusion_engine.ordering.demands import Order, canonical, pull, running_order
from fusion_engine.ordering.domains import Domains

COPY = "copy"


def with_copies(
    graph: FusedGraph,
    sites: Sequence[Site],
    domains: Domains,
    orders: Mapping[str, Order],
    kernels: Mapping[str, Kernel],
    cores: int,
) -> FusedGraph:
    """Store each root in its order of `orders`, and copy where a call takes or writes another. Raises GapFuseError
    where a copy is needed and `kernels` has no `copy`."""
    return _Rewriter(graph, domains, orders, kernels, cores).run(sites)


class _Rewriter:
    """Builds the ordered graph: buffers get their orders, copies stand where they are first needed."""

    def __init__(
        self,
        graph: FusedGraph,
        domains: Domains,
        orders: Mapping[str, Order],
        kernels: Mapping[str, Kernel],
        cores: int,
    ) -> None:
        self.graph, self.domains, self.orders, self.cores = graph, domains, orders, cores
        self.has_copy = COPY in kernels
        self.calls: list[Call] = []
        self.copied: dict[tuple[str, Order], str] = {}
        self.counts = Counter(c.kernel for c in graph.calls)
        self.main: dict[str, str] = {}
        self.buffers: dict[str, Buffer] = {}
        self.last_writer = self._last_writers()
        for b in graph.buffers:
            self._keep(b)

    def _last_writers(self) -> dict[str, str]:
        return {self.domains.root_of[b]: c.name for c in self.graph.calls for _, b in c.results}

    def _keep(self, b: Buffer) -> None:
        if b.data is not None or b.alias is not None:
            self.buffers[b.name] = b
            return
        order = self.orders[b.name]
        identity = tuple(range(len(b.shape)))
        stored = None if order == canonical(b.shape, identity) else order
        self.main[b.name] = b.name
        if stored is None or not (b.name in self.graph.inputs or b.name in self.graph.outputs):
            self.buffers[b.name] = replace(b, order=stored)
            return
        self.main[b.name] = f"{b.name}.work"
        self.buffers[b.name] = b
        self.buffers[self.main[b.name]] = replace(b, name=self.main[b.name], order=stored)

    def run(self, sites: Sequence[Site]) -> FusedGraph:
        for name in self.graph.inputs:
            if self.main.get(name, name) != name:
                self.copy(name, self.main[name], Provenance("layout", "copy", "a graph input comes row-major", ()))
        for site in sites:
            self.site(site)
        buffers = _used(self.buffers, self.calls, (*self.graph.inputs, *self.graph.outputs))
        return FusedGraph(self.graph.name, buffers, tuple(self.calls), self.graph.inputs, self.graph.outputs)

    def site(self, site: Site) -> None:
        chosen = decision(self.graph, site, self.domains, self.orders, self.cores)
        results = {n for n, _ in site.call.results}
        after: list[tuple[str, str]] = []
        names: dict[str, str] = {}
        for operand, buffer in site.operands:
            pick = chosen.picks[operand]
            if operand in results:
                names[operand] = self.written(buffer, pick, after)
            else:
                names[operand] = self.read(buffer, pick, site.call, operand)
        call = site.call
        self.calls.append(
            replace(
                call,
                operands=tuple((o, names.get(o, b)) for o, b in call.operands),
                results=tuple((o, names.get(o, b)) for o, b in call.results),
            )
        )
        for source, target in after:
            reason = f"{call.name} writes another order than its readers take"
            self.copy(source, target, Provenance("layout", "copy", reason, call.provenance.nodes))
        for root in dict.fromkeys(self.domains.root_of[b] for _, b in call.results):
            if self.main[root] != root and root in self.graph.outputs and self.last_writer[root] == call.name:
                reason = "a graph output goes row-major"
                self.copy(self.main[root], root, Provenance("layout", "copy", reason, call.provenance.nodes))

    # ---- operands ----

    def read(self, buffer: Buffer, pick: Pick, call: Call, operand: str) -> str:
        root = self.domains.root_of[buffer.name]
        if pick.copy_to is None:
            return self.over(buffer, root if pick.base == "row" else self.main[root])
        key = (buffer.name, pick.copy_to)
        if key not in self.copied:
            reason = f"{call.name} takes {operand} in another order"
            provenance = Provenance("layout", "copy", reason, call.provenance.nodes)
            self.copied[key] = self.bring(self.over(buffer, self.main[root]), pick.copy_to, provenance)
        return self.copied[key]

    def written(self, buffer: Buffer, pick: Pick, after: list[tuple[str, str]]) -> str:
        target = self.over(buffer, self.main[self.domains.root_of[buffer.name]])
        if pick.copy_to is None:
            return target
        made = self.fresh(f"{buffer.name}.made")
        self.buffers[made] = replace(buffer, name=made, alias=None, order=self.stored(buffer, pick.copy_to))
        after.append((made, target))
        return made

    def over(self, buffer: Buffer, base: str) -> str:
        """The view `buffer` over another base than its own root: a twin of each view on the way."""
        if buffer.alias is None:
            return base
        if base == self.domains.root_of.get(buffer.name):
            return buffer.name
        return self.twin(buffer, self.over(self.graph.buffer[buffer.alias.of], base))

    def twin(self, buffer: Buffer, of: str) -> str:
        assert buffer.alias is not None
        name = f"{buffer.name}@{of}"
        self.buffers.setdefault(name, replace(buffer, name=name, alias=replace(buffer.alias, of=of)))
        return name

    def bring(self, name: str, order: Order, provenance: Provenance) -> str:
        """A copy of `name` in `order`; where no strides express it, the source of the reshape is copied first."""
        buffer = self.buffers[name]
        broken = self.first_broken(buffer)
        if broken is not None:
            name = self.mend(buffer, broken, order, provenance)
            buffer = self.buffers[name]
            storage = resolve_storage(self.buffers, name)
            if running_order(storage.shape, storage.strides) == tuple(a for a in order if buffer.shape[a] != 1):
                return name
        target = self.fresh(f"{name}.order{''.join(map(str, order))}")
        self.buffers[target] = replace(
            buffer, name=target, alias=None, order=self.stored(buffer, order), provenance=provenance
        )
        self.copy(name, target, provenance)
        return target

    def first_broken(self, buffer: Buffer) -> Buffer | None:
        """The view nearest the root that no strides express."""
        broken = None
        while buffer.alias is not None:
            try:
                resolve_storage(self.buffers, buffer.name)
            except ViewError:
                broken = buffer
            buffer = self.buffers[buffer.alias.of]
        return broken

    def mend(self, buffer: Buffer, broken: Buffer, order: Order, provenance: Provenance) -> str:
        """Copy what the broken reshape looks at, in an order that serves `order` if one does; see `buffer` there."""
        chain = [buffer]
        while chain[-1].name != broken.name:
            alias = chain[-1].alias
            assert alias is not None
            chain.append(self.buffers[alias.of])
        wanted: Order | None = order
        for view in chain:
            assert view.alias is not None
            of = self.buffers[view.alias.of]
            wanted = None if wanted is None else pull(view.alias, view.shape, of.shape, wanted)
        assert broken.alias is not None
        source = self.buffers[broken.alias.of]
        plain = tuple(range(len(source.shape)))
        for stored in dict.fromkeys((wanted or plain, plain)):
            twins = [self.bring(source.name, stored, provenance)]
            for view in reversed(chain):
                twins.append(self.twin(view, twins[-1]))
            left = self.first_broken(self.buffers[twins[-1]])
            if left is None:
                return twins[-1]
            if left.name != twins[1]:  # another reshape on the way: its source is copied as well
                return self.mend(self.buffers[twins[-1]], left, order, provenance)
        raise AssertionError(f"{broken.name} over a row-major copy of {source.name} moves bytes")

    # ---- small things ----

    def stored(self, buffer: Buffer, order: Order) -> Order | None:
        identity = canonical(buffer.shape, tuple(range(len(buffer.shape))))
        return None if canonical(buffer.shape, order) == identity else order

    def copy(self, source: str, target: str, provenance: Provenance) -> None:
        if not self.has_copy:
            raise GapFuseError(f"{target} needs the kernel `{COPY}`, which is not there")
        name = f"{COPY}_{self.counts[COPY]}"
        self.counts[COPY] += 1
        self.calls.append(Call(name, COPY, (("x", source),), (("y", target),), (), provenance))

    def fresh(self, name: str) -> str:
        number, unused = 1, name
        while unused in self.buffers:
            number += 1
            unused = f"{name}_{number}"
        return unused


def _used(buffers: Mapping[str, Buffer], calls: Sequence[Call], names: Sequence[str]) -> tuple[Buffer, ...]:
    """Buffers that are mentioned, each after what it looks at where possible: in their first sequence."""
    todo = [*names, *(b for c in calls for _, b in (*c.operands, *c.results))]
    kept: set[str] = set()
    while todo:
        name = todo.pop()
        if name in kept:
            continue
        kept.add(name)
        alias = buffers[name].alias
        if alias is not None:
            todo.append(alias.of)
    return tuple(b for n, b in buffers.items() if n in kept)
