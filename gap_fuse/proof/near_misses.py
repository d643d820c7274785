"""Near misses: mutants of a case that fired. Each is declined, or the whole applied model is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx

from fusion_engine.covering import UncoveredError, cover
from fusion_engine.covering.types import Candidate
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.language.types import Variant
from fusion_engine.view import view_to_model
from gap_fuse.proof.applying import Bench, Seen, compute, look, names_of
from gap_fuse.proof.cases import Case
from gap_fuse.proof.draft import NotDrawable, typed
from gap_fuse.proof.evaluating import by_onnxruntime, draw_feeds, in_float64
from gap_fuse.proof.judging import Truth, judge, slack_of, summands
from gap_fuse.proof.mutations import MUTATIONS, Mutant
from gap_fuse.proof.rewrites import rework, wrong_rewrite
from gap_fuse.proof.types import Failure, MissCount, VariantProof


def try_near_misses(
    bench: Bench, variant: Variant, case: Case, found: VariantProof, seed: int, most: int | None
) -> list[Failure]:
    """Count the mutants of one case in `found`; the first wrong one of each kind is a failure."""
    failures: dict[str, Failure] = {}
    for mutant in chosen_mutants(case.model, np.random.default_rng(seed), most):
        count = found.misses.setdefault(mutant.kind, MissCount())
        try:
            message = _verdict(bench, variant, case, mutant, count, found)
        except NotDrawable:
            count.illegal += 1
            continue
        except Exception as e:  # an error of the engine itself is found too, with the model that shows it
            message = f"the engine fails: {type(e).__name__}: {e}"
        if message is not None:
            count.wrong += 1
            failures.setdefault(
                mutant.kind,
                Failure(
                    f"near miss: {mutant.kind}", bench.rule.name, variant.name, f"{mutant.what}: {message}",
                    variant.span, mutant.model,
                ),
            )  # fmt: skip
    return list(failures.values())


def chosen_mutants(model: onnx.ModelProto, rng: np.random.Generator, most: int | None) -> Iterator[Mutant]:
    """Every mutant, or of each kind `most` picked at random."""
    for kind, mutate in MUTATIONS.items():
        made = [Mutant(kind, what, m) for what, m in mutate(model)]
        if most is not None and len(made) > most:
            made = [made[i] for i in sorted(rng.choice(len(made), most, replace=False))]
        yield from made


def _verdict(
    bench: Bench, variant: Variant, case: Case, mutant: Mutant, count: MissCount, found: VariantProof
) -> str | None:
    """What is wrong with how the rule takes the mutant (None: nothing). Raises NotDrawable: no legal model."""
    model = typed(mutant.model)
    if bench.rule.rewrite:
        return _rewritten(bench, variant, case, model, count, found)
    seen = look(bench, model, variant.name)
    if not seen.candidates:
        _count_declined(count, found, seen.reasons)
        return None
    feeds = _feeds(case, model)
    message = wrong_candidate(bench, seen, model, feeds)
    if message is None:
        count.right += 1
        count.unchanged += _unchanged(case, by_onnxruntime(model, feeds))
    return message


def _rewritten(
    bench: Bench, variant: Variant, case: Case, model: onnx.ModelProto, count: MissCount, found: VariantProof
) -> str | None:
    seen = rework(bench, model, variant.name)
    if not seen.after.steps:
        _count_declined(count, found, seen.reasons)
        return None
    feeds = _feeds(case, model)
    answers = by_onnxruntime(model, feeds)
    message = wrong_rewrite(seen, model, feeds, answers)
    if message is None:
        count.right += 1
        count.unchanged += _unchanged(case, answers)
    return message


def _count_declined(count: MissCount, found: VariantProof, reasons: Sequence[str]) -> None:
    count.declined += 1
    if reasons:
        found.reasons[reasons[0]] += 1


def _feeds(case: Case, model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {**draw_feeds(model, np.random.default_rng(0), case.draft.limits), **_same(model, case.feeds)}


def _same(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The case's inputs, where the mutant still takes them."""
    found: dict[str, np.ndarray] = {}
    for i in model.graph.input:
        type_ = i.type.tensor_type
        old = feeds.get(i.name)
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(type_.elem_type))
        if old is not None and old.dtype == dtype and old.shape == tuple(d.dim_value for d in type_.shape.dim):
            found[i.name] = old
    return found


