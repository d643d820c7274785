"""The proof of a rule: drawn cases, its own tests, near misses, and what was not exercised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from fusion_engine.believing import names_function
from fusion_engine.diagnostics import Span
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.trees import walk
from fusion_engine.language.types import Alternatives, EmitEntry, OpPattern, Rewrite, Rule, RuleSet, Variant
from gap_fuse.proof.applying import Bench
from gap_fuse.proof.cases import Case, Outcome, try_case
from gap_fuse.proof.choices import Choices, Coverage, smallest
from gap_fuse.proof.examples import try_example
from gap_fuse.proof.near_misses import try_near_misses
from gap_fuse.proof.rewrites import try_rewrite
from gap_fuse.proof.types import Failure, RuleProof, VariantProof

Option = tuple[Span, int]  # an alternative, or an operator of a class: where the choice stands, and its number

CASES = 8
BASES = 2  # fired cases of every variant and emit entry that are mutated
SPARE = 40  # draws beyond what was asked for, while an alternative still waits


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried: fired cases asked for and cases mutated, of every variant and emit entry; the seed; and at
    most how many mutants of each kind are tried (None: all)."""

    cases: int = CASES
    seed: int = 0
    bases: int = BASES
    mutants: int | None = None


@dataclass(eq=False)
class _Stage:
    """One variant with one emit entry, or one of its rewrites."""

    bench: Bench
    variant: Variant
    at: int
    entry: EmitEntry | Rewrite
    effort: Effort
    coverage: Coverage = field(default_factory=Coverage)
    fired: int = 0
    cases: list[Case] = field(default_factory=list)

    def attempt(self, choices: Choices) -> Outcome:
        if isinstance(self.entry, Rewrite):
            return try_rewrite(self.bench, self.variant, self.at, choices)
        return try_case(self.bench, self.variant, self.entry, choices)

    def seed(self, number: int) -> int:
        return crc32(f"{self.effort.seed}/{self.bench.rule.name}/{self.variant.name}/{self.at}/{number}".encode())


def prove_rules(
    rules: Sequence[Rule],
    library: RuleSet,
    kernels: Mapping[str, Kernel],
    effort: Effort,
    done: Callable[[str], None] = lambda _: None,
) -> tuple[RuleProof, ...]:
    """Prove each rule alone; `done` is called with the name of each that is finished."""
    proofs: list[RuleProof] = []
    for rule in rules:
        proofs.append(prove_rule(Bench(rule, library.classes, kernels), effort))
        done(rule.name)
    return tuple(proofs)


def prove_rule(bench: Bench, effort: Effort) -> RuleProof:
    """Everything that speaks for the rule or against it. Deterministic in `effort`."""
    proof = RuleProof(bench.rule.name, bench.rule.span)
    for variant in bench.rule.variants:
        _prove_variant(bench, variant, effort, proof)
    for test in bench.rule.tests:
        failure, verdict = try_example(bench, test)
        proof.examples += 1
        proof.failures += [failure] if failure else []
        if verdict is not None and proof.variants:
            proof.variants[0].worst.add(verdict.worst, verdict.unit)
    return proof


def _prove_variant(bench: Bench, variant: Variant, effort: Effort, proof: RuleProof) -> None:
    found = VariantProof(variant.name)
    proof.variants.append(found)
    waiting = dict(options_of(bench, variant))
    for at, entry in enumerate(entries_of(bench.rule)):
        if entry.variants and variant.name not in entry.variants:
            continue
        stage = _Stage(bench, variant, at, entry, effort)
        failure = _draw_cases(stage, found, waiting)
        if failure is not None:
            proof.failures.append(failure)
            continue
        for case in bases(stage.cases, effort.bases):
            proof.failures += try_near_misses(bench, variant, case, found, stage.seed(-1), effort.mutants)
    if any(f.variant == variant.name for f in proof.failures):
        return
    if found.notes:
        proof.failures += _unproved(bench, variant, found)
    else:
        proof.failures += _not_exercised(bench, variant, found, waiting)


def _draw_cases(stage: _Stage, found: VariantProof, waiting: dict[Option, str]) -> Failure | None:
    """Draw until enough cases fired, then at the alternatives that did not; the first wrong one ends it."""
    here = dict(options_of(stage.bench, stage.variant))
    most = 4 * stage.effort.cases + SPARE + 2 * len(here)
    for number in range(most):
        if stage.fired >= stage.effort.cases:
            stage.coverage.aimed = _pending(here, waiting)
            if not stage.coverage.aimed or number >= most // 2:
                break
        choices = Choices(stage.seed(number), stage.coverage)
        outcome = stage.attempt(choices)
        if outcome.never:
            found.notes.append(outcome.discarded or "")
            break
        _count(stage, found, outcome)
        if outcome.problem is not None:
            return _failure(stage, choices, outcome)
        if stage.at in outcome.fired and outcome.case is not None:
            for key in outcome.case.draft.used:
                here.pop(key, None)
        if outcome.fired and outcome.case is not None:
            for key in outcome.case.draft.used:
                waiting.pop(key, None)
    return None


