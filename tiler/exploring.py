"""Questions about a network on a target beside its schedule: the smallest memories, one call's Pareto set, when things
happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion_engine.graph import FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from tiler.call_order import call_orders, in_order
from tiler.decision import smallest_l1
from tiler.liveness import activation_lives
from tiler.memory import smallest_l2
from tiler.objective import objective_of
from tiler.options import NEAR, call_options
from tiler.planner import Question, question
from tiler.schedule import Schedule
from tiler.target import Target
from tiler.timeline import Fetch, Stretch, timeline


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
) -> dict[str, int]:
    """The least bytes of L1 that every call fits, and of L2 that do with the given L1 (the target's where None) and
    what `order_and_schedule` would minimise."""
    target = target.with_budgets(l1)
    least = smallest_l1(call_options(graph, kernels, target))
    if target.budget("l1") < least:
        return {"l1": least}
    asked = question(graph, kernels, target.with_budgets(l2=1), minimise, fused)  # no copy of a constant per reader
    orders = call_orders(graph, asked.target.budget("l1"))
    return {"l1": least, "l2": min(_smallest_l2(in_order(graph, o), asked) for o in orders)}


def _smallest_l2(graph: FusedGraph, asked: Question) -> int:
    options = [asked.options[c.name] for c in graph.calls]
    return smallest_l2(graph, options, activation_lives(graph), asked.target, asked.objective, asked.fused)


def pareto(
    graph: FusedGraph,
    kernels: Mapping[str, Kernel],
    target: Target,
    call: str,
    l1: int | None = None,
    minimise: str = "cycles",
) -> tuple[Tradeoff, ...]:
    """The tilings of one call that nothing beats, its operands in L2, by ascending L1."""
    target = target.with_budgets(l1)
    options = next(o for o in call_options(graph, kernels, target, objective_of(minimise)) if o.call.name == call)
    found = options.frontier(NEAR, None)
    return tuple(
        Tradeoff(int(size), options.bound[int(names[0])].implementation, *(int(k) for k in key[1:]))
        for size, key, names in zip(found.l1, found.keys, found.ids, strict=True)
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
