"""The proof of a rule that rewrites: drawn cases are rewritten, the answers stay, the measure falls; near misses too
are left alone or stay right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.language.measure import weights_of
from fusion_engine.language.types import Variant
from fusion_engine.matching import lacking_operators, match
from fusion_engine.model import read_model
from fusion_engine.rewriting import Rewritten, rewrite
from fusion_engine.view import View, view, view_to_model
from gap_fuse.proof.applying import Bench
from gap_fuse.proof.cases import Arrays, Case, Outcome, draw_case
from gap_fuse.proof.choices import Choices
from gap_fuse.proof.draft import NotDrawable
from gap_fuse.proof.evaluating import by_onnxruntime, in_float64
from gap_fuse.proof.judging import Truth, Verdict, judge, slack_of, summands


@dataclass(frozen=True, slots=True, eq=False)
class Rework:
    """A model's view, what the rule rewrote in it, and why it declined elsewhere, the nearest miss first."""

    before: View
    after: Rewritten
    reasons: tuple[str, ...]

    def made_by(self, variant: str) -> bool:
        return any(s.variant == variant for s in self.after.steps)


def rework(bench: Bench, model: onnx.ModelProto, variant: str | None = None) -> Rework:
    """View and rewrite; reasons are those of `variant` where one is named. Raises NotDrawable: no legal model."""
    try:
        before = view(read_model(model.SerializeToString()))
    except GapFuseError as e:
        raise NotDrawable(e.diagnostics[0].message) from e
    after = rewrite(before, bench.rules)
    declines = [*after.declines, *match(after.view, bench.rules, bench.kernels, explain=True).declines]
    told = sorted((d for d in declines if variant in (None, d.variant)), key=lambda d: -d.depth)
    return Rework(before, after, tuple(dict.fromkeys(d.reason for d in told)))


def try_rewrite(bench: Bench, variant: Variant, at: int, choices: Choices) -> Outcome:
    """Draw one case of the variant and see what the rule writes in its place."""
    try:
        case = draw_case(bench, variant, None, choices)
        seen = rework(bench, case.model, variant.name)
    except NotDrawable as e:
        return Outcome(discarded=str(e), never=e.always)
    except Exception as e:  # an error of the engine itself is found too
        return Outcome(problem=("fires", f"the engine fails: {type(e).__name__}: {e}"))
    if lacking_operators(seen.before, replace(bench.rule, variants=(variant,)), bench.classes):
        return Outcome(case, discarded="it changes nothing: the view has nothing of it")
    if not seen.made_by(variant.name):
        return _declined(case, seen)
    if not lighter(bench, seen):
        return Outcome(case, problem=("measure", "what the rewrite leaves weighs no less than what stood there"))
    try:
        verdict = compare(seen, case.feeds, case.truth)
    except NotDrawable as e:
        return Outcome(case, problem=("values", f"what it leaves does not run: {e}"))
    if not verdict.passed:
        return Outcome(case, fired=(at,), problem=("values", f"what it leaves is {verdict}"))
    return Outcome(case, fired=(at,), verdicts=(verdict,))


def _declined(case: Case, seen: Rework) -> Outcome:
    """A rule's own conditions may refuse a draw, and what would be no legal replacement; nothing else may."""
    if seen.after.steps:
        return Outcome(case, declined=f"taken by the variant {seen.after.steps[0].variant}")
    excuses = [r for r in seen.reasons if "does not hold" in r or "is refused" in r]
    if excuses:
        return Outcome(case, declined=excuses[0])
    reason = seen.reasons[0] if seen.reasons else "nothing came near"
    return Outcome(case, problem=("fires", f"drawn from its own pattern, but declined: {reason}"))


def lighter(bench: Bench, seen: Rework) -> bool:
    """Whether the measure fell; an Identity only names a graph output."""
    weights = weights_of(bench.rules.rules)

    def weight(v: View) -> int:
        return sum(weights.get(n.op, 1) for n in v.nodes if n.op != "Identity")

    return weight(seen.after.view) < weight(seen.before)


def compare(seen: Rework, feeds: Arrays, truth: Truth) -> Verdict:
    """onnxruntime on what is left, against what it answered before. Raises NotDrawable: it does not run."""
    return judge(by_onnxruntime(view_to_model(seen.after.view), feeds), truth)


def wrong_rewrite(seen: Rework, model: onnx.ModelProto, feeds: Arrays, answers: Sequence[np.ndarray]) -> str | None:
    """What is wrong with the rewritten model (None: nothing), given what onnxruntime answers to the model."""
    truth = Truth(answers, in_float64(model, feeds, answers), summands(model, feeds), slack_of(model))
    try:
        verdict = compare(seen, feeds, truth)
    except NotDrawable as e:
        return f"it is rewritten, and the result does not run: {e}"
    variants = ", ".join(dict.fromkeys(s.variant for s in seen.after.steps))
    return None if verdict.passed else f"it is rewritten ({variants}), and the result is {verdict}"
