"""explain(): which kernel call took each node, by which rule on what evidence; why a rule did not fire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusion_engine.covering.types import Candidate, Decline
from fusion_engine.diagnostics import Diagnostic, GapFuseError, did_you_mean
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import explain_node, match
from fusion_engine.planning import Planned, describe
from fusion_engine.view import ViewNode

SHOWN = 8  # reasons and places listed
LONG = 72  # characters of a name


def explain(
    planned: Planned,
    rules: RuleSet,
    kernels: Mapping[str, Kernel],
    node: str | None = None,
    rule: str | None = None,
) -> list[str]:
    """Lines of text.

    Without `node` and `rule`: one line per node of the view. With `node` (a node's name, a result's name, or an
    operator): who took it, who else could have, and why other rules declined. With `rule`: where it fired and its best
    attempts elsewhere. Raises GapFuseError for a name that is not there.
    """
    report = _Report(planned, rules, kernels)
    lines: list[str] = []
    if node is not None:
        for n in report.nodes_named(node):
            lines += report.node(n)
    if rule is not None:
        lines += report.rule(rule)
    if node is None and rule is None:
        lines = [report.line(n) for n in planned.view.nodes]
    return lines


class _Report:
    def __init__(self, planned: Planned, rules: RuleSet, kernels: Mapping[str, Kernel]) -> None:
        self.planned, self.rules, self.kernels = planned, rules, kernels
        self.takers: dict[int, list[Candidate]] = {}
        for candidate in planned.plan.chosen:
            for n in sorted(candidate.nodes):
                self.takers.setdefault(n, []).append(candidate)

    # ---- nodes ----

    def nodes_named(self, name: str) -> list[ViewNode]:
        view = self.planned.view
        value = view.aliases.get(name, name)
        found = [n for n in view.nodes if name in n.origins or value in n.outputs or name == n.op]
        if not found:
            known = [o for n in view.nodes for o in (*n.origins, *n.outputs, n.op)]
            raise GapFuseError(
                Diagnostic(f"the model has no node `{name}`", help=did_you_mean(name, dict.fromkeys(known)))
            )
        return found

    def line(self, node: ViewNode) -> str:
        takers = "; ".join(_taken(c) for c in self.takers.get(node.index, ()))
        return f"{_name(node)} ({node.op}): {takers or 'not needed: nothing asks for its result'}"

    def node(self, node: ViewNode) -> list[str]:
        view = self.planned.view
        types = ", ".join(describe(view, i) for i in node.inputs if i is not None)
        lines = [self.line(node), f"  {node.op}({types}) -> {', '.join(describe(view, o) for o in node.outputs if o)}"]
        chosen = self.takers.get(node.index, [])
        for c in chosen:
            lines += [f"  taken by {call.kernel}: {_operands(call.operands)}" for call in c.calls]
            lines.append(f"  evidence: {c.evidence or 'its operators'}; cost {c.cost:,.0f}")
        others = [
            c for c in self.planned.matches.candidates if node.index in c.nodes and all(c is not x for x in chosen)
        ]
        lines += [
            f"  also possible: {_taken(c)}, cost {c.cost:,.0f} for {', '.join(c.produces)}" for c in others[:SHOWN]
        ]
        fired = {(c.rule, c.variant) for c in (*chosen, *others)}
        declines = explain_node(view, self.rules, self.kernels, node.index, self.planned.cost)
        return lines + _reasons([d for d in declines if (d.rule, d.variant) not in fired])

    # ---- rules ----

    def rule(self, name: str) -> list[str]:
        found = [r for r in self.rules.rules if r.name == name]
        if not found:
            hint = did_you_mean(name, [r.name for r in self.rules.rules])
            raise GapFuseError(Diagnostic(f"there is no rule `{name}`", help=hint))
        fired = [c for c in self.planned.plan.chosen if c.rule == name]
        able = [c for c in self.planned.matches.candidates if c.rule == name and all(c is not x for x in fired)]
        lines = [f"rule {name}: fired {len(fired)} times, matched {len(able)} more times that cost more"]
        lines += [f"  fired: {_taken(c)} at {', '.join(self._names(c))}" for c in fired[:SHOWN]]
        lines += [f"  not chosen: {_taken(c)} at {', '.join(self._names(c))}, cost {c.cost:,.0f}" for c in able[:SHOWN]]
        tried = match(
            self.planned.view, replace(self.rules, rules=tuple(found)), self.kernels, self.planned.cost, explain=True
        )
        return lines + self._attempts(tried.declines, {n for c in (*fired, *able) for n in c.nodes})

    def _attempts(self, declines: Sequence[Decline], taken: set[int]) -> list[str]:
        """The best failed attempt of each variant at nodes that the rule did not get."""
        ranked = sorted(declines, key=lambda d: (-d.depth, d.root in taken, d.root, d.variant))
        lines: list[str] = []
        for d in ranked:
            text = f"  declined at {_name(self.planned.view.nodes[d.root])} ({d.variant}): {d.reason}"
            if text not in lines and d.root not in taken:
                lines.append(text)
        return lines[:SHOWN] or ["  no node of the model comes near its patterns"] * (not taken)

    def _names(self, c: Candidate) -> list[str]:
        nodes = (self.planned.view.nodes[n] for n in sorted(c.nodes))
        return list(dict.fromkeys(_name(n) for n in nodes))


def _name(node: ViewNode) -> str:
    """The node's names in the file, the middle left out where an exporter wrote a novel."""
    name = " ".join(node.origins) or node.outputs[0]
    return name if len(name) <= LONG else f"{name[: LONG // 3]}...{name[-LONG * 2 // 3 :]}"


def _taken(c: Candidate) -> str:
    kernels = " + ".join(call.kernel for call in c.calls)
    return f"{kernels} by rule {c.rule} ({c.variant})" + (f", {c.evidence}" if c.evidence else "")


def _operands(operands: Sequence[tuple[str, object]]) -> str:
    return ", ".join(f"{name}={getattr(what, 'name', 'constant')}" for name, what in operands)


def _reasons(declines: Sequence[Decline]) -> list[str]:
    lines = [f"  rule {d.rule} ({d.variant}) declined: {d.reason}" for d in declines]
    return list(dict.fromkeys(lines))[:SHOWN]
