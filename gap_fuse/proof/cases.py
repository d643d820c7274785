"""One drawn case of one variant and emit entry: drawn, matched, computed and compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from fusion_engine.covering.types import Candidate
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.language.types import EmitEntry, Variant
from fusion_engine.view.noops import SAME_SHAPE
from fusion_engine.view.operators import FLIP_SIGN
from gap_fuse.proof.applying import Bench, Seen, compute, explain_left_over, look
from gap_fuse.proof.choices import Choices
from gap_fuse.proof.draft import Draft, NotDrawable, to_model
from gap_fuse.proof.evaluating import by_onnxruntime, draw_feeds, in_float64
from gap_fuse.proof.judging import Truth, Verdict, judge, slack_of, summands
from gap_fuse.proof.patterns import draw_variant
from gap_fuse.proof.storing import inner_roundings, store_captures, store_result, stored_inside

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A model drawn from the pattern, inputs for it, and what it answers."""

    draft: Draft
    model: onnx.ModelProto
    feeds: Arrays
    truth: Truth
    roundings: int


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of a draw. `fired` are emit entries that took the whole model; `problem` names (check, sentence)."""

    case: Case | None = None
    discarded: str | None = None
    never: bool = False  # no draw of this variant will do
    declined: str | None = None
    fired: tuple[int, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    problem: tuple[str, str] | None = None


def try_case(bench: Bench, variant: Variant, entry: EmitEntry, choices: Choices) -> Outcome:
    """Draw one case for the entry and see what the rule makes of it."""
    try:
        case = draw_case(bench, variant, entry, choices)
    except NotDrawable as e:
        return Outcome(discarded=str(e), never=e.always)
    try:
        seen = look(bench, case.model, variant.name)
    except NotDrawable as e:
        return Outcome(case, discarded=str(e))
    except Exception as e:  # an error of the engine itself is found too, with the model that shows it
        return Outcome(case, problem=("fires", f"the engine fails: {type(e).__name__}: {e}"))
    operators = {n.op for n in seen.view.nodes}
    if not operators or (variant.roots and not operators & variant.roots):
        return Outcome(case, discarded="it changes nothing: the view has nothing of it")
    own = tuple(c for c in seen.candidates if c.variant == variant.name)
    if not own:
        return _declined(case, seen)
    whole = [c for c in seen.whole if c.variant == variant.name]
    if not whole:
        return _partly(case, seen)
    return _compared(bench, case, seen, whole)


def _declined(case: Case, seen: Seen) -> Outcome:
    """A rule's own conditions may refuse a draw, and types that no `when` asks for; nothing else may."""
    if seen.candidates:
        return Outcome(case, declined=f"taken by the variant {seen.candidates[0].variant}")
    free = case.draft.dtype != "float32" or case.draft.integer != "int64"
    excuses = [r for r in seen.reasons if free or "does not hold" in r]
    if excuses:
        return Outcome(case, declined=excuses[0])
    if passed := _passed_through(case, seen):
        return Outcome(case, discarded=f"the view looks through {passed}, which changes nothing here")
    reason = seen.reasons[0] if seen.reasons else "nothing came near"
    return Outcome(case, problem=("fires", f"drawn from its own pattern, but declined: {reason}"))


def _passed_through(case: Case, seen: Seen) -> str | None:
    """An operator of the draw that moves elements, of which the view has fewer: pads of 0, a slice of everything."""
    drawn, left = Counter(n.op_type for n in case.draft.nodes), Counter(n.op for n in seen.view.nodes)
    return next((op for op in drawn if op in {*SAME_SHAPE, "Transpose"} and left[op] < drawn[op]), None)


def _partly(case: Case, seen: Seen) -> Outcome:
    """It fires, but not on everything: the entry aimed at may have refused by its own `when`."""
    if any(n.op == FLIP_SIGN for n in seen.view.nodes):
        return Outcome(case, discarded="uint8 is seen as int8 behind a sign flip")
    excuses = [r for r in seen.reasons if "does not hold" in r]
    if excuses:
        return Outcome(case, declined=excuses[0])
    return Outcome(case, problem=("left over", explain_left_over(seen)))


