"""Quantised networks that no integer kernel takes: computed in float between integers, and the summary says why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gap_fuse


def _network(activation: str, weight_zero: int, edges: bool) -> onnx.ModelProto:
    """QDQ: Conv, Relu, MaxPool, Concat. `edges`: the graph's input and output are the integers themselves."""
    rng = np.random.default_rng(0)
    info = np.iinfo(activation)
    middle = np.array((info.min + info.max + 1) // 2, activation)
    constants = {
        "w": rng.integers(-100, 100, (4, 2, 3, 3)).astype(np.int8),
        "w_scale": np.float32(0.01),
        "w_zero": np.int8(weight_zero),
        "scale": np.float32(8 / (info.max - info.min)),
        "zero": middle,
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "scale", "zero"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["wd"]),
        helper.make_node("Conv", ["xd", "wd"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "scale", "zero"], ["rq"]),
        helper.make_node("DequantizeLinear", ["rq", "scale", "zero"], ["rd"]),
        helper.make_node("MaxPool", ["rd"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Transpose", ["m"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Concat", ["t", "t"], ["k"], axis=1),
        helper.make_node("QuantizeLinear", ["k", "scale", "zero"], ["kq"]),
        helper.make_node("DequantizeLinear", ["kq", "scale", "zero"], ["y"]),
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(activation)) if edges else TensorProto.FLOAT
    given = helper.make_tensor_value_info("xq" if edges else "x", kind, [1, 2, 8, 8])
    made = helper.make_tensor_value_info("kq" if edges else "y", kind, [1, 8, 4, 4])
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes[1:-1] if edges else nodes, "g", [given], [made], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize(
    ("activation", "weight_zero", "word"),
    [("int16", 0, "int16"), ("uint16", 0, "uint16"), ("int8", 5, "zero point"), ("uint8", 5, "zero point")],
)
def test_float_between_integers_verifies_and_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, activation: str, weight_zero: int, word: str, edges: bool
) -> None:
    monkeypatch.setenv("OPT", "-O1")
    result = gap_fuse.compile(_network(activation, weight_zero, edges), l1=6000)
    islands = result.report["float_islands"]
    conv = next(i for i in islands if i["kernel"] == "conv2d_f32")
    assert word in conv["why"]
    assert conv["why"] in result.summary
    assert [c["name"] for c in result.report["calls"] if c["float_between_integers"]] == [i["call"] for i in islands]
    result.write(tmp_path)
    verdict = gap_fuse.verify(tmp_path, samples=2)
    assert verdict.passed, str(verdict)
    assert max(o.model.worst / o.step for o in verdict.outputs) <= 2, str(verdict)


@pytest.mark.parametrize("activation", ["int8", "uint8"])
def test_eight_bits_stay_integers(activation: str) -> None:
    assert gap_fuse.compile(_network(activation, 0, True)).report["float_islands"] == []


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_sixteen_bits_move_and_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Movement keeps the integers where onnxruntime can; what computes runs in float."""
    monkeypatch.setenv("OPT", "-O1")
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
    t ({dtype}[1,4,4,4] x) => ({dtype}[2,8,8,8] y)
    <float s = {{0.1}}, {dtype} z = {{3}}, int64[4] order = {{2,0,1,3}}, float[4] twice = {{1,1,2,2}},
     int64[4] shape = {{2,4,8,8}}, int64[1] from = {{2}}, int64[1] to = {{6}}, int64[1] axis = {{2}},
     int64[8] pads = {{0,0,2,0,0,0,2,0}}> {{
      d = DequantizeLinear(x, s, z)
      g = Gather<axis = 3>(d, order)
      r = Resize<mode = "nearest">(g, , twice)
      e = Expand(r, shape)
      k = Slice(e, from, to, axis)
      p = Pad(k, pads)
      a = Add(p, e)
      c = Concat<axis = 1>(a, e)
      y = QuantizeLinear(c, s, z)
    }}""")
    result = gap_fuse.compile(onnx.shape_inference.infer_shapes(model))
    assert "gather" in [c.kernel for c in result.graph.calls]
    result.write(tmp_path)
    verdict = gap_fuse.verify(tmp_path, samples=2)
    assert verdict.passed, str(verdict)
    assert verdict.outputs[0].model.worst <= 1
