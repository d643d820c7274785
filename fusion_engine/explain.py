"""explain(): which kernel call took each node, by which rule on what evidence; why a rule did not fire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.covering.types import Candidate, Decline
from fusion_engine.diagnostics import Diagnostic, GapFuseError, did_you_mean
from fusion_engine.explanation import Attempt, Explanation, NodeReport, Rewriting, RuleReport, Taker
from fusion_engine.folded import Gone, became, file_nodes, gone
from fusion_engine.language.types import Rule
from fusion_engine.matching import explain_node, lacking_operators, match
from fusion_engine.planning import Planned
from fusion_engine.rewriting import Step
from fusion_engine.uncovered import describe
from fusion_engine.view import ViewNode

SHOWN = 8  # attempts and other candidates kept per node or rule that was asked for


def explain(planned: Planned, node: str | None = None, rule: str | None = None) -> Explanation:
    """Who took what, and what stopped the others.

    Without `node` and `rule`: every node, and every rule with its best attempt where it did not fire. With `node` (a
    node's name, a result's name, or an operator): who took it, who else could have, and why other rules declined, or
    what became of a node of the file that was folded away. With
    `rule`: where it fired and its best attempts elsewhere. Raises GapFuseError for a name that is not there.
    """
    told = _Told(planned, _takers(planned), _steps(planned))
    every = node is None and rule is None
    nodes, away = (planned.view.nodes, ()) if every else ((), ()) if node is None else _nodes_named(planned, node)
    rules = planned.rules.rules if every else () if rule is None else _rule_named(planned, rule)
    return Explanation(
        planned.view.name,
        (*(_node(told, n, closely=not every) for n in nodes), *map(_away, away)),
        _rules(told, rules, most=1 if every else SHOWN),
        (*planned.rules.notes, *planned.matches.notes),
        tuple(Rewriting(s.rule, s.variant, s.origins) for s in planned.rewrites),
    )


@dataclass(frozen=True, eq=False)
class _Told:
    """A plan; by node the chosen candidates that contain it; by a name of the file the rewrites that touched it."""

    planned: Planned
    takers: Mapping[int, list[Candidate]]
    steps: Mapping[str, list[Step]]


def _takers(planned: Planned) -> dict[int, list[Candidate]]:
    found: dict[int, list[Candidate]] = {}
    for candidate in planned.plan.chosen:
        for n in sorted(candidate.nodes):
            found.setdefault(n, []).append(candidate)
    return found


def _steps(planned: Planned) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for step in planned.rewrites:
        for origin in step.origins[:1]:
            found.setdefault(origin, []).append(step)
    return found


def _rewritten(told: _Told, node: ViewNode) -> tuple[str, ...]:
    """The rules that made the node: it bears every name of what they took away."""
    own = set(node.origins)
    steps = [s for o in node.origins for s in told.steps.get(o, ()) if own.issuperset(s.origins)]
    return tuple(dict.fromkeys(f"{s.rule} ({s.variant})" for s in steps))


# ---- names ----


def _nodes_named(planned: Planned, name: str) -> tuple[tuple[ViewNode, ...], tuple[Gone, ...]]:
    """The nodes of the view, and those of the file that are none."""
    view = planned.view
    value = view.aliases.get(name, name)
    of_file = file_nodes(planned.model, name)
    bear = {n.index for f in of_file for n in became(view, f)}
    found = [n for n in view.nodes if name in n.origins or value in n.outputs or name == n.op or n.index in bear]
    asked = [f for f in of_file if not became(view, f)]
    if found or asked:
        return tuple(found), tuple(gone(planned.model, view, asked))
    of_graph = (t for f in planned.model.proto.graph.node for t in (f.name, *f.output, f.op_type) if t)
    known = [*(o for n in view.nodes for o in (*n.origins, *n.outputs, n.op)), *of_graph]
    hint = did_you_mean(name, dict.fromkeys(known)) or "`gap-fuse explain MODEL` lists them by call"
    raise GapFuseError(Diagnostic(f"the model has no node `{name}`", help=hint))


def _rule_named(planned: Planned, name: str) -> list[Rule]:
    found = [r for r in planned.rules.rules if r.name == name]
    if found:
        return found
    hint = did_you_mean(name, [r.name for r in planned.rules.rules]) or "`gap-fuse rules list` shows them"
    raise GapFuseError(Diagnostic(f"there is no rule `{name}`", help=hint))


def node_name(node: ViewNode) -> str:
    """The node's names in the file."""
    return " ".join(o for o in node.origins if o) or node.outputs[0]


# ---- nodes ----


def _away(node: Gone) -> NodeReport:
    return NodeReport(node.name, node.op, node.inputs, node.outputs, (), wanted=False, gone=node.fate)


