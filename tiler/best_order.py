"""The plan of a network in the best order of its calls, of those that `call_orders` proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from tiler.call_order import CallOrder, call_orders, in_order
from tiler.decision import TooSmallError
from tiler.framing import Weighed, best_frames
from tiler.objective import value
from tiler.options import CallOptions
from tiler.planner import Question, planned, question
from tiler.schedule import Schedule
from tiler.target import Target


def order_and_schedule(
    graph: FusedGraph,
    kernels: Mapping[str, Kernel],
    target: Target,
    l1: int | None = None,
    l2: int | None = None,
    l3: int | None = None,
    minimise: str = "cycles",
    fused: bool = True,
    known: dict[object, CallOptions] | None = None,
) -> tuple[FusedGraph, Schedule]:
    """The graph with its calls in the order whose plan is best, pads in place where that is better, and that plan: see
    `schedule`.

    The order given is among those planned, and the pads as calls, so that none is worse; notes tell which were taken.
    `known` is for asking more than once: what was searched for the calls of one plan serves the next, which adds to it.
    Raises GapFuseError where no order fits, naming the smallest memory that one of them would do with.
    """
    narrowed = target.with_budgets(l1, l2, l3)
    known = {} if known is None else known  # serves all graphs that differ in their pads
    return best_frames(
        graph,
        kernels,
        lambda g: _in_best_order(g, question(g, kernels, narrowed, minimise, fused, known=known)),
    )


def _in_best_order(graph: FusedGraph, asked: Question) -> Weighed:
    orders = call_orders(graph, asked.target.budget("l1"))
    found = [(o, g, _try(g, asked)) for o in orders for g in (in_order(graph, o),)]
    plans = [(o, g, s) for o, g, s in found if isinstance(s, Schedule)]
    if not plans:
        raise min((e for *_, e in found if isinstance(e, GapFuseError)), key=_least)
    order, ordered, best = min(plans, key=lambda p: value(asked.objective, p[2]))  # of equals the first: the given one
    noted = replace(best, notes=(*best.notes, *_notes(orders, order)))
    return Weighed(value(asked.objective, best), ordered, noted)


def _try(graph: FusedGraph, asked: Question) -> Schedule | GapFuseError:
    try:
        return planned(graph, asked)
    except GapFuseError as e:
        return e


def _least(error: GapFuseError) -> int:
    return error.least if isinstance(error, TooSmallError) else 0


def _notes(orders: Sequence[CallOrder], taken: CallOrder) -> list[str]:
    """Which order was taken, where there was a choice."""
    if len(orders) == 1:
        return []
    given = orders[0]
    proven = "" if taken.least is None else f" (the least over all orders is {taken.least:,})"
    others = ", ".join(o.name for o in orders if o is not taken)
    return [
        f"order of the calls: {taken.name}, of {len(orders)} planned (also {others}); "
        f"at most {taken.live:,} B live{proven}, {given.live:,} as given"
    ]
