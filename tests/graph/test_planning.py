"""plan, explain and apply on models written as ONNX text: bodies opened, reasons given, bytes owned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from fusion_engine.apply import apply
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.explain import explain
from fusion_engine.explanation import Explanation, explanation_to_json
from fusion_engine.matching import match
from fusion_engine.model import read_model
from fusion_engine.planning import NotCoveredError, Planned
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


def explained(planner: Plans, **which: str) -> Explanation:
    return explain(planner(read_model(model(SMALL))), **which)


def test_explain_says_who_took_each_node(planner: Plans) -> None:
    told = explained(planner)
    assert {n.op: [t.rule for t in n.takers] for n in told.nodes} == {"Relu": ["clamp"], "Softmax": ["softmax"]}
    (by_operator,), (by_result,) = explained(planner, node="Softmax").nodes, explained(planner, node="y").nodes
    assert by_operator.takers == by_result.takers
    assert "softmax_f32" in by_operator.takers[0].kernels
    assert "clamp" not in {a.rule for a in by_operator.attempts}


def test_explain_says_what_a_rule_lacks_and_where_it_fired(planner: Plans) -> None:
    (conv,) = explained(planner, rule="conv2d").rules
    assert (conv.fired, conv.lacking) == ((), ("Conv",))
    (softmax,) = explained(planner, rule="softmax").rules
    assert len(softmax.fired) == 1
    assert softmax.lacking == ()


def test_an_attempt_names_the_place_and_what_was_there(planner: Plans) -> None:
    planned = planner(read_model(model("g (float[2, 5] x, float[5, 3] w) => (float[2, 3] y) { y = MatMul(x, w) }")))
    (linear,) = explain(planned, rule="linear").rules
    attempt = linear.attempts[0]
    span = attempt.cause.span
    assert attempt.cause.reason == "v is not constant"
    assert attempt.cause.had == "the graph input `w`, float32[5, 3]"
    assert attempt.cause.want.startswith("const real")
    assert "initializer" in attempt.cause.help
    assert span is not None
    assert attempt.source is not None
    assert attempt.source[span.col - 1 : span.end - 1] == "v"


def test_a_condition_says_what_its_sides_are(planner: Plans) -> None:
    norm = """g (float[2, 8] x, float[8] s, float[8] b) => (float[2, 8] y) <float e = {0.5}> {
      a = Constant <value_ints = [-1]> ()
      m = ReduceMean(x, a)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean(q, a)
      w = Add(v, e)  r = Sqrt(w)  n = Div(d, r)  o = Mul(n, s)  y = Add(o, b) }"""
    proto = model(norm)
    constants(proto, "s", "b")
    (rule,) = explain(planner(read_model(proto)), rule="layernorm").rules
    cause = rule.attempts[0].cause
    assert "`0.0 < eps and eps < 0.1` does not hold" in cause.reason
    assert "eps is 0.5" in cause.had
    assert cause.span is not None
    assert rule.attempts[0].depth == 1.0


def constants(proto: onnx.ModelProto, *names: str) -> None:
    """Inputs made initializers of ones."""
    for value in [v for v in proto.graph.input if v.name in names]:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), value.name))
        proto.graph.input.remove(value)


def test_every_explanation_is_json(planner: Plans) -> None:
    document = json.loads(json.dumps(explanation_to_json(explained(planner)), allow_nan=False))
    assert document["format"] == 1
    assert {n["op"] for n in document["nodes"]} == {"Relu", "Softmax"}
    fired = {r["name"] for r in document["rules"] if r["fired"]}
    assert fired == {"clamp", "softmax"}


def test_a_model_that_is_not_covered_is_explained_too(planner: Plans) -> None:
    with pytest.raises(NotCoveredError) as e:
        planner(read_model(model("g (float[2, 3] x) => (int64[2, n] y) { y = NonZero(x) }")))
    told = explain(e.value.attempt)
    assert [n.op for n in told.nodes] == ["NonZero"]
    assert all(not n.takers for n in told.nodes)


@pytest.mark.parametrize(("which", "words"), [({"node": "Softmx"}, "Softmax"), ({"rule": "softmaxx"}, "softmax")])
def test_explain_of_an_unknown_name_suggests_one(planner: Plans, which: dict[str, str], words: str) -> None:
    with pytest.raises(GapFuseError, match=f"did you mean `{words}`"):
        explained(planner, **which)


@pytest.mark.parametrize("name", ["digits_fp32.onnx", "digits_int8.onnx"])
def test_every_decline_says_where_in_a_rule_and_what_it_wants(planner: Plans, root: Path, name: str) -> None:
    planned = planner(read_model(root / "examples" / "digits" / name))
    declines = match(planned.view, planned.rules, planned.kernels, explain=True).declines
    assert len(declines) > 20
    for d in declines:
        assert d.cause.span is not None, d.reason
        assert 0 < d.cause.span.line <= len(planned.rules.sources[d.cause.span.file]), d.reason
        assert d.cause.had, d.reason
        assert d.cause.want, d.reason