def _node(told: _Told, node: ViewNode, closely: bool) -> NodeReport:
    view, chosen = told.planned.view, told.takers.get(node.index, [])
    report = NodeReport(
        node_name(node),
        node.op,
        tuple(describe(view, i) for i in node.inputs if i is not None),
        tuple(describe(view, o) for o in node.outputs if o),
        tuple(_taker(told, c) for c in chosen),
        wanted=bool(chosen) or not told.planned.plan.chosen,
        rewritten=_rewritten(told, node),
    )
    if not closely:
        return report
    others = [c for c in told.planned.matches.candidates if node.index in c.nodes and all(c is not x for x in chosen)]
    planned = told.planned
    declines = explain_node(view, planned.rules, planned.kernels, node.index, planned.cost)
    fired = {(c.rule, c.variant) for c in (*chosen, *others)}
    attempts = _attempts(told, (d for d in declines if (d.rule, d.variant) not in fired))
    return replace(report, others=tuple(_taker(told, c) for c in others[:SHOWN]), attempts=attempts[:SHOWN])


def _taker(told: _Told, c: Candidate) -> Taker:
    nodes = (node_name(told.planned.view.nodes[n]) for n in sorted(c.nodes))
    operands = (tuple((name, getattr(what, "name", "constant")) for name, what in call.operands) for call in c.calls)
    kernels = tuple(call.kernel for call in c.calls)
    evidence = c.evidence or "its operators"
    return Taker(c.rule, c.variant, kernels, tuple(operands), evidence, c.cost, tuple(dict.fromkeys(nodes)), c.produces)


# ---- rules ----


def _rules(told: _Told, rules: Sequence[Rule], most: int) -> tuple[RuleReport, ...]:
    planned = told.planned
    fired = _by_rule(planned.plan.chosen)
    chosen = {id(c) for c in planned.plan.chosen}
    able = _by_rule(c for c in planned.matches.candidates if id(c) not in chosen)
    rewrote: dict[str, list[Rewriting]] = {}
    for s in planned.rewrites:
        rewrote.setdefault(s.rule, []).append(Rewriting(s.rule, s.variant, s.origins))
    asked = [r for r in rules if most > 1 or not any(r.name in found for found in (fired, able, rewrote))]
    tried = match(planned.view, replace(planned.rules, rules=tuple(asked)), planned.kernels, planned.cost, explain=True)
    declines: dict[str, list[Decline]] = {}
    for d in (*planned.matches.declines, *tried.declines):
        declines.setdefault(d.rule, []).append(d)
    return tuple(
        replace(
            _rule(told, r, fired.get(r.name, []), able.get(r.name, []), declines.get(r.name, []), most),
            rewrote=tuple(rewrote.get(r.name, ())),
        )
        for r in rules
    )


def _by_rule(candidates: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    found: dict[str, list[Candidate]] = {}
    for c in candidates:
        found.setdefault(c.rule, []).append(c)
    return found


def _rule(
    told: _Told, rule: Rule, fired: list[Candidate], able: list[Candidate], declines: list[Decline], most: int
) -> RuleReport:
    taken = {n for c in (*fired, *able) for n in c.nodes}
    attempts = _attempts(told, (d for d in declines if d.root not in taken))
    lacking = () if fired or able else lacking_operators(told.planned.view, rule, told.planned.rules.classes)
    return RuleReport(
        rule.name,
        rule.span,
        tuple(_taker(told, c) for c in fired),
        tuple(_taker(told, c) for c in able),
        attempts[:most],
        lacking,
    )


def _attempts(told: _Told, declines: Iterable[Decline]) -> tuple[Attempt, ...]:
    """The nearest first; those that one place of one variant stopped with one sentence count as one."""
    ranked = sorted(declines, key=lambda d: (-d.depth, -d.matched, d.root, d.rule, d.variant))
    groups: dict[tuple[str, str, object, str], list[Decline]] = {}
    for d in ranked:
        groups.setdefault((d.rule, d.variant, d.cause.span, d.reason), []).append(d)
    return tuple(_attempt(told, alike[0], len({d.root for d in alike})) for alike in groups.values())


def _attempt(told: _Told, d: Decline, alike: int) -> Attempt:
    nodes = told.planned.view.nodes
    root = nodes[d.root]
    guilty = tuple(dict.fromkeys(node_name(nodes[n]) for n in d.nodes))
    source = _source(told.planned, d)
    return Attempt(
        d.rule, d.variant, node_name(root), root.op, d.cause, source, guilty, d.matched, d.needed, d.depth, alike
    )


def _source(planned: Planned, d: Decline) -> str | None:
    span = d.cause.span
    lines = planned.rules.sources.get(span.file, ()) if span is not None else ()
    return lines[span.line - 1] if span is not None and 0 < span.line <= len(lines) else None
