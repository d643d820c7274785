"""plan(): view, match and cover, opening function bodies until every node is covered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.believing import Check, Judge, Proof, believe, functions_named
from fusion_engine.covering import Candidate, Plan, UncoveredError, cover
from fusion_engine.covering.cost import call_cost, kernel_calls
from fusion_engine.diagnostics import Diagnostic, GapFuseError, counted
from fusion_engine.evidence import placed, proved
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import Cost, MatchResult, StaleError, match
from fusion_engine.matching.operators import callee_matches
from fusion_engine.model import Model, widen_half
from fusion_engine.outlining import outline
from fusion_engine.overloads import with_overloads
from fusion_engine.pinning import Pin, lost_pins, pinned, pins_of
from fusion_engine.rewriting import Rewritten, Step, rewrite
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
        nodes, chosen = counted(len(self.view.nodes), "node"), counted(len(self.plan.chosen), "candidate")
        return f"Planned({self.model.name!r}, {nodes}, {chosen} chosen)"

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
    pins = pins_of(model := replace(model, proto=with_overloads(model.proto)))
    model, widened = widen_half(model, kernels)
    outlined = outline(model, rules)
    cost = call_cost(cores, isa)
    judge = Judge(outlined.model, outlined.regions, rules, kernels, cost, check)
    planning = _Planning(outlined.model, rules, kernels, cores, tuple(isa), judge, pins)
    known: _Known | Planned = _Known(named_functions(outlined.model, rules), notes=(*widened, *outlined.notes))
    while isinstance(known, _Known):
        known = planning.next(known)
    return known


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known before an attempt: functions still closed, operators opened, what was said and proved so far, the
    nodes that earlier attempts left, and whether repeated nodes are searched once."""

    closed: frozenset[str]
    opened: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    lacking: tuple[Lacking, ...] = ()
    repeats: bool = True


@dataclass(frozen=True, slots=True)
class _Planning:
    """What all attempts have in common."""

    model: Model
    rules: RuleSet
    kernels: Mapping[str, Kernel]
    cores: int
    isa: tuple[str, ...]
    judge: Judge
    pins: tuple[Pin, ...]

    def next(self, known: _Known) -> _Known | Planned:
        """The plan, or what is known for the next attempt: names not believed opened, or uncovered operators."""
        rewritten = rewrite(view(self.model, known.closed, known.opened), self.rules)
        matches = match(rewritten.view, self.rules, self.kernels, self.judge.cost, repeats=known.repeats)
        believed = believe(self.judge, rewritten.view, known.closed, matches.candidates)
        known = replace(known, notes=tuple(dict.fromkeys((*known.notes, *believed.notes))))
        if believed.opened.keys() - known.opened:
            proofs = tuple(p for p in believed.opened.values() if p is not None)
            return replace(known, opened=known.opened | believed.opened.keys(), proofs=(*known.proofs, *proofs))
        return self._covered(known, self._attempt(known, rewritten, matches, believed.candidates))

    def _attempt(
        self, known: _Known, rewritten: Rewritten, matches: MatchResult, candidates: Sequence[Candidate]
    ) -> Planned:
        seen = rewritten.view
        matches = replace(
            matches,
            candidates=proved(seen, candidates, known.proofs),
            declines=rewritten.declines,
            notes=(*known.notes, *rewritten.notes, *matches.notes),
        )
        return Planned(
            self.model,
            self.rules,
            self.kernels,
            seen,
            matches,
            Plan((), 0.0, 0.0),
            closed=frozenset(n.op for n in seen.nodes if n.op in known.closed),
            opened=known.opened,
            cores=self.cores,
            isa=self.isa,
            rewrites=rewritten.steps,
        )

    def _covered(self, known: _Known, attempt: Planned) -> _Known | Planned:
        seen = attempt.view
        kept = pinned(seen, attempt.matches.candidates, self.pins, self.kernels)
        if kept.lost:
            raise lost_pins(self.model, seen, kept.lost, self.rules, self.kernels, attempt.cost, known.notes)
        try:
            chosen = cover(seen, kept.candidates, calls=kernel_calls(self.kernels))
        except UncoveredError as e:
            return self._opened(replace(known, lacking=(*known.lacking, Lacking(seen, e.nodes))), attempt, e)
        if not _complete(chosen):
            return replace(known, repeats=False)
        return replace(attempt, plan=placed(seen, chosen))

    def _opened(self, known: _Known, attempt: Planned, error: UncoveredError) -> _Known:
        """Opens the uncovered operators that have a body; raises where there is none left."""
        operators = {attempt.view.nodes[n].op for n in error.nodes}
        to_open = frozenset(op for op in operators - known.opened if _has_body(op))
        if not to_open:
            found = uncovered(self.model, known.lacking, self.rules, self.kernels, attempt.cost)
            raise NotCoveredError(found, attempt) from error
        return replace(known, opened=known.opened | to_open)


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
