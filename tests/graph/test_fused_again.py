"""Fused models read back: the same plan, the same bytes, nothing lost of what the file said; or an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import onnx
import onnx.parser
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.fuse import fuse_model
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.model import read_model
from fusion_engine.planning import Planned, plan
from fusion_engine.view import MARKS, view
from tests.graph.test_networks import batch_of_one
from tests.networks.drawing import float_models, quantise

Plans = Callable[..., Planned]

NETWORKS = (
    "bench/models/resnet8.onnx",
    "bench/models/resnet8_int8_qdq.onnx",
    "models/mlperf_kws/kws_ref_model.tf2onnx.onnx",
    "models/emx_micro_kws/micro_kws_m_qdq.onnx",
    "models/emx_micro_kws/micro_kws_m_static_qoperator.onnx",
    "models/q_resnet8_qop_u8u8/model.onnx",  # an inner value of one call is the result of another
    "models/pulp_dronet_v2/model_original.onnx",
    "torch_exports/encoder_layer__dyn_opt.onnx",  # every node has torch's metadata
    "torch_exports/jax2onnx_fn.onnx",
)


def calls(planned: Planned) -> list[tuple[object, ...]]:
    return [(c.rule, c.variant, c.emit, c.produces, c.consumes) for c in planned.plan.chosen]


@pytest.mark.shared
@pytest.mark.parametrize("name", NETWORKS)
def test_the_plan_of_a_fused_model_is_the_plan(shared: Path, planner: Plans, name: str) -> None:
    path = shared / name
    planned = planner(read_model(path, batch_of_one(path)))
    fused = fuse_model(planned)
    again = planner(read_model(fused))
    assert calls(again) == calls(planned)
    assert [(n.origins, n.scopes, n.metadata) for n in again.view.nodes] == [
        (n.origins, n.scopes, n.metadata) for n in planned.view.nodes
    ]
    assert fuse_model(again).SerializeToString(deterministic=True) == fused.SerializeToString(deterministic=True)


@given(float_models(), st.booleans(), st.integers(0, 9))
def test_the_plan_of_a_drawn_network_survives(
    planner: Plans, model: onnx.ModelProto, integers: bool, seed: int
) -> None:
    planned = planner(read_model(quantise(model, seed) if integers else model))
    fused = fuse_model(planned)
    again = planner(read_model(fused))
    assert calls(again) == calls(planned)
    assert fuse_model(again).SerializeToString(deterministic=True) == fused.SerializeToString(deterministic=True)


def test_outputs_that_are_one_value_are_typed_and_survive(planner: Plans) -> None:
    """Two outputs by Identity of an inner value: the second was of unknown shape, and its copy got another name."""
    text = "g (float[2, 4] x) => (float[2, 4] y, z) { v = Relu(x)  [a] y = Identity(v)  [b] z = Identity(v) }"
    planned = planner(read_model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')))
    assert [planned.view.values[o].static_shape for o in planned.view.outputs] == [(2, 4), (2, 4)]
    fused = fuse_model(planned)
    again = fuse_model(planner(read_model(fused)))
    assert again.SerializeToString(deterministic=True) == fused.SerializeToString(deterministic=True)


SMALL = """<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 3, 4, 4] x) => (float[1, 3, 4, 4] y) <float[1, 3, 4, 4] a> { a = Relu(x)  y = Softmax <axis = 1> (a) }"""


def small() -> onnx.ModelProto:
    return onnx.parser.parse_model(SMALL)


def told(entries: object) -> Mapping[str, str]:
    return {p.key: p.value for p in entries}  # type: ignore[attr-defined]


def test_metadata_and_statistics_survive(planner: Plans) -> None:
    """Of the model, the graph, every tensor (also those inside a call) and every node; twice over."""
    proto = onnx.parser.parse_model(SMALL.replace("a = Relu(x)", "b = Sigmoid(x)  a = Mul(x, b)"))
    holders = [proto, proto.graph, proto.graph.input[0], proto.graph.output[0], *proto.graph.node]
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [1, 3, 4, 4]))
    for n, holder in enumerate([*holders, *proto.graph.value_info]):
        holder.metadata_props.add(key="stats", value=f'{n}: mean 0, "max" 1')
    planned = planner(read_model(proto))
    for _ in range(2):
        fused = fuse_model(planned)
        onnx.checker.check_model(fused, full_check=True)
        planned = planner(read_model(fused))
        for mine, theirs in [(fused, proto), (fused.graph, proto.graph)]:
            assert told(mine.metadata_props) == told(theirs.metadata_props)
        values = {v.name: v for g in [fused.graph] for v in (*g.input, *g.output, *g.value_info)}
        for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
            assert told(values[value.name].metadata_props) == told(value.metadata_props)
        assert [dict(n.metadata)["stats"] for n in planned.view.nodes] == [
            told(n.metadata_props)["stats"] for n in proto.graph.node
        ]


def test_a_rule_that_is_gone_is_an_error(tmp_path: Path, rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    path = tmp_path / "fused.onnx"
    onnx.save(fuse_model(plan(read_model(small()), rules, shipped)), path)
    fewer = replace(rules, rules=tuple(r for r in rules.rules if r.name != "softmax"))
    with pytest.raises(GapFuseError) as caught:
        plan(read_model(path), fewer, shipped)
    said = str(caught.value)
    assert str(path) in said
    assert "by the rule `softmax`, which is not there" in said


def test_a_rule_that_fires_no_longer_is_an_error(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """Here a tool has changed the body."""
    fused = fuse_model(plan(read_model(small()), rules, shipped))
    softmax = next(f for f in fused.functions if any(n.op_type == "Softmax" for n in f.node))
    next(n for n in softmax.node if n.op_type == "Softmax").op_type = "LogSoftmax"
    with pytest.raises(GapFuseError, match=r"rule `softmax` \(\w+\), which no longer fires there: .*LogSoftmax"):
        plan(read_model(fused), rules, shipped)


def test_a_pinned_call_keeps_its_rule_where_another_is_cheaper(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """The plan by few rules, fused, is kept under all rules."""
    text = SMALL.replace("a = Relu(x)", "b = Sigmoid(x)  a = Mul(x, b)")
    few = replace(rules, rules=tuple(r for r in rules.rules if r.name not in ("silu", "elementwise_region")))
    proto = onnx.parser.parse_model(text)
    slow, fast = (plan(read_model(proto), some, shipped) for some in (few, rules))
    assert len(fast.plan.chosen) < len(slow.plan.chosen)
    assert calls(plan(read_model(fuse_model(slow)), rules, shipped)) == calls(slow)


def test_nodes_added_after_fusing_are_planned_too(planner: Plans) -> None:
    fused = fuse_model(planner(read_model(small())))
    fused.graph.node.append(onnx.helper.make_node("Tanh", ["y"], ["z"]))
    fused.graph.output[0].name = "z"
    planned = planner(read_model(fused))
    assert [c.rule for c in planned.plan.chosen if "y" in c.produces] == ["softmax"]
    assert any("z" in c.produces for c in planned.plan.chosen)


@given(
    st.text() | st.sampled_from(["[]", "{}", "[{}]", '[{"names":[],"values":["x"]}]', '[{"names":1,"values":["a"]}]'])
)
@example('[{"names":["n"],"values":["x"]}]')  # claims the name of the graph's input
@example('[{"names":["n"],"values":["y"]}]')  # claims the name of another call's result
@example("[" * 100_000)
def test_what_a_tool_did_to_the_marks_does_not_matter(marks: str) -> None:
    """Names inside a call are a help, never trusted: the view computes the same."""
    body = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20, "gap_fuse.kernels" : 1]>
        g (float[4] x) => (float[4] y) { a = gap_fuse.kernels.k (x)  y = gap_fuse.kernels.k (a) }
        <domain: "gap_fuse.kernels", opset_import: ["" : 20]> k (x0) => (y0) { y0 = Relu(x0) }"""
    )
    body.graph.node[0].metadata_props.add(key=MARKS, value=marks)
    seen = view(read_model(body))
    assert [n.op for n in seen.nodes] == ["Relu", "Relu"]
    assert seen.nodes[1].inputs == seen.nodes[0].outputs
    assert seen.nodes[0].inputs == ("x",)
    assert seen.outputs == seen.nodes[1].outputs == ("y",)