def _unchanged(case: Case, answers: list[np.ndarray]) -> bool:
    old = case.truth.runtime
    return len(old) == len(answers) and all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(old, answers, strict=True)
    )


def wrong_candidate(bench: Bench, seen: Seen, model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> str | None:
    """Each candidate against the nodes that it stands for, on what onnxruntime gives them; then the outputs, all there.
    Raises NotDrawable where onnxruntime does not take the model."""
    answers = by_onnxruntime(model, feeds)
    written = _written(seen)
    try:
        runtime = by_onnxruntime(written, feeds)
    except NotDrawable:  # an operator of a set too new: what takes the whole model can still be compared
        written, runtime = model, answers
    outputs = [o.name for o in written.graph.output]
    values = {**feeds, **dict(zip(outputs, runtime, strict=True))}
    exact: dict[str, np.ndarray] = {}
    for chosen in seen.candidates:
        message = _candidate_wrong(bench, seen, chosen, values, exact, written)
        if message is not None and not exact:  # float64 costs more: asked only where onnxruntime disagrees
            exact = dict(zip(outputs, in_float64(written, feeds, runtime), strict=True))
            message = _candidate_wrong(bench, seen, chosen, values, exact, written)
        if message is not None:
            return message
    own = judge([values[o.name] for o in model.graph.output], Truth(answers, answers, summands(model, feeds)), 1)
    return _lost_output(seen) if own.passed else f"the view of it is {own}"


def _written(seen: Seen) -> onnx.ModelProto:
    """The view as a model that also answers what candidates take and make."""
    names = names_of(seen, seen.candidates)
    model = view_to_model(seen.view)
    known = {o.name for o in model.graph.output} | {i.name for i in model.graph.input}
    model.graph.output.extend([v for v in model.graph.value_info if v.name in names and v.name not in known])
    return model


def _candidate_wrong(
    bench: Bench,
    seen: Seen,
    chosen: Candidate,
    values: Mapping[str, np.ndarray],
    exact: Mapping[str, np.ndarray],
    model: onnx.ModelProto,
) -> str | None:
    nodes = [seen.view.nodes[n] for n in chosen.nodes]
    if any(n not in values for n in chosen.produces):
        return None
    if any(n not in values and seen.view.values[n].const is None for n in chosen.consumes):
        return None
    truth = Truth(
        [values[n] for n in chosen.produces],
        [exact.get(n, values[n]) for n in chosen.produces],
        summands(model, values),
        slack_of(model),
    )
    try:
        got = compute(seen.view, chosen, values, bench.kernels)
    except GapFuseError as e:
        return f"fires, and {e.diagnostics[0].message}"
    except Exception as e:  # the references are the kernel author's own code
        return f"fires, and the reference fails: {type(e).__name__}: {e}"
    roundings = sum(n.op == "QuantizeLinear" for n in nodes)
    verdict = judge(got, truth, roundings, bench.rule.emit[chosen.emit].within)
    return None if verdict.passed else f"fires ({chosen.variant}), and the result is {verdict}"


def _lost_output(seen: Seen) -> str | None:
    """Where the rule's candidates alone cover the model, every graph output must have its producer."""
    try:
        plan = cover(seen.view, seen.candidates)
    except (UncoveredError, GapFuseError):
        return None  # other rules take the rest: the cover asks them for what this one absorbs
    made = {v for c in plan.chosen for v in c.produces}
    there = {*made, *seen.view.inputs, *(n for n, v in seen.view.values.items() if v.const is not None)}
    lost = [o for o in seen.view.outputs if o not in there]
    return f"fires, and the output {lost[0]} is lost" if lost else None
