"""What led to each call of a plan: the names that were proved, and where in the file's modules its nodes lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusion_engine.believing import Proof
from fusion_engine.covering.types import Candidate, Plan
from fusion_engine.outlining import PREFIX, SCOPE, TARGET
from fusion_engine.view import FUNCTION, Scope, View, ViewNode

STRUCTURAL = ("operator", "structure")  # what the matcher says of a match that needed no name


TRUST = ("function", "operator", SCOPE, TARGET, PREFIX, "structure")
"""Kinds of evidence, the most trusted first."""


def proved(view: View, candidates: Sequence[Candidate], proofs: Sequence[Proof]) -> tuple[Candidate, ...]:
    """The candidates; those of a rule whose name was proved say so, and replace equally good, less trusted ones."""
    if not proofs:
        return tuple(candidates)
    by_rule: dict[str, list[Proof]] = {}
    for proof in proofs:
        by_rule.setdefault(proof.rule, []).append(proof)
    told = [_proved(view, c, by_rule.get(c.rule, ())) for c in candidates]
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


def _proved(view: View, c: Candidate, proofs: Sequence[Proof]) -> Candidate:
    nodes = [view.nodes[n] for n in sorted(c.nodes)] if proofs and c.evidence in STRUCTURAL else []
    proof = next((p for p in proofs if all(_covers(p, n) for n in nodes)), None) if nodes else None
    if proof is None or (c.evidence == "operator" and proof.region is not None):
        return c
    return replace(c, evidence=proof.evidence)


def placed(view: View, plan: Plan) -> Plan:
    """The plan; a match by operator or structure says in which function or module it lies."""
    return replace(plan, chosen=tuple(_placed(view, c) for c in plan.chosen))


def _placed(view: View, c: Candidate) -> Candidate:
    place = _place([view.nodes[n] for n in sorted(c.nodes)]) if c.evidence in STRUCTURAL else ""
    return replace(c, evidence=f"{c.evidence}, in {place}") if place else c


def _covers(proof: Proof, node: ViewNode) -> bool:
    region = proof.region
    if region is None:
        named = Scope(proof.op.replace("::", "."), proof.name)
        return any(s.kind == FUNCTION and s == named for s in node.scopes)
    if region.kind == PREFIX:
        return all(o.startswith(f"{region.levels[-1].cls}/") for o in node.origins)
    return node.scopes[: len(region.levels)] == region.levels


def _place(nodes: Sequence[ViewNode]) -> str:
    """The innermost function, else the innermost module instance, that all nodes lie in."""
    common = [s for s in nodes[0].scopes if all(s in n.scopes for n in nodes)] if nodes else []
    functions = [s for s in common if s.kind == FUNCTION]
    modules = [s for s in common if s.kind != FUNCTION and s.name and s.cls[:1] and _is_class(s)]
    if functions:
        domain, _, name = functions[-1].cls.rpartition(".")
        return f"function {domain}::{name} {functions[-1].name}"
    return f"scope {modules[-1].cls} {modules[-1].name}" if modules else ""


def _is_class(scope: Scope) -> bool:
    """A module's class, not an operator that torch traced (`aten.gelu.default`)."""
    return scope.cls.rpartition(".")[2][:1].isupper()
