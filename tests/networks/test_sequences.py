"""Recurrent layers and attention through the emitted C: what a small memory splits, what stays in L1 carries on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gap_fuse
from fusion_engine.diagnostics import GapFuseError

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def layer(op: str, steps: int, rows: int, units: int) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    shapes = {"w": (1, GATES[op] * units, 20), "r": (1, GATES[op] * units, units), "b": (1, 2 * GATES[op] * units)}
    constants = [numpy_helper.from_array((rng.standard_normal(s) * 0.2).astype("f"), n) for n, s in shapes.items()]
    attrs = {"linear_before_reset": 1} if op == "GRU" else {}
    outputs = ["y", "h", "c"] if op == "LSTM" else ["y", "h"]
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *shapes], outputs, hidden_size=units, **attrs)],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, rows, 20])],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@pytest.mark.parametrize("op", GATES)
def test_units_are_split_within_each_step_where_the_weights_do_not_fit(op: str, tmp_path: Path) -> None:
    result = gap_fuse.compile(layer(op, 4, 2, 50), l1=9000)
    result.write(tmp_path)
    assert gap_fuse.verify(tmp_path, samples=1, sanitize=True).passed
    plan = next(c for c in result.schedule.calls if c.kernel == f"{op.lower()}_f32")
    assert [loop.axis for loop in plan.loops][-2:] == ["t", "u"]
    assert plan.loops[-2].tile == 1, "each step is a call of its own: the team's join is the barrier"


def test_a_gru_that_resets_first_keeps_its_units_together(tmp_path: Path) -> None:
    model = layer("GRU", 6, 3, 50)
    model.graph.node[0].attribute[1].i = 0  # linear_before_reset
    with pytest.raises(GapFuseError, match="L1 is too small: call gru_f32_0"):
        gap_fuse.compile(model, l1=9000)
    result = gap_fuse.compile(model, l1=48000)
    result.write(tmp_path)
    assert gap_fuse.verify(tmp_path, samples=1).passed


def test_attention_splits_its_columns_where_keys_do_not_fit(tmp_path: Path) -> None:
    """The softmax is made as columns arrive; rows that the causal mask leaves few columns see tiles without any."""
    shapes = {"q": (1, 4, 24, 16), "k": (1, 2, 70, 16), "v": (1, 2, 70, 20)}
    graph = helper.make_graph(
        [helper.make_node("Attention", list(shapes), ["y"], is_causal=1)],
        "attention",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    result = gap_fuse.compile(model, l1=4096)
    result.write(tmp_path)
    assert gap_fuse.verify(tmp_path, samples=1, sanitize=True).passed
    (plan,) = (c for c in result.schedule.calls if c.kernel == "attention_f32")
    assert plan.loops[-1].axis == "c"
