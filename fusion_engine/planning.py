"""plan(): view, match and cover, opening function bodies until every node is covered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.believing import Check, Judge, Proof, believe, functions_named
from fusion_engine.bodies import CONTROL, STAYS, inside, match_bodies
from fusion_engine.covering import Plan, UncoveredError, cover
from fusion_engine.covering.cost import call_cost, kernel_calls
from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.evidence import placed, proved
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import Cost, MatchResult, StaleError, explain_node, match
from fusion_engine.matching.operators import callee_matches
from fusion_engine.model import Model, widen_half
from fusion_engine.outlining import outline
from fusion_engine.overloads import with_overloads
from fusion_engine.pinning import lost_pins, pinned, pins_of
from fusion_engine.rewriting import Step, rewrite
from fusion_engine.view import View, ViewNode, operator, view

NEAREST = 4  # reasons shown for a node that nothing takes
SHOWN = 6  # nodes shown
START = "gap-fuse rules new NAME --from MODEL --nodes NODE"


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What planning decided, with everything it looked at.

    `closed` are the model's functions (`domain::name`) that stayed calls, `opened` the operators replaced by bodies,
    and the calls of functions that a rule named in vain or that need no name.
    `view` is what the rules that rewrite left, in the steps `rewrites`; `matches.declines` are rewrites that were
    refused; `matches.notes` says what was cut short, and which names were not believed.
    """

    model: Model
    rules: RuleSet
    kernels: Mapping[str, Kernel]
    view: View
    matches: MatchResult
    plan: Plan
    closed: frozenset[str]
    opened: frozenset[str]
    cores: int = 8
    isa: tuple[str, ...] = ()
    rewrites: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        """One line: the values print themselves, one by one."""
        return f"Planned({self.model.name!r}, {len(self.view.nodes)} nodes, {len(self.plan.chosen)} candidates chosen)"

    @property
    def cost(self) -> Cost:
        """How calls were priced."""
        return call_cost(self.cores, self.isa)


class NotCoveredError(GapFuseError):
    """No rule takes some nodes; `attempt` is the last attempt, with an empty plan."""

    def __init__(self, diagnostics: Sequence[Diagnostic], attempt: Planned) -> None:
        super().__init__(diagnostics)
        self.attempt = attempt


def plan(
    model: Model,
    rules: RuleSet,
    kernels: Mapping[str, Kernel],
    cores: int = 8,
    isa: Sequence[str] = (),
    check: Check | None = None,
) -> Planned:
    """The cheapest cover of the model by the rules' kernels, for a team of `cores` with the instruction sets `isa`.

    The kernel calls of a fused model are matched again by the rules they name and kept (`pinning.py`). What a rule
    takes by a function's or a scope's name is checked against its body (`believing.py`); `check` runs it.

    Functions of the model that a rule names stay closed at first; a closed function, or an operator with a body
    in the ONNX standard, is opened where nothing takes it. Raises NotCoveredError naming each node that stays
    uncovered, its operator, and the nearest rules with the reason why each declined.
    """
    cost = call_cost(cores, isa)
    model = replace(model, proto=with_overloads(model.proto))
    pins = pins_of(model)
    model, widened = widen_half(model, kernels)
    outlined = outline(model, rules)
    model = outlined.model
    judge = Judge(model, outlined.regions, rules, kernels, cost, check)
    proofs: dict[str, Proof] = {}
    notes = (*widened, *outlined.notes)
    closed, opened = named_functions(model, rules), frozenset[str]()
    lacking: list[Lacking] = []
    repeats = True
    while True:
        rewritten = rewrite(view(model, closed, opened), rules)
        seen = rewritten.view
        matches = match(seen, rules, kernels, cost, repeats=repeats)
        believed = believe(judge, seen, closed, matches.candidates)
        notes += tuple(n for n in believed.notes if n not in notes)
        if believed.opened.keys() - opened:
            proofs.update((call, proof) for call, proof in believed.opened.items() if proof is not None)
            opened |= believed.opened.keys()
            continue
        told = (*notes, *rewritten.notes, *matches.notes)
        candidates = proved(seen, believed.candidates, tuple(proofs.values()))
        matches = replace(matches, candidates=candidates, declines=rewritten.declines, notes=told)
        stayed = frozenset(n.op for n in seen.nodes if n.op in closed)
        nothing, steps = Plan((), 0.0, 0.0), rewritten.steps
        attempt = Planned(model, rules, kernels, seen, matches, nothing, stayed, opened, cores, tuple(isa), steps)
        kept = pinned(seen, matches.candidates, pins, kernels)
        if kept.lost:
            raise lost_pins(model, seen, kept.lost, rules, kernels, cost, notes)
        try:
            chosen = cover(seen, kept.candidates, calls=kernel_calls(kernels))
        except UncoveredError as e:
            lacking.append(Lacking(seen, e.nodes))
            operators = {seen.nodes[n].op for n in e.nodes}
            to_open = frozenset(op for op in operators - opened if _has_body(op))
            if not to_open:
                raise NotCoveredError(_uncovered(model, lacking, rules, kernels, cost), attempt) from e
            opened |= to_open
            continue
        if not _complete(chosen):
            repeats = False
            continue
        return replace(attempt, plan=placed(seen, chosen))


def _complete(chosen: Plan) -> bool:
    """Whether every candidate that repeats another can be made."""
    try:
        return all(c.calls is not None for c in chosen.chosen)
    except StaleError:
        return False


@dataclass(frozen=True, slots=True)
class Lacking:
    """An attempt at covering and the nodes it had nothing for."""

    view: View
    nodes: tuple[int, ...]


def named_functions(model: Model, rules: RuleSet) -> frozenset[str]:
    """The model's functions that a pattern with a string callee could mean."""
    globs = functions_named(rules)
    functions = [(f"{f.domain}::{f.name}", f.overload) for f in model.proto.functions]
    return frozenset(op for op, overload in functions if any(callee_matches(g, op, overload) for g in globs))


def _has_body(op: str) -> bool:
    """Whether the operator can be opened: the ONNX standard gives it a function body, or the view does."""
    if op == "Einsum":
        return True
    known = operator(op)
    return known is not None and (known.schema.has_function or known.schema.has_context_dependent_function)


# ---- nodes that nothing takes ----


def _uncovered(
    model: Model, lacking: Sequence[Lacking], rules: RuleSet, kernels: Mapping[str, Kernel], cost: Cost
) -> list[Diagnostic]:
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