def entries_of(rule: Rule) -> tuple[EmitEntry | Rewrite, ...]:
    """What a rule does with a match: its emit entries, or its rewrites."""
    return (*rule.emit, *rule.rewrite)


def label_of(rule: Rule, at: int) -> str:
    """What an entry of the rule is called in a report."""
    entry = entries_of(rule)[at]
    return f"rewrite {at + 1}" if isinstance(entry, Rewrite) else f"{entry.calls[-1].kernel}, entry {at + 1}"


def _pending(here: Mapping[Option, str], waiting: Mapping[Option, str]) -> frozenset[Option]:
    """Alternatives count once per variant, operators of a class with every emit entry."""
    return frozenset(key for key, what in here.items() if key in waiting or not what.startswith("alternative"))


def bases(cases: Sequence[Case], most: int) -> list[Case]:
    """The cases to mutate: the one whose extents coincide most, where broadcasting hides least, then the first."""

    def coinciding(case: Case) -> int:
        extents = [d for array in case.feeds.values() for d in array.shape if d > 1]
        return len(extents) - len(set(extents))

    square = max(cases, key=coinciding, default=None)
    return [c for c in (square, *(c for c in cases if c is not square)) if c is not None][:most]


def _count(stage: _Stage, found: VariantProof, outcome: Outcome) -> None:
    if outcome.discarded is not None:
        found.discarded[outcome.discarded] += 1
        return
    found.drawn += 1
    if outcome.declined is not None:
        found.declined[outcome.declined] += 1
    for entry in outcome.fired:
        found.fired[label_of(stage.bench.rule, entry)] += 1
    for verdict in outcome.verdicts:
        found.worst.add(verdict.worst, verdict.unit)
    if stage.at in outcome.fired:
        stage.fired += 1
        stage.cases += [outcome.case] if outcome.case is not None else []


def _failure(stage: _Stage, choices: Choices, outcome: Outcome) -> Failure:
    """The failure with the smallest model that still shows it."""
    check, message = outcome.problem or ("", "")

    def replay(script: Sequence[int]) -> Outcome:
        return stage.attempt(Choices(choices.seed, None, script))

    def fails(script: Sequence[int]) -> bool:
        problem = replay(script).problem
        return problem is not None and problem[0] == check

    script = smallest(choices.taken, fails) if fails(choices.taken) else choices.taken
    last = replay(script)
    if last.problem is not None:
        outcome, (check, message) = last, last.problem
    span = stage.entry.span if check == "values" else stage.variant.span
    model = outcome.case.model if outcome.case else None
    return Failure(check, stage.bench.rule.name, stage.variant.name, message, span, model)


# ---- what must be exercised ----


def options_of(bench: Bench, variant: Variant) -> Iterator[tuple[Option, str]]:
    """Every alternative and every operator of a class in the variant's patterns: its place, and what it is called."""
    if variant.region is not None:
        for i, op in enumerate(bench.classes[variant.region]):
            yield (variant.span, i), op
        return
    for pattern in (variant.pattern, *variant.extra):
        for p in walk(pattern):
            if isinstance(p, Alternatives):
                for i in range(len(p.options)):
                    yield (p.span, i), f"alternative {i + 1}"
            elif isinstance(p, OpPattern) and p.op_class is not None:
                for i, op in enumerate(bench.classes[p.op_class]):
                    yield (p.span, i), op


def _unproved(bench: Bench, variant: Variant, found: VariantProof) -> list[Failure]:
    """A variant that cannot be drawn needs a test of its own in the rule file."""
    if any(t.kind == "fires" and t.expect == variant.name for t in bench.rule.tests):
        return []
    if names_function(variant):
        return []  # a name only proposes: the body is checked wherever the variant is used
    message = f"nothing proves it: {found.notes[0]}"
    return [Failure("not exercised", bench.rule.name, variant.name, message, variant.span)]


def _not_exercised(bench: Bench, variant: Variant, found: VariantProof, waiting: Mapping[Option, str]) -> list[Failure]:
    """Alternatives and emit entries that no drawn case fired."""
    name = bench.rule.name
    if not found.fired:
        why = next(iter([*found.declined, *found.discarded]), "every draw failed")
        return [Failure("not exercised", name, variant.name, f"no drawn case fired: {why}", variant.span)]
    failures = [
        Failure("not exercised", name, variant.name, f"no drawn case fired by {what}", span)
        for (span, _), what in waiting.items()
    ]
    for at, entry in enumerate(entries_of(bench.rule)):
        label = label_of(bench.rule, at)
        if (not entry.variants or variant.name in entry.variants) and label not in found.fired:
            reasons = [*found.declined, *found.discarded]
            why = f": {reasons[0]}" if reasons else ""
            failures.append(
                Failure("not exercised", name, variant.name, f"no drawn case fired by {label}{why}", entry.span)
            )
    return failures
