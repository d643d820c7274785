"""Questions about a network on a target beside its schedule: the smallest memories, one call's Pareto set, when things
happen."""

from __future__ import annotations

from collections.abc import Mapping
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
from tiler.timeline import Fetch, Timeline, timeline


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
    asked = question(graph, kernels, target, minimise, fused)
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


def timeline_of(schedule: Schedule, target: Target) -> Timeline:
    """When the calls of a schedule run and copies from L3 are under way."""
    deep = [sum(o.bytes.get("l3_l2", 0) for o in c.operands) for c in schedule.calls]
    fetches = [Fetch(t.root, t.bytes, t.start, t.wait, t.wait) for t in schedule.transfers if t.start >= 0]
    return timeline([c.total_cycles for c in schedule.calls], deep, fetches, target.hops["l3_l2"])
