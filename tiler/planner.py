"""The schedule of a network: options, memory, what comes together and early. The tiler's one public function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from tiler.ahead import start_ahead
from tiler.assembly import assemble
from tiler.decision import smallest_l1
from tiler.graph_options import call_options
from tiler.joining import Join, joins
from tiler.liveness import Life, activation_lives, input_roots
from tiler.memory import Memory, decide_memory
from tiler.near import TOGETHER
from tiler.objective import Objective, objective_of, value
from tiler.options import CallOptions
from tiler.rolls import Rolls
from tiler.schedule import Schedule
from tiler.settled import Settled
from tiler.tails import Early
from tiler.target import Target


def schedule(
    graph: FusedGraph,
    kernels: Mapping[str, Kernel],
    target: Target,
    l1: int | None = None,
    l2: int | None = None,
    l3: int | None = None,
    minimise: str = "cycles",
    fused: bool = True,
) -> Schedule:
    """Plan a network on a target: the tensors that stay in L1, per call the implementation, tiles, loop order and
    buffers, at the least modelled cycles; an address for every buffer; transfers of constants.

    `l1`, `l2`, `l3` are bytes for plan data in place of the target's. `minimise`: see `objective_of`; `l1` takes the
    smallest that works, and the least cycles in it; `l2` the least activations in L2 at once, and the least cycles
    with them. With `fused` off every call is by itself: nothing stays in L1. Raises GapFuseError: a call that no
    implementation takes, or a memory that is too small, with the smallest size that would do.
    """
    return planned(graph, question(graph, kernels, target.with_budgets(l1, l2, l3), minimise, fused))


@dataclass(frozen=True)
class Question:
    """What a plan is asked for, and the options of the graph's calls under it by name."""

    options: Mapping[str, CallOptions]
    target: Target
    objective: Objective
    fused: bool
    together: bool


def question(
    graph: FusedGraph,
    kernels: Mapping[str, Kernel],
    target: Target,
    minimise: str = "cycles",
    fused: bool = True,
    together: bool = True,
    known: dict[object, CallOptions] | None = None,
) -> Question:
    """With `together` off every operand is copied by commands of its own (as other tilers do; for comparisons);
    `known` is that of `call_options`. Raises GapFuseError: nothing to minimise, or a call that nothing takes."""
    objective = objective_of(minimise)
    options = call_options(graph, kernels, target, objective, together, known)
    if objective.memory == "l1":
        target = target.with_budgets(l1=smallest_l1(options))
        options = call_options(graph, kernels, target, objective, together, known)
    return Question({o.call.name: o for o in options}, target, objective, fused, together)


def planned(graph: FusedGraph, asked: Question) -> Schedule:
    """The plan of a graph in the order of its calls: of three, where the first is not the least that there could be.
    Raises GapFuseError where a memory is too small."""
    options = [asked.options[c.name] for c in graph.calls]
    lives = activation_lives(graph)
    rolls = Rolls(graph, options, asked.target, asked.objective) if asked.fused else None
    best = None
    for early in Early if asked.fused and len(options) <= TOGETHER else (Early.NONE,):
        memory = decide_memory(graph, options, lives, asked.target, asked.objective, asked.fused, early, rolls)
        found = _assembled(graph, asked, options, lives, memory)
        if best is None or value(asked.objective, found) < value(asked.objective, best):
            best = found
        if not best.gap:
            break
    assert best is not None, "something is always tried"
    return _apart(graph, asked, options, lives, best) if asked.fused and best.l3_homes else best


def _apart(
    graph: FusedGraph, asked: Question, options: Sequence[CallOptions], lives: Sequence[Life], best: Schedule
) -> Schedule:
    """The best plan, or the one in which nothing stays in L1 if that is better: what stays is chosen without knowing
    what L3 costs."""
    try:
        memory = decide_memory(graph, options, lives, asked.target, asked.objective, fused=False)
    except GapFuseError:
        return best
    found = _assembled(graph, asked, options, lives, memory)
    if value(asked.objective, best) <= value(asked.objective, found):
        return best
    said = "nothing stays in L1: where activations lie in L3, that was better than what was chosen to stay"
    return replace(found, gap=None, notes=(*found.notes, said))


def _assembled(
    graph: FusedGraph, asked: Question, options: Sequence[CallOptions], lives: Sequence[Life], memory: Memory
) -> Schedule:
    joined = _joined(memory, asked.target, exact=not asked.objective.cycles) if asked.together else ((),) * len(options)
    ahead = start_ahead(memory, joined, frozenset(input_roots(graph)), asked.target, wanted=asked.fused)
    return assemble(Settled(graph, asked.target, options, lives, memory, joined, ahead))


def _joined(memory: Memory, target: Target, exact: bool) -> tuple[tuple[Join, ...], ...]:
    """Per call the constants that come together. `exact`: for no byte more."""
    homes, hop = memory.homes, target.hops["l2_l1"]
    return tuple(
        joins(p, layout, homes.resident, hop, exact)
        for p, layout in zip(homes.picked, memory.near.layouts, strict=True)
    )
