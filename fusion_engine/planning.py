"""plan(): view, match and cover, opening function bodies until every node is covered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.believing import Check, Judge, Proof, believe, functions_named
from fusion_engine.covering import Plan, UncoveredError, cover
from fusion_engine.covering.cost import call_cost, kernel_calls
from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.evidence import placed, proved
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import Cost, MatchResult, StaleError, match
from fusion_engine.matching.operators import callee_matches
from fusion_engine.model import Model, widen_half
from fusion_engine.outlining import outline
from fusion_engine.overloads import with_overloads
from fusion_engine.pinning import lost_pins, pinned, pins_of
from fusion_engine.rewriting import Step, rewrite
from fusion_engine.uncovered import Lacking, uncovered
from fusion_engine.view import View, operator, view


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
                raise NotCoveredError(uncovered(model, lacking, rules, kernels, cost), attempt) from e
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
