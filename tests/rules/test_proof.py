"""Every rule proved on drawn models: what it takes computes what the model does, float and through the lens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from onnx import TensorProto

from fusion_engine.language.types import EmitEntry, Rule, Variant
from tests.rules import drawing, running

# Rules over movement, integers, truth values, views or sequences: their operands are not drawn from a pattern alone;
# see test_layout.py, test_recurrent.py and test_attention.py.
ELSEWHERE = frozenset(
    [
        "argmax",
        "attention_native",
        "attention_selected",
        "cast",
        "depth_to_space",
        "integers",
        "integers_many",
        "logic",
        "tile",
        "compare",
        "concat",
        "dequantize",
        "elementwise_region",
        "expand",
        "flip_sign",
        "gather",
        "gru",
        "identity",
        "lstm",
        "mean_i8",
        "multi_head_attention",
        "pad",
        "pad_integers",
        "pad_mirror",
        "quantize",
        "reduce",
        "requantize",
        "reshape",
        "resize_linear",
        "resize_nearest",
        "rnn",
        "slice",
        "split",
        "transpose",
        "where",
    ]
)


def entries() -> list[str]:
    """`rule/entry/kernel` of every emit entry that is proved here."""
    found = [(r, i, e) for r in running.rules().rules for i, e in enumerate(r.emit) if r.name not in ELSEWHERE]
    drawn = [(r, i, e) for r, i, e in found if not any(_needs_integers(text) for text, _ in e.when)]
    return [f"{r.name}/{i}/{e.calls[-1].kernel}" for r, i, e in drawn]


def _needs_integers(text: str) -> bool:
    return text.startswith("dtype(x)") and "int" in text


CASES = entries()


def _variants(rule: Rule, entry: EmitEntry) -> list[Variant]:
    return [v for v in rule.variants if not entry.variants or v.name in entry.variants]


def _result_type(model: onnx.ModelProto) -> int:
    return int(model.graph.output[0].type.tensor_type.elem_type)


@pytest.mark.parametrize("case", CASES)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])  # entries for a part of the draws
@given(data=st.data())
def test_emit_entry(case: str, data: st.DataObject) -> None:
    name, emit = case.split("/")[0], int(case.split("/")[1])
    (rule,) = running.only(name).rules
    entry = rule.emit[emit]
    variants = _variants(rule, entry)
    variant = variants[data.draw(st.integers(0, len(variants) - 1), label="variant")]
    try:
        drawn, model = drawing.draw_float_model(data.draw, rule, variant)
    except onnx.shape_inference.InferenceError:
        assume(False)
    note(onnx.printer.to_text(model.graph))
    feeds = running.draw_inputs(model, drawn.rng)
    want = _run(model, feeds)
    steps = 1
    if entry.stored.get("y") is not None:
        low, high = float(np.min(want[0], initial=0.0)), float(np.max(want[0], initial=0.0))
        assume(np.isfinite(low) and np.isfinite(high))
        stored = {n: (t.dtype, t.symmetric, t.axis) for n, t in entry.stored.items()}
        like = "x" if any("same_as(x, y)" in text for text, _ in entry.when) else None
        drawn = drawing.quantise(drawn, stored, low, high, like)
        real = drawing.model_of(
            replace(drawn, nodes=drawn.nodes[:-1], result=drawn.nodes[-1].input[0]), drawn.inputs, TensorProto.INT8
        )
        model = drawing.model_of(drawn, drawn.inputs, TensorProto.INT8)
        note(onnx.printer.to_text(model.graph))
        feeds = running.draw_inputs(model, drawn.rng)
        assume(bool(np.all(np.isfinite(_run(real, feeds)[0]))))  # what NaN is quantised to is nobody's promise
        want = _run(model, feeds)
    seen, found, reasons = running.candidates(model, rule.name)
    chosen = running.taking_all(seen, found, emit)
    if chosen is None:
        assert _excused(reasons), reasons
        assume(False)
    assert chosen is not None
    running.assert_close(running.by_references(seen, chosen, feeds), want, steps, _summands(model, feeds))


SUMS = frozenset(("AveragePool", "Conv", "Erf", "Gelu", "Gemm", "GlobalAveragePool", "MatMul", "ReduceMean"))


def _summands(model: onnx.ModelProto, feeds: running.Arrays) -> float:
    """The largest magnitude that a sum (1 + erf(x) is one) may cancel."""
    if not any(n.op_type in SUMS for n in model.graph.node):
        return 0.0
    return max(float(np.max(np.abs(v), initial=0.0)) for v in feeds.values())


def _run(model: onnx.ModelProto, feeds: running.Arrays) -> list[np.ndarray]:
    try:
        return running.by_onnxruntime(model, feeds)
    except Exception as e:  # a draw that ONNX itself refuses
        note(f"onnxruntime: {e}")
        assume(False)
        raise


def _excused(reasons: list[str]) -> bool:
    """The rule's own conditions may refuse a draw; nothing else may."""
    return any("does not hold" in r or "there is no axis" in r for r in reasons)


def test_the_list_of_rules_proved_elsewhere_is_true() -> None:
    assert {r.name for r in running.rules().rules} >= ELSEWHERE
