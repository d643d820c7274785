"""What one call pays under given storages: its best implementation and the copies in front of and behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from fusion_engine.graph import Buffer, Call, FusedGraph
from fusion_engine.kernels.descriptor import Implementation, Kernel
from fusion_engine.kernels.fitting import whole_cycles, why_not
from fusion_engine.kernels.sizes import solve_sizes
from fusion_engine.ordering.demands import Demand, Order, Shape, agree, demands, meets


@dataclass(frozen=True, slots=True)
class Way:
    """An implementation that takes the call, its cycles untiled and its demands."""

    implementation: Implementation
    cycles: float
    demands: tuple[Demand, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """A storage of an operand that is there: over which base, and how its axes run (None: no strides say it)."""

    base: str
    order: Order | None


@dataclass(frozen=True, slots=True)
class Pick:
    """What the call reads or writes: a version as it is, or (`copy_to`) another order, by a copy."""

    base: str | None
    copy_to: Order | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    cost: float
    implementation: str
    picks: Mapping[str, Pick]


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A call and what does not depend on orders. `operands` are its activations: (kernel's name, buffer)."""

    call: Call
    operands: tuple[tuple[str, Buffer], ...]
    ways: tuple[Way, ...]


def site_of(graph: FusedGraph, kernel: Kernel, call: Call, cores: int, isa: Sequence[str]) -> Site | str:
    """Prepare a call; or why no implementation takes it."""
    buffers = {n: graph.buffer[b] for n, b in (*call.operands, *call.results)}
    shapes = {n: b.shape for n, b in buffers.items()}
    sizes = solve_sizes(kernel, shapes, {n: b.dtype for n, b in buffers.items()}, dict(call.attrs))
    if isinstance(sizes, str):
        return sizes
    active = {n: b for n, b in buffers.items() if b.data is None}
    active_shapes = {n: b.shape for n, b in active.items()}
    ways, reasons = [], []
    for i in kernel.implementations:
        reason = why_not(i, sizes, isa)
        if reason is not None:
            reasons.append(reason)
            continue
        wanted = tuple(demands(kernel, i, call, active_shapes))
        ways.append(Way(i, whole_cycles(kernel, i, sizes, cores), wanted))
    if not ways:
        return "; ".join(reasons) or "it has no implementation"
    return Site(call, tuple(active.items()), tuple(ways))


def copy_cost(buffer: Buffer, cores: int) -> float:
    """Bytes written and cycles of a copy, as the cover prices calls."""
    return buffer.nbytes + 60 + 4 * -(-prod(buffer.shape) // cores)


def decide(site: Site, versions: Mapping[str, Sequence[Version]], copies: Mapping[str, float]) -> Decision:
    """The cheapest way to make the call where operand o exists in `versions[o]` and a copy of it costs `copies[o]`."""
    shapes = {n: b.shape for n, b in site.operands}
    decisions = [_decide_way(way, shapes, versions, copies) for way in site.ways]
    return min(decisions, key=lambda d: d.cost)


def _decide_way(
    way: Way, shapes: Mapping[str, Shape], versions: Mapping[str, Sequence[Version]], copies: Mapping[str, float]
) -> Decision:
    picks: dict[str, Pick] = {}
    cost = way.cycles
    for d in way.demands:
        if d.wanted is not None:
            picks[d.operand], extra = _fixed_pick(d, shapes[d.operand], versions[d.operand], copies[d.operand])
            cost += extra
    free = [d for d in way.demands if d.wanted is None]
    for anchor in dict.fromkeys(d.tied for d in free):
        members = [d.operand for d in free if d.tied == anchor]
        settled = _settled(anchor, picks, versions, shapes)
        extra, chosen = _agreeing(members, settled, shapes, versions, copies)
        picks.update(chosen)
        cost += extra
    return Decision(cost, way.implementation.name, picks)


def _fixed_pick(d: Demand, shape: Shape, versions: Sequence[Version], copy: float) -> tuple[Pick, float]:
    assert d.wanted is not None
    for v in versions:
        if v.order is not None and meets(d.wanted, shape, v.order):
            return Pick(v.base), 0.0
    return Pick(None, d.wanted.axes), copy


def _settled(
    anchor: str, picks: Mapping[str, Pick], versions: Mapping[str, Sequence[Version]], shapes: Mapping[str, Shape]
) -> tuple[Shape, Order] | None:
    """The order of an anchor that an order is demanded of: the others must follow it."""
    if anchor not in picks:
        return None
    pick = picks[anchor]
    if pick.copy_to is not None:
        return shapes[anchor], tuple(a for a in pick.copy_to if shapes[anchor][a] != 1)
    order = next(v.order for v in versions[anchor] if v.base == pick.base)
    return shapes[anchor], order or ()


def _agreeing(
    members: Sequence[str],
    settled: tuple[Shape, Order] | None,
    shapes: Mapping[str, Shape],
    versions: Mapping[str, Sequence[Version]],
    copies: Mapping[str, float],
) -> tuple[float, dict[str, Pick]]:
    """Bring operands that must run alike to one order, at the least cost of copies."""
    references = [settled] if settled is not None else _references(members, shapes, versions)
    options = []
    for reference in references:
        picks = {m: _follow(shapes[m], versions[m], *reference) for m in members}
        cost = sum(copies[m] for m, p in picks.items() if p.copy_to is not None)
        options.append((cost, picks))
    return min(options, key=lambda o: o[0])


def _references(
    members: Sequence[str], shapes: Mapping[str, Shape], versions: Mapping[str, Sequence[Version]]
) -> list[tuple[Shape, Order]]:
    """Orders worth following: those of the members with the most axes; row-major where there is none."""
    most = max(sum(d != 1 for d in shapes[m]) for m in members)
    wide = [m for m in members if sum(d != 1 for d in shapes[m]) == most]
    found = [(shapes[m], v.order) for m in wide for v in versions[m] if v.order is not None]
    row_major = tuple(a for a, d in enumerate(shapes[wide[0]]) if d != 1)
    return [*dict.fromkeys(found), (shapes[wide[0]], row_major)]


def _follow(shape: Shape, versions: Sequence[Version], like_shape: Shape, like: Order) -> Pick:
    for v in versions:
        if v.order is not None and agree(shape, v.order, like_shape, like):
            return Pick(v.base)
    return Pick(None, order_like(shape, like_shape, like))


def order_like(shape: Shape, like_shape: Shape, like: Order) -> Order:
    """An order of all axes of `shape` that runs through common axes as `like` does; the others stand in front."""
    led = [a - len(like_shape) + len(shape) for a in like]
    known = [a for a in led if 0 <= a < len(shape)]
    return (*(a for a in range(len(shape)) if a not in known), *known)
