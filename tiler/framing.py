"""Which pads are made in place: the plans with them there and as calls, compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import Call, FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from tiler.frames import framing, with_frame
from tiler.schedule import Schedule

SINGLY = 4  # pads, up to which each is tried by itself, too


@dataclass(frozen=True, slots=True)
class Weighed:
    """A plan, the graph that it is of, and what plans are compared by."""

    value: tuple[float, ...]
    graph: FusedGraph
    schedule: Schedule


def best_frames(
    graph: FusedGraph, kernels: Mapping[str, Kernel], plan: Callable[[FusedGraph], Weighed]
) -> tuple[FusedGraph, Schedule]:
    """The best of the plans with every pad a call, with all in place that can be, and, where they are few, with one
    changed from the better of these; notes say of each pad what became of it. Raises what `plan` does of the graph
    as it is where no other fits."""
    pads = framing(graph, kernels)
    reasons = _placed(graph, kernels, pads)[1]
    able = [c for c in pads if c.name not in reasons]
    tried: dict[tuple[str, ...], Weighed | GapFuseError] = {}

    def consider(chosen: Sequence[Call]) -> Weighed | GapFuseError:
        key = tuple(c.name for c in chosen)
        if key not in tried:
            tried[key] = _try(plan, _placed(graph, kernels, chosen)[0])
        return tried[key]

    best = min(([], able), key=lambda chosen: _value(consider(chosen)))
    for pad in able if len(able) <= SINGLY else ():
        other = [c for c in able if (c in best) != (c is pad)]
        best = min((best, other), key=lambda chosen: _value(consider(chosen)))
    found = consider(best)
    if isinstance(found, GapFuseError):
        raise found
    notes = (_note(c, c in best, reasons.get(c.name)) for c in pads)
    return found.graph, replace(found.schedule, notes=(*found.schedule.notes, *notes))


def _placed(
    graph: FusedGraph, kernels: Mapping[str, Kernel], pads: Sequence[Call]
) -> tuple[FusedGraph, dict[str, str]]:
    """The graph with these pads in place, one after another, and why others are not, by call."""
    reasons: dict[str, str] = {}
    for pad in pads:
        placed = with_frame(graph, kernels, pad)
        if isinstance(placed, str):
            reasons[pad.name] = placed
        else:
            graph = placed
    return graph, reasons


def _try(plan: Callable[[FusedGraph], Weighed], graph: FusedGraph) -> Weighed | GapFuseError:
    try:
        return plan(graph)
    except GapFuseError as e:
        return e


def _value(found: Weighed | GapFuseError) -> tuple[bool, tuple[float, ...]]:
    return (True, ()) if isinstance(found, GapFuseError) else (False, found.value)


def _note(pad: Call, inside: bool, reason: str | None) -> str:
    if inside:
        return f"{pad.name}: its operand is made in place, only the frame is filled"
    return f"{pad.name} copies its operand: {reason or 'the plan with it in place is no better'}"
