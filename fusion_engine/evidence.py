"""What led to each call of a plan: the names that were proved, and where in the file's modules its nodes lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusion_engine.believing import Proof
from fusion_engine.covering.types import Candidate, Plan
from fusion_engine.matching.facts import DEQUANTIZE, QUANTIZE
from fusion_engine.outlining import PREFIX, SCOPE, TARGET
from fusion_engine.view import FUNCTION, Scope, View, ViewNode

STRUCTURAL = ("operator", "structure")  # what the matcher says of a match that needed no name


TRUST = ("function", "operator", SCOPE, TARGET, PREFIX, "structure")
"""Kinds of evidence, the most trusted first."""


def proved(view: View, candidates: Sequence[Candidate], proofs: Sequence[Proof]) -> tuple[Candidate, ...]:
    """The candidates; those of a rule whose name was proved say so, and replace equally good, less trusted ones."""
    if not proofs:
        return tuple(candidates)
    by_place = {(p.rule, _place_of(p)): p for p in proofs}
    rules = {p.rule for p in proofs}
    told = [_proved(view, c, by_place) if c.rule in rules else c for c in candidates]
    best: dict[object, int] = {}
    for c, old in zip(told, candidates, strict=True):
        if c is not old:
            best[_same_work(c)] = min(trust(c), best.get(_same_work(c), len(TRUST)))
    return tuple(c for c in told if trust(c) <= best.get(_same_work(c), len(TRUST)))


def _same_work(c: Candidate) -> object:
    return (c.produces, frozenset(c.consumes), c.cost, len(c.calls))


def trust(c: Candidate) -> int:
    """The place of a candidate's evidence in TRUST."""
    return next((i for i, kind in enumerate(TRUST) if c.evidence.startswith(kind)), len(TRUST))


Place = tuple[Scope, ...] | str  # a module's levels or a function's call; a prefix of node names


def _place_of(proof: Proof) -> Place:
    if proof.region is None:
        return (Scope(proof.op.replace("::", "."), proof.name),)
    return proof.region.levels[-1].cls if proof.region.kind == PREFIX else proof.region.levels


def _places(node: ViewNode) -> list[Place]:
    """Everything a proof could say of this node, the innermost first."""
    functions: list[Place] = [(s,) for s in node.scopes if s.kind == FUNCTION]
    modules: list[Place] = [node.scopes[: i + 1] for i in range(len(node.scopes))]
    path = node.origins[0].split("/") if node.origins else []
    prefixes: list[Place] = ["/".join(path[:i]) for i in range(1, len(path))]
    return [*reversed(functions), *reversed(modules), *reversed(prefixes)]


def _proved(view: View, c: Candidate, by_place: Mapping[tuple[str, Place], Proof]) -> Candidate:
    if c.evidence not in STRUCTURAL:
        return c
    first, *others = _computing(view, c)
    proof = next((p for place in _places(first) if (p := by_place.get((c.rule, place))) is not None), None)
    if proof is None or (c.evidence == "operator" and proof.region is not None):
        return c
    inside = all(_place_of(proof) in _places(n) for n in others)
    return replace(c, evidence=proof.evidence) if inside else c


def placed(view: View, plan: Plan) -> Plan:
    """The plan; a match by operator or structure says in which function or module it lies."""
    return replace(plan, chosen=tuple(_placed(view, c) for c in plan.chosen))


def _placed(view: View, c: Candidate) -> Candidate:
    place = _place(_computing(view, c)) if c.evidence in STRUCTURAL else ""
    return replace(c, evidence=f"{c.evidence}, in {place}") if place else c


def _computing(view: View, c: Candidate) -> list[ViewNode]:
    """The nodes but for Q and DQ around others: no module made those, but whoever quantised."""
    nodes = [view.nodes[n] for n in sorted(c.nodes)]
    return [n for n in nodes if n.op not in (QUANTIZE, DEQUANTIZE)] or nodes


def _place(nodes: Sequence[ViewNode]) -> str:
    """The innermost function, else the innermost module instance, that all nodes lie in."""
    common = [s for s in nodes[0].scopes if all(s in n.scopes for n in nodes)] if nodes else []
    functions = [s for s in common if s.kind == FUNCTION]
    modules = [s for s in common if s.kind != FUNCTION and s.name and s.cls[:1] and _is_class(s)]
    if functions:
        return f"function {_call(functions[-1].cls)} {functions[-1].name}"
    return f"scope {modules[-1].cls} {modules[-1].name}" if modules else ""


def _call(cls: str) -> str:
    """`my.blocks.Gate.1` -> `my.blocks::Gate.1`: the number of an instance is part of the name."""
    parts = cls.split(".")
    at = -2 if parts[-1].isdigit() and len(parts) > 2 else -1
    return f"{'.'.join(parts[:at])}::{'.'.join(parts[at:])}"


def _is_class(scope: Scope) -> bool:
    """A module's class, not an operator that torch traced (`aten.gelu.default`)."""
    return scope.cls.rpartition(".")[2][:1].isupper()
