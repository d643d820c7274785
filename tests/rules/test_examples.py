"""The tests in the rule files: each fires or rejects with its reason; what fires computes what the model does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from fusion_engine.language import check_rules
from fusion_engine.language.types import Rule, RuleTest
from tests.rules import running

CASES = [(r, t) for r in running.rules().rules for t in r.tests]
NAMES = [f"{r.name}-{t.kind}-{t.expect}-{i}" for i, (r, t) in enumerate(CASES)]


def model_of(test: RuleTest) -> onnx.ModelProto:
    if test.onnx is not None:
        return onnx.load(Path(test.onnx))
    assert test.model is not None
    model = onnx.parser.parse_model(test.model)
    rng = np.random.default_rng(7)
    for name in test.constants:
        found = next((i for i in model.graph.input if i.name == name), None)
        if found is None:
            continue
        dtype = onnx.helper.tensor_dtype_to_np_dtype(found.type.tensor_type.elem_type)
        shape = tuple(d.dim_value for d in found.type.tensor_type.shape.dim)
        drawn = running.values(rng, dtype, shape)
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(np.abs(drawn) + dtype.type(0.1) if dtype.kind == "f" else drawn, name)
        )
        model.graph.input.remove(found)
    return model


def test_the_library_is_sound() -> None:
    assert check_rules([running.ROOT / "rules"], running.kernels()) == ()


@pytest.mark.parametrize(("rule", "test"), CASES, ids=NAMES)
def test_example(rule: Rule, test: RuleTest) -> None:
    model = model_of(test)
    seen, found, reasons = running.candidates(model, rule.name)
    if test.kind == "rejects":
        assert running.taking_all(seen, found) is None
        assert any(test.expect in reason for reason in reasons), reasons
        return
    chosen = next((c for c in found if c.variant == test.expect), None)
    assert chosen is not None, reasons
    whole = running.taking_all(seen, [c for c in found if c.variant == test.expect])
    if whole is None:  # a result that is not the whole graph: Split
        return
    feeds = running.draw_inputs(model, np.random.default_rng(3))
    running.assert_close(running.by_references(seen, whole, feeds), running.by_onnxruntime(model, feeds))


def test_every_rule_has_an_example() -> None:
    bare = [r.name for r in running.rules().rules if not any(t.kind == "fires" for t in r.tests)]
    assert bare == ["affine", "flip_sign", "identity", "mean_i8"], "only what the proof in test_proof.py draws itself"