def _compared(bench: Bench, case: Case, seen: Seen, whole: Sequence[Candidate]) -> Outcome:
    fired: list[int] = []
    verdicts: list[Verdict] = []
    for chosen in whole:
        rule_entry = bench.rule.emit[chosen.emit]
        order = [seen.view.outputs.index(n) for n in chosen.produces]
        truth = replace(
            case.truth, runtime=[case.truth.runtime[i] for i in order], exact=[case.truth.exact[i] for i in order]
        )
        try:
            got = compute(seen.view, chosen, case.feeds, bench.kernels)
        except GapFuseError as e:
            return Outcome(case, problem=("values", f"emit entry {chosen.emit + 1}: {e}"))
        except Exception as e:  # the references are the kernel author's own code
            return Outcome(case, problem=("values", f"the reference fails: {type(e).__name__}: {e}"))
        verdict = judge(got, truth, case.roundings, rule_entry.within)
        fired.append(chosen.emit)
        verdicts.append(verdict)
        if not verdict.passed:
            kernel = rule_entry.calls[-1].kernel
            return Outcome(
                case, fired=tuple(fired), problem=("values", f"{kernel} (emit entry {chosen.emit + 1}) is {verdict}")
            )
    return Outcome(case, fired=tuple(fired), verdicts=tuple(verdicts))


def draw_case(bench: Bench, variant: Variant, entry: EmitEntry | None, choices: Choices) -> Case:
    """A model of the variant in the storage that the entry takes (None: as it is drawn). Raises NotDrawable."""
    draft = draw_variant(bench.rule, variant, bench.classes, choices, _asked_for(entry) if entry else None)
    if entry is not None and entry.stored:
        draft = _stored(draft, entry)
    model = to_model(draft)
    feeds = draw_feeds(model, choices.values, draft.limits)
    return Case(draft, model, feeds, truth_of(model, feeds), roundings_of(model, draft))


def _asked_for(entry: EmitEntry) -> str | None:
    """The element type that the entry's `when` names; float for what it takes through the lens."""
    if entry.stored:
        return "float32"
    found = [m for text, _ in entry.when for m in re.findall(r'dtype\(\w+\) == "(\w+)"', text)]
    return found[0] if found else None


def roundings_of(model: onnx.ModelProto, draft: Draft | None = None) -> int:
    """QuantizeLinear nodes at the results and inside: each is worth one step."""
    if draft is not None:
        return sum(n.op_type == "QuantizeLinear" for n in draft.nodes[-1:]) + inner_roundings(draft)
    return sum(n.op_type == "QuantizeLinear" for n in model.graph.node)


def _stored(draft: Draft, entry: EmitEntry) -> Draft:
    stored = store_captures(draft, entry)
    if "y" not in entry.stored:
        return stored
    names = [*stored.results, *stored_inside(stored, entry)]
    real = to_model(stored, names)
    with np.errstate(all="ignore"):
        answers = by_onnxruntime(real, draw_feeds(real, stored.choices.values, stored.limits), names)
    ranges = {n: (float(np.min(a)), float(np.max(a))) for n, a in zip(names, answers, strict=True) if a.size}
    if not all(np.isfinite(end) for span in ranges.values() for end in span):
        raise NotDrawable("the real result is not finite: what it is quantised to is nobody's promise")
    return store_result(stored, entry, ranges)


def truth_of(model: onnx.ModelProto, feeds: Arrays) -> Truth:
    """What the model answers. Raises NotDrawable where onnxruntime does not run it, or quantises what is no number."""
    runtime = by_onnxruntime(model, feeds)
    exact = in_float64(model, feeds, runtime)
    return Truth(runtime, exact, summands(model, feeds), slack_of(model))
