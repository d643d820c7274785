"""plan, explain and apply on models written as ONNX text: bodies opened, reasons given, bytes owned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
import pytest

from fusion_engine.apply import apply
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.explain import explain
from fusion_engine.model import read_model
from fusion_engine.planning import Planned
from fusion_engine.reference import run_reference
from tests.graph.conftest import onnxruntime_values, ordered_graph, random_inputs

Plans = Callable[..., Planned]


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')


def check(planner: Plans, text: str) -> tuple[Planned, Counts]:
    """Plan, apply, order, and compare with onnxruntime; how often each kernel is called."""
    proto = model(text)
    planned = planner(read_model(proto))
    graph = ordered_graph(planned)
    inputs = random_inputs(graph)
    values = run_reference(graph, planned.kernels, inputs)
    for name, expected in onnxruntime_values(proto, inputs).items():
        np.testing.assert_allclose(values[name], expected, rtol=1e-5, atol=1e-5)
    counts: Counts = {}
    for call in graph.calls:
        counts[call.kernel] = counts.get(call.kernel, 0) + 1
    return planned, counts


Counts = dict[str, int]


def test_an_operator_no_rule_takes_is_named_with_its_type(planner: Plans) -> None:
    with pytest.raises(GapFuseError) as caught:
        planner(
            read_model(
                model("g (float[4, 4] x) => (float[4, 4] y) { a = Relu(x)  y = Det1(a) }".replace("Det1", "Inverse9"))
            )
        )
    assert "Inverse9" in str(caught.value)


def test_an_unsupported_operator_names_the_node(planner: Plans) -> None:
    with pytest.raises(GapFuseError) as caught:
        planner(read_model(model("g (float[1, 4, 4] x) => (float[1] y) { a = Relu(x)  y = Det(a) }")))
    assert "no rule takes the node" in str(caught.value)
    assert "Det(float32[1, 4, 4])" in str(caught.value)


def test_bodies_of_the_standard_are_opened_where_nothing_takes_the_operator(planner: Plans) -> None:
    planned, _ = check(
        planner, "g (float[2, 6] x) => (float[2, 6] y) { y = MeanVarianceNormalization <axes = [1]> (x) }"
    )
    assert "MeanVarianceNormalization" in planned.opened


def test_a_branch_with_two_readers_is_computed_once(planner: Plans) -> None:
    _, counts = check(
        planner,
        """g (float[1, 2, 4, 4] x) => (float[1, 2, 4, 4] y, float[1, 2, 4, 4] z) {
             s = Softmax <axis = 3> (x)  y = Relu(s)  z = Mul(s, s) }""",
    )
    assert counts["softmax_f32"] == 1


def test_parts_of_a_concatenation_are_made_in_place(planner: Plans) -> None:
    _, counts = check(
        planner,
        """g (float[1, 3, 4, 4] x) => (float[1, 6, 4, 4] y) {
             a = Softmax <axis = 3> (x)  b = Softmax <axis = 3> (a)
             c = Concat <axis = 1> (a, b)  y = Relu(c) }""",
    )
    assert "copy" not in counts


def test_a_part_used_twice_or_an_input_is_copied(planner: Plans) -> None:
    _, counts = check(
        planner,
        """g (float[1, 3, 4, 4] x) => (float[1, 12, 4, 4] y) {
             a = Softmax <axis = 3> (x)  y = Concat <axis = 1> (a, x, a, a) }""",
    )
    assert counts["copy"] == 3


def test_nested_concatenations_copy_nothing(planner: Plans) -> None:
    _, counts = check(
        planner,
        """g (float[1, 3, 4, 4] x) => (float[1, 9, 4, 4] y) {
             a = Softmax <axis = 3> (x)  b = Softmax <axis = 2> (a)  c = Concat <axis = 1> (a, b)
             d = Softmax <axis = 1> (c)  e = Concat <axis = 1> (a, c)  y = Relu(e) }""",
    )
    assert counts["softmax_f32"] >= 2


def test_outputs_own_their_bytes(planner: Plans) -> None:
    planned, _ = check(
        planner,
        """g (float[2, 3] x) => (float[6] flat, float[3, 2] turned, float[2, 3] same, float[2, 3] r) {
             r = Relu(x)  turned = Transpose <perm = [1, 0]> (r)
             shape = Constant <value = int64[1] {6}> ()  flat = Reshape(x, shape)  same = Identity(x) }""",
    )
    graph = apply(planned.view, planned.plan, planned.kernels)
    for name in graph.outputs:
        assert graph.buffer[name].alias is None
        assert graph.buffer[name].data is None


def test_a_constant_output_is_written(planner: Plans) -> None:
    check(
        planner,
        """g (float[2] x) => (float[2] y, float[2] k) {
             k = Constant <value = float[2] {1.5, 2.5}> ()  y = Add(x, k) }""",
    )


def test_equal_constants_are_kept_once(planner: Plans) -> None:
    planned, _ = check(
        planner,
        """g (float[2, 3] x) => (float[2, 3] y) {
             a = Constant <value = float[3] {1.0, 2.0, 3.0}> ()  b = Constant <value = float[3] {1.0, 2.0, 3.0}> ()
             u = Mul(x, a)  v = Tanh(u)  w = Mul(v, b)  y = Softmax(w) }""",
    )
    graph = apply(planned.view, planned.plan, planned.kernels)
    data = [b.data.tobytes() for b in graph.buffers if b.data is not None]
    assert len(data) == len(set(data))


# ---- explain ----

SMALL = "g (float[1, 3, 4, 4] x) => (float[1, 3, 4, 4] y) { a = Relu(x)  y = Softmax <axis = 1> (a) }"


def explained(planner: Plans, **which: str) -> str:
    planned = planner(read_model(model(SMALL)))
    return "\n".join(explain(planned, planned.rules, planned.kernels, **which))


def test_explain_says_who_took_each_node(planner: Plans) -> None:
    lines = explained(planner).splitlines()
    assert len(lines) >= 2
    assert "softmax_f32" in explained(planner, node="Softmax")
    assert "by rule softmax" in explained(planner, node="y")


def test_explain_says_why_a_rule_declined(planner: Plans) -> None:
    text = explained(planner, rule="conv2d")
    assert "fired 0 times" in text
    assert "softmax: fired 1 times" in explained(planner, rule="softmax")


@pytest.mark.parametrize(("which", "words"), [({"node": "Softmx"}, "Softmax"), ({"rule": "softmaxx"}, "softmax")])
def test_explain_of_an_unknown_name_suggests_one(planner: Plans, which: dict[str, str], words: str) -> None:
    with pytest.raises(GapFuseError, match=f"did you mean `{words}`"):
        explained(planner, **which)
