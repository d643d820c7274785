"""The canonical form of quantised networks: drawn chains, movement and clamps between Q and DQ, uint8 and int8."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.view import FLIP_SIGN, View
from tests.view.oracle import check, invariants, ops

MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Concat", "Resize", "MaxPool")


class Net:
    """A small network under construction: nodes, constants, and the current value with its shape."""

    def __init__(self, shape: list[int], dtype: str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        self.value = "x"

    def const(self, array: object, dtype: object = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def op(self, op: str, *inputs: str, domain: str = "", **attrs: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op, list(inputs), [name], name=f"n{len(self.nodes)}", domain=domain, **attrs)
        )
        self.value = name
        return name

    def quantise(self, scale: float, zero: int) -> None:
        self.op("QuantizeLinear", self.value, self.const(scale), self.const(zero, self.dtype))

    def dequantise(self, scale: float, zero: int) -> None:
        self.op("DequantizeLinear", self.value, self.const(scale), self.const(zero, self.dtype))

    def pair(self, scale: float, zero: int) -> None:
        self.quantise(scale, zero)
        self.dequantise(scale, zero)

    def result_type(self) -> int:
        """Integers from QuantizeLinear and the quantised operators, floats from everything else."""
        last = self.nodes[-1]
        real = last.op_type == "QGemm" and len(last.input) < 8
        integer = last.op_type.startswith("Q") and not real
        return int(helper.np_dtype_to_tensor_dtype(self.dtype)) if integer else int(TensorProto.FLOAT)

    def model(self, opset: int = 19) -> onnx.ModelProto:
        result = helper.make_tensor_value_info(self.value, self.result_type(), None)
        graph = helper.make_graph(self.nodes, "net", self.inputs, [result], self.constants)
        imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        proto = helper.make_model(graph, opset_imports=imports, ir_version=9)
        inferred = onnx.shape_inference.infer_shapes(proto).graph.output[0]
        if inferred.type.HasField("tensor_type"):
            proto.graph.output[0].CopyFrom(inferred)
        return proto


def move(net: Net, which: str) -> None:
    """One movement operator on the current rank-4 value; the result has rank 4 again."""
    x = net.value
    n, c, h, w = net.shape
    if which == "reshape":
        net.op("Reshape", x, net.const([n, h, c, w], np.int64))
        net.shape = [n, h, c, w]
    elif which == "transpose":
        net.op("Transpose", x, perm=[0, 2, 3, 1])
        net.shape = [n, h, w, c]
    elif which == "squeeze":
        y = net.op("Unsqueeze", x, net.const([1], np.int64))
        net.op("Squeeze", y, net.const([1], np.int64))
        net.op("Relu", net.value)
    elif which == "slice":
        net.op("Slice", x, net.const([0], np.int64), net.const([max(1, h - 1)], np.int64), net.const([2], np.int64))
        net.shape = [n, c, max(1, h - 1), w]
    elif which == "gather":
        net.op("Gather", x, net.const([0, w - 1], np.int64), axis=3)
        net.shape = [n, c, h, 2]
    elif which == "concat":
        net.op("Concat", x, x, axis=1)
        net.shape = [n, 2 * c, h, w]
    elif which == "resize":
        net.op("Resize", x, "", net.const([1, 1, 2, 1]), mode="nearest")
        net.shape = [n, c, 2 * h, w]
    elif which == "pool":
        net.op("MaxPool", x, kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    elif which == "relu":
        net.op("Relu", x)
    elif which == "clip":
        net.op("Clip", x, net.const(-0.3), net.const(0.6))
    elif which == "neg":
        net.op("Neg", x)


steps = st.sampled_from(
    (
        "reshape",
        "transpose",
        "squeeze",
        "slice",
        "gather",
        "concat",
        "resize",
        "pool",
        "relu",
        "clip",
        "neg",
        "pair",
        "pair",
    )
)


@given(
    dtype=st.sampled_from(("uint8", "int8")),
    chain=st.lists(steps, min_size=1, max_size=9),
    scales=st.lists(st.sampled_from((0.01, 0.02, 0.037)), min_size=11, max_size=11),
    zero=st.sampled_from((0, 3, 77, 128, 250)),
    ends_in_integers=st.booleans(),
)
@example("int8", ["reshape", "pair", "relu"], [0.01] * 11, 0, False)  # a dead QuantizeLinear was lifted
def test_drawn_chains_are_bit_equal(
    dtype: str, chain: list[str], scales: list[float], zero: int, ends_in_integers: bool
) -> None:
    net = Net([1, 2, 4, 3], dtype)
    centre = zero if dtype == "uint8" else zero - 128
    for step, scale in zip(chain, scales, strict=False):
        if step == "pair":
            net.pair(scale, centre)
        else:
            move(net, step)
    net.quantise(scales[-1], centre)
    if not ends_in_integers:
        net.dequantise(scales[-1], centre)
    seen = check(net.model(), tolerance=0.0)
    invariants(seen)
    flips = [n for n in seen.nodes if n.op == FLIP_SIGN]
    assert len(flips) == (1 if dtype == "uint8" and ends_in_integers else 0)
    assert all(v.dtype != "uint8" for v in seen.values.values() if v.name not in seen.outputs)


def around(dtype: str, which: str, opset: int = 19) -> View:
    net = Net([1, 2, 4, 3], dtype)
    net.op("Neg", net.value)
    net.pair(0.02, 5)
    move(net, which)
    net.pair(0.02, 5)
    net.op("Neg", net.value)
    return check(net.model(opset), tolerance=0.0)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("which", ["reshape", "transpose", "slice", "gather", "concat", "resize", "pool"])
def test_movement_runs_on_integers(which: str, dtype: str) -> None:
    seen = around(dtype, which)
    assert [o for o in ops(seen) if o not in MOVES] == ["Neg", "QuantizeLinear", "DequantizeLinear", "Neg"]
    mover = next(n for n in seen.nodes if n.op in MOVES)
    assert seen.values[mover.outputs[0]].dtype == "int8"
    assert seen.values[mover.inputs[0] or ""].quantisation == seen.values[mover.outputs[0]].quantisation is not None


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
@pytest.mark.parametrize("which", ["resize", "pool"])
def test_what_runs_on_eight_bits_alone_stays_float_at_sixteen(which: str, dtype: str) -> None:
    """onnxruntime has no 16-bit Resize and ONNX no 16-bit MaxPool: sinking the DequantizeLinear made neither run."""
    seen = around(dtype, which, 21)
    mover = next(n for n in seen.nodes if n.op in ("Resize", "MaxPool"))
    assert seen.values[mover.inputs[0] or ""].dtype == "float32"


def test_quantise_rises_over_movement_to_its_producer() -> None:
    net = Net([1, 2, 4, 3], "int8")
    net.op("Neg", "x")
    move(net, "transpose")
    move(net, "reshape")
    net.quantise(0.02, 5)
    assert ops(check(net.model(), tolerance=0.0)) == ["Neg", "QuantizeLinear", "Transpose", "Reshape"]


@pytest.mark.parametrize("clamp", ["relu", "clip"])
def test_clamp_rises_over_an_equal_pair(clamp: str) -> None:
    net = Net([1, 2, 4, 3], "int8")
    net.op("Neg", "x")
    net.pair(0.02, 5)
    move(net, clamp)
    net.pair(0.02, 5)
    expected = ["Neg", "Relu" if clamp == "relu" else "Clip", "QuantizeLinear", "DequantizeLinear"]
    assert ops(check(net.model(), tolerance=0.0)) == expected


def test_clamp_stays_below_an_unequal_pair() -> None:
    net = Net([1, 2, 4, 3], "int8")
    net.pair(0.02, 5)
    move(net, "relu")
    net.pair(0.01, 5)
    assert ops(check(net.model(), tolerance=0.0))[:3] == ["QuantizeLinear", "DequantizeLinear", "Relu"]


def test_clamp_stays_where_the_unclamped_integer_has_another_reader() -> None:
    net = Net([1, 2, 4, 3], "int8")
    net.pair(0.02, 5)
    kept = net.value
    move(net, "relu")
    net.pair(0.02, 5)
    net.op("Add", net.value, kept)
    assert ops(check(net.model(), tolerance=0.0))[:3] == ["QuantizeLinear", "DequantizeLinear", "Relu"]


def test_concat_of_unlike_scales_requantises_one_operand() -> None:
    net = Net([1, 2, 4, 3], "int8")
    net.pair(0.02, 5)
    a = net.value
    net.op("Neg", "x")
    net.pair(0.04, -3)
    net.op("Concat", a, net.value, axis=1)
    net.pair(0.02, 5)
    seen = check(net.model(), tolerance=0.0)
    concat = next(n for n in seen.nodes if n.op == "Concat")
    assert {seen.values[i or ""].dtype for i in concat.inputs} == {"int8"}
    assert ops(seen).count("QuantizeLinear") == 3


def test_dequantised_constants_stay_nodes_and_are_known() -> None:
    net = Net([1, 2, 4, 3], "int8")
    weight = net.const(np.arange(24).reshape(4, 2, 1, 3) - 12, np.int8)
    scales = net.const([0.1, 0.2, 0.3])
    w = net.op("DequantizeLinear", weight, scales, net.const([0, 0, 0], np.int8), axis=3)
    w = net.op("Transpose", w, perm=[0, 1, 3, 2])
    net.op("Conv", "x", w)
    seen = check(net.model())
    assert ops(seen) == ["DequantizeLinear", "Conv"]
    dq = seen.nodes[0]
    assert dq.attrs["axis"] == 2
    meaning = seen.values[dq.inputs[0] or ""].quantisation
    assert meaning is not None
    assert meaning.axis == 2
    known = seen.const(dq.outputs[0])
    assert known is not None
    np.testing.assert_array_equal(
        known[0, 0, :, 0], (np.arange(3) - 12).astype(np.float32) * np.float32([0.1, 0.2, 0.3])
    )
