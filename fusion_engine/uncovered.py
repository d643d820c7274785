"""Nodes that no rule takes, as the errors that a model without a plan ends in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion_engine.bodies import CONTROL, STAYS, inside, match_bodies
from fusion_engine.diagnostics import Diagnostic, Span
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import Cost, explain_node
from fusion_engine.model import Model
from fusion_engine.view import View, ViewNode

NEAREST = 4  # reasons shown for a node that nothing takes
SHOWN = 6  # nodes shown
START = "gap-fuse rules new NAME --from MODEL --nodes NODE"


@dataclass(frozen=True, slots=True)
class Lacking:
    """An attempt at covering and the nodes it had nothing for."""

    view: View
    nodes: tuple[int, ...]


def uncovered(
    model: Model, lacking: Sequence[Lacking], rules: RuleSet, kernels: Mapping[str, Kernel], cost: Cost
) -> list[Diagnostic]:
    """A diagnostic for each node that stayed uncovered to the end, with the nearest rules and why they declined."""
    where = Span(str(model.path)) if model.path is not None else None
    guilty = _as_written(lacking)
    problems = [_no_kernel(seen, node, rules, kernels, cost, where) for seen, node in guilty[:SHOWN]]
    if len(guilty) > SHOWN:
        rest = sorted({node.op for _, node in guilty[SHOWN:]})
        problems.append(Diagnostic(f"and {len(guilty) - SHOWN} more nodes, of {', '.join(rest)}", where))
    return problems


def _as_written(lacking: Sequence[Lacking]) -> list[tuple[View, ViewNode]]:
    """The nodes that stayed uncovered to the end, each as the first attempt saw it: before its operator was opened."""
    last = lacking[-1]
    found: dict[int, tuple[View, ViewNode]] = {}
    for n in last.nodes:
        node = last.view.nodes[n]
        first = next(
            (attempt.view, attempt.view.nodes[m])
            for attempt in lacking
            for m in attempt.nodes
            if (attempt is last and m == n) or set(attempt.view.nodes[m].origins) & set(node.origins)
        )
        found.setdefault(id(first[1]), first)
    return list(found.values())


def _no_kernel(
    seen: View, node: ViewNode, rules: RuleSet, kernels: Mapping[str, Kernel], cost: Cost, where: Span | None
) -> Diagnostic:
    if node.op in CONTROL:
        return _stays_control(seen, node, rules, kernels, cost, where)
    name = " ".join(node.origins) or node.outputs[0]
    types = ", ".join(describe(seen, i) for i in node.inputs if i is not None)
    declines = explain_node(seen, rules, kernels, node.index, cost)
    reasons: dict[str, str] = {}
    for d in declines:
        place = f" ({d.cause.span})" if d.cause.span is not None else ""
        reasons.setdefault(f"rule {d.rule} ({d.variant})", f"{d.reason}{place}")
    notes = tuple(f"{who} declined: {why}" for who, why in list(reasons.items())[:NEAREST])
    help = f"write a rule for it: {START}" if notes else f"no rule mentions {node.op}; write one: {START}"
    return Diagnostic(f"no rule takes the node {name}: {node.op}({types})", where, help, notes=notes)


def _stays_control(
    seen: View, node: ViewNode, rules: RuleSet, kernels: Mapping[str, Kernel], cost: Cost, where: Span | None
) -> Diagnostic:
    """Control flow that is not settled at compile time, with what is inside."""
    name = " ".join(node.origins) or node.outputs[0]
    notes = inside(node, match_bodies(seen, rules, kernels, cost))
    help = "make it a constant of the model; then the body is straight nodes, which rules take"
    return Diagnostic(f"the {node.op} `{name}` stays control flow: {STAYS[node.op]}", where, help, notes=notes)


def describe(seen: View, value: str) -> str:
    """A value's type in a few characters: `float32[1, 3, ?]`."""
    known = seen.values[value]
    shape = "?" if known.shape is None else ", ".join("?" if d is None else str(d) for d in known.shape)
    return f"{'const ' if known.const is not None else ''}{known.dtype or '?'}[{shape}]"
