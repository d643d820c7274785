"""What explain() answers: who took each node, and the best attempt of each rule that did not fire. docs/explain.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fusion_engine.covering.types import Cause
from fusion_engine.diagnostics import Span

FORMAT = 1  # of the JSON document


@dataclass(frozen=True, slots=True)
class Taker:
    """A way to take nodes: chosen by the cover, or possible. `kernels` are its calls, `nodes` names in the file."""

    rule: str
    variant: str
    kernels: tuple[str, ...]
    operands: tuple[tuple[tuple[str, str], ...], ...]  # per call: the kernel's operand, and the value or "constant"
    evidence: str
    cost: float
    nodes: tuple[str, ...]
    produces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """How far a variant came at a node, and what stopped it; `source` is the rule's line at `cause.span`.

    `matched` of `needed` operators fitted; all of them where a condition, a type or a kernel declined the match.
    `alike` counts the nodes of the model where the variant stopped for the same cause.
    """

    rule: str
    variant: str
    node: str
    op: str
    cause: Cause
    source: str | None
    guilty: tuple[str, ...]
    matched: int
    needed: int
    depth: float
    alike: int = 1


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A rewrite that was made before anything was matched: what stood there (`nodes` are names in the file)."""

    rule: str
    variant: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node of the view under its names in the file; `inputs` and `outputs` are types; `rewritten`: the rules that
    made it of other nodes. Or a node of the file that is none of the view: `gone` says what became of it, `inputs` and
    `outputs` are names."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    takers: tuple[Taker, ...]
    others: tuple[Taker, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    wanted: bool = True  # False: nothing asks for its result
    rewritten: tuple[str, ...] = ()
    gone: str = ""


@dataclass(frozen=True, slots=True)
class RuleReport:
    """One rule: where it fired, where it matched but cost more, else its best attempts, nearest first.

    `lacking` are operators of which the model has none, without which no pattern of the rule can begin to match.
    """

    name: str
    span: Span
    fired: tuple[Taker, ...]
    able: tuple[Taker, ...]
    attempts: tuple[Attempt, ...]
    lacking: tuple[str, ...]
    rewrote: tuple[Rewriting, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to one question: all nodes and rules, or those that were asked for.

    `rewrites` are all that were made, in order. `notes` say which rules override others, and which searches were cut
    off.
    """

    network: str
    nodes: tuple[NodeReport, ...]
    rules: tuple[RuleReport, ...]
    notes: tuple[str, ...] = ()
    rewrites: tuple[Rewriting, ...] = ()


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """Plain values for json.dumps; the keys are documented in docs/explain.md."""
    return {
        "format": FORMAT,
        "network": explanation.network,
        "nodes": [_node(n) for n in explanation.nodes],
        "rules": [_rule(r) for r in explanation.rules],
        "rewrites": [_rewriting(r) for r in explanation.rewrites],
        "notes": list(explanation.notes),
    }


def _rewriting(r: Rewriting) -> dict[str, Any]:
    return {"rule": r.rule, "variant": r.variant, "nodes": list(r.nodes)}


def _node(n: NodeReport) -> dict[str, Any]:
    return {
        "name": n.name,
        "op": n.op,
        "inputs": list(n.inputs),
        "outputs": list(n.outputs),
        "wanted": n.wanted,
        "rewritten_by": list(n.rewritten),
        "gone": n.gone,
        "taken_by": [_taker(t) for t in n.takers],
        "also_possible": [_taker(t) for t in n.others],
        "attempts": [_attempt(a) for a in n.attempts],
    }


def _rule(r: RuleReport) -> dict[str, Any]:
    return {
        "name": r.name,
        "place": place_to_json(r.span),
        "fired": [_taker(t) for t in r.fired],
        "rewrote": [_rewriting(w) for w in r.rewrote],
        "matched_but_costs_more": [_taker(t) for t in r.able],
        "attempts": [_attempt(a) for a in r.attempts],
        "lacking": list(r.lacking),
    }


def _taker(t: Taker) -> dict[str, Any]:
    calls = [{"kernel": k, "operands": dict(o)} for k, o in zip(t.kernels, t.operands, strict=True)]
    return {
        "rule": t.rule,
        "variant": t.variant,
        "calls": calls,
        "evidence": t.evidence,
        "cost": t.cost,
        "nodes": list(t.nodes),
        "produces": list(t.produces),
    }


def _attempt(a: Attempt) -> dict[str, Any]:
    return {
        "rule": a.rule,
        "variant": a.variant,
        "node": a.node,
        "op": a.op,
        "reason": a.cause.reason,
        "had": a.cause.had,
        "want": a.cause.want,
        "help": a.cause.help,
        "place": place_to_json(a.cause.span),
        "source": a.source,
        "guilty": list(a.guilty),
        "matched": a.matched,
        "needed": a.needed,
        "depth": round(a.depth, 4),
        "alike": a.alike,
    }


def place_to_json(span: Span | None) -> dict[str, Any] | None:
    """File, 1-based line and columns (`end` exclusive), or null."""
    return None if span is None else {"file": span.file, "line": span.line, "col": span.col, "end": span.end}
