"""The tests in a rule file: each fires or rejects with its reason; what fires computes what its model does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.language.types import RuleTest
from fusion_engine.model.read import read_proto
from fusion_engine.model.text import parse_text
from gap_fuse.proof.applying import Bench, compute, look
from gap_fuse.proof.captures import draw_values
from gap_fuse.proof.cases import roundings_of, truth_of
from gap_fuse.proof.draft import NotDrawable
from gap_fuse.proof.evaluating import draw_feeds
from gap_fuse.proof.judging import Verdict, judge
from gap_fuse.proof.near_misses import wrong_candidate
from gap_fuse.proof.rewrites import compare, lighter, rework
from gap_fuse.proof.types import Failure


def read_example(test: RuleTest) -> onnx.ModelProto:
    """The model that a test names or writes. Raises GapFuseError at the place in the file or in the text."""
    return read_proto(Path(test.onnx)) if test.onnx is not None else parse_text(test.model or "", "model")


def example_model(test: RuleTest) -> onnx.ModelProto:
    """The test's model; inputs that `constants` names become initializers. Raises NotDrawable: it cannot be read."""
    try:
        model = read_example(test)
    except GapFuseError as e:
        raise NotDrawable(f"its model is not read: {e}") from e
    rng = np.random.default_rng(7)
    for name in test.constants:
        found = next((i for i in model.graph.input if i.name == name), None)
        if found is not None:
            model.graph.initializer.append(onnx.numpy_helper.from_array(_value(rng, found), name))
            model.graph.input.remove(found)
    return model


def _value(rng: np.random.Generator, info: onnx.ValueInfoProto) -> np.ndarray:
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))
    shape = tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
    drawn = draw_values(rng, dtype, shape)
    return np.asarray(np.abs(drawn) + dtype.type(0.1)) if dtype.kind == "f" else drawn


def try_example(bench: Bench, test: RuleTest) -> tuple[Failure | None, Verdict | None]:
    """What is wrong with one test of the rule (None: nothing), and how exact its result was."""

    def failure(message: str, model: onnx.ModelProto | None = None) -> Failure:
        return Failure("example", bench.rule.name, f"{test.kind}: {test.expect}", message, test.span, model)

    try:
        model = example_model(test)
        if bench.rule.rewrite:
            message, verdict = _rewritten(bench, test, model)
            return (None if message is None else failure(message, model)), verdict
        seen = look(bench, model)
    except NotDrawable as e:
        return failure(str(e)), None
    if test.kind == "rejects":
        if seen.whole:
            return failure(f"the variant {seen.whole[0].variant} fires", model), None
        if any(test.expect in reason for reason in seen.reasons):
            return None, None
        stated = "; ".join(seen.reasons[:4]) or "nothing came near"
        return failure(f"declined, but for another reason: {stated}", model), None
    own = [c for c in seen.candidates if c.variant == test.expect]
    if not own:
        return failure("; ".join(seen.reasons[:4]) or "nothing came near", model), None
    whole = [c for c in seen.whole if c.variant == test.expect]
    if not whole:  # a result that is not the whole graph: each candidate on what the model gives it
        message = wrong_candidate(bench, seen, model, draw_feeds(model, np.random.default_rng(3)))
        return (None if message is None else failure(message, model)), None
    feeds = draw_feeds(model, np.random.default_rng(3))
    try:
        truth = truth_of(model, feeds)
        verdict = judge(
            compute(seen.view, whole[0], feeds, bench.kernels),
            truth,
            roundings_of(model),
            bench.rule.emit[whole[0].emit].within,
        )
    except (NotDrawable, GapFuseError) as e:
        return failure(str(e), model), None
    return (None if verdict.passed else failure(f"the result is {verdict}", model)), verdict


def _rewritten(bench: Bench, test: RuleTest, model: onnx.ModelProto) -> tuple[str | None, Verdict | None]:
    """The same of a rule that rewrites. Raises NotDrawable: the model, or what is left of it, does not run."""
    seen = rework(bench, model)
    stated = "; ".join(seen.reasons[:4]) or "nothing came near"
    if test.kind == "rejects":
        if seen.after.steps:
            return f"the variant {seen.after.steps[0].variant} rewrites it", None
        known = any(test.expect in reason for reason in seen.reasons)
        return None if known else f"declined, but for another reason: {stated}", None
    if not seen.made_by(test.expect):
        return stated, None
    if not lighter(bench, seen):
        return "what it leaves weighs no less than what stood there", None
    feeds = draw_feeds(model, np.random.default_rng(3))
    verdict = compare(seen, feeds, truth_of(model, feeds))
    return None if verdict.passed else f"what it leaves is {verdict}", verdict
