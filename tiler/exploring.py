"""Questions about a network on a target beside its schedule: the smallest memories, one call's Pareto set, when things
happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from fusion_engine.graph import FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from tiler.bound import BoundCall
from tiler.call_order import call_orders, in_order
from tiler.cost import align16
from tiler.decision import smallest_l1
from tiler.graph_options import call_options
from tiler.liveness import activation_lives
from tiler.memory import smallest_l2
from tiler.objective import objective_of
from tiler.options import CallOptions
from tiler.planner import Question, question
from tiler.schedule import CallPlan, Schedule
from tiler.target import Target
from tiler.timeline import Fetch, Stretch, timeline
from tiler.where import NEAR, Where


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """A point of a call's Pareto set: nothing within `l1` bytes costs less."""

    l1: int
    implementation: str
    cycles: int
    bytes: int
    transfers: int


def smallest_memories(
    graph: FusedGraph,
    kernels: Mapping[str, Kernel],
    target: Target,
    l1: int | None = None,
    minimise: str = "cycles",
    fused: bool = True,
    known: dict[object, CallOptions] | None = None,
) -> dict[str, int]:
    """The least bytes of L1 that every call fits, and of L2 that do with the given L1 (the target's where None) and
    what `order_and_schedule` would minimise; `known` as there."""
    target = target.with_budgets(l1)
    least = smallest_l1(call_options(graph, kernels, target, known=known))
    if target.budget("l1") < least:
        return {"l1": least}
    tight = target.with_budgets(l2=1)  # no copy of a constant per reader
    asked = question(graph, kernels, tight, minimise, fused, known=known)
    orders = call_orders(graph, asked.target.budget("l1"))
    return {"l1": least, "l2": min(_smallest_l2(in_order(graph, o), asked) for o in orders)}


def _smallest_l2(graph: FusedGraph, asked: Question) -> int:
    options = [asked.options[c.name] for c in graph.calls]
    return smallest_l2(graph, options, activation_lives(graph), asked.target, asked.objective, asked.fused)


def pareto(
    graph: FusedGraph,
    kernels: Mapping[str, Kernel],
    target: Target,
    schedule: Schedule,
    call: str,
    l1: int | None = None,
    minimise: str = "cycles",
    known: dict[object, CallOptions] | None = None,
) -> tuple[tuple[Tradeoff, ...], Tradeoff]:
    """The tilings of one call that nothing beats, its operands where the schedule has them, by ascending L1; and the
    one that it has. What stays in L1 before or behind the call is not in their bytes. Rows in rings and constants in
    pieces count as tensors in L2. `known` is that of `call_options`."""
    target = target.with_budgets(l1)
    plan = next(c for c in schedule.calls if c.call == call)
    where = _where(schedule, plan)
    every = call_options(graph, kernels, target, objective_of(minimise), known=known)
    options = next(o for o in every if o.call.name == call)
    found = options.frontier(where, None)
    points = tuple(
        Tradeoff(int(size), options.bound[int(names[0])].implementation, *(int(k) for k in key[1:]))
        for size, key, names in zip(found.l1, found.keys, found.ids, strict=True)
    )
    bound = next(b for b in options.bound if b.implementation == plan.implementation)
    return points, _chosen(plan, bound, where, target.cores)


def _where(schedule: Schedule, plan: CallPlan) -> Where:
    if any(o.level == "ring" for o in plan.operands):
        return NEAR
    number = schedule.calls.index(plan)
    here = {o.operand.root for o in plan.operands if o.level == "l1"}
    dying = {s.root for s in schedule.stays if s.root in here and s.last == number}
    born = {s.root for s in schedule.stays if s.root in here and s.first == number}
    ends = dying | born if plan.trailing is not None else set()
    return Where(frozenset(o.operand.root for o in plan.operands if o.level == "l3"), frozenset(here), frozenset(ends))


def _chosen(plan: CallPlan, bound: BoundCall, where: Where, cores: int) -> Tradeoff:
    """The plan's own tiling: its buffers in L1, and what ends or begins there, overlapped."""
    moved = [o for o in plan.operands if o.level not in ("l1", "ring")]
    buffers = sum(len(o.l1) * align16(o.span or o.tile_bytes) for o in moved if not o.joined)
    ends = [prod(o.extent) * o.itemsize for o in bound.operands if o.root in where.ends]
    common = 0 if plan.trailing is None else plan.trailing.bytes
    saved = align16(common) if common == min(ends, default=0) else common
    scratch = sum(plan.scratch[s.name][1] * (cores if s.per == "core" else 1) for s in bound.scratch)
    accumulator = 0 if plan.accumulator is None else align16(plan.accumulator[1])
    return Tradeoff(
        buffers + sum(map(align16, ends)) - saved + scratch + accumulator,
        plan.implementation,
        plan.total_cycles,
        sum(sum(o.bytes.values()) for o in plan.operands),
        sum(sum(o.transfers.values()) for o in plan.operands),
    )


@dataclass(frozen=True, slots=True)
class Times:
    """In cycles of one run: each call's start and end; copies from L3 by what they carry, their start and end; and per
    call the cycles spent before and in it on starting copies from L3 and waiting for them."""

    calls: tuple[tuple[float, float], ...]
    copies: tuple[tuple[str, float, float], ...]
    waited: tuple[float, ...]


def timeline_of(schedule: Schedule, target: Target) -> Times:
    """When the calls of a schedule run and copies from L3 are under way."""
    stretches = _stretches(schedule)
    begin = {s.first: s.begin for s in stretches}
    moving = [t for t in schedule.transfers if t.start >= 0]
    fetches = [Fetch(t.bytes, begin[t.start] + t.start_step, begin[t.wait] + t.wait_step) for t in moving]
    found = timeline(stretches, fetches, target.hops["l3_l2"])
    copies = [(", ".join(t.roots), a, b) for t, (a, b) in zip(moving, found.fetches, strict=True)]
    calls: list[tuple[float, float]] = []
    waited = [0.0] * len(schedule.calls)
    for s, span, lost in zip(stretches, found.stretches, found.waited, strict=True):
        calls += _shares(span, [c.total_cycles for c in schedule.calls[s.first : s.last + 1]])
        waited[s.first] = lost
    return Times(tuple(calls), (*copies, *(("", a, b) for a, b in found.streams)), tuple(waited))


def _stretches(schedule: Schedule) -> tuple[Stretch, ...]:
    rolls = {r.first: r for r in schedule.rolls}
    result: list[Stretch] = []
    first = begin = 0
    while first < len(schedule.calls):
        roll, loops = rolls.get(first), schedule.calls[first].loops
        last = first if roll is None else roll.last
        steps = (loops[0].trips if loops else 1) if roll is None else roll.steps
        here = schedule.calls[first : last + 1]
        streamed = sum(o.bytes.get("l3_l2", 0) for c in here for o in c.operands)
        result.append(Stretch(first, last, begin, steps, sum(c.total_cycles for c in here), streamed))
        first, begin = last + 1, begin + steps
    return tuple(result)


def _shares(span: tuple[float, float], cycles: Sequence[int]) -> list[tuple[float, float]]:
    """The calls of a stretch one after the other, each as long as its part of the cycles."""
    (start, end), total, done, result = span, max(sum(cycles), 1), 0, []
    for n in cycles:
        result.append((start + (end - start) * done / total, start + (end - start) * (done + n) / total))
        done += n
    return result
