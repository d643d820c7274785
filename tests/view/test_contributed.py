"""Quantised operators of com.microsoft and QLinear*: in the view, the standard operators between Q and DQ."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.view import View
from tests.view.oracle import check, invariants, ops
from tests.view.test_quantised import Net


def quantised_input(net: Net, zero: int) -> tuple[str, str, str]:
    return net.value, net.const(0.02), net.const(zero, net.dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.1}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearAveragePool", {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}),
        ("QLinearSoftmax", {"axis": 1, "opset": 11}),
        ("QLinearSoftmax", {"axis": -1, "opset": 13}),
    ],
)
def test_contributed_operators_of_one_operand(op: str, attrs: dict[str, object], dtype: str) -> None:
    net = Net([2, 3, 4, 5], dtype)
    centre = 120 if dtype == "uint8" else -8
    net.quantise(0.02, centre)
    x = quantised_input(net, centre)
    net.op(
        op,
        *x,
        net.const(1 / 256),
        net.const(0 if dtype == "uint8" else -128, net.dtype),
        domain="com.microsoft",
        **attrs,
    )
    near(net.model(13), op.removeprefix("QLinear"))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_contributed_operators_of_two_operands(op: str, dtype: str) -> None:
    net = Net([2, 3], dtype)
    centre = 120 if dtype == "uint8" else -8
    net.quantise(0.02, centre)
    x = quantised_input(net, centre)
    other = (net.const([[3], [90]], net.dtype), net.const(0.03), net.const(4, net.dtype))
    net.op(op, *x, *other, net.const(0.05), net.const(11, net.dtype), domain="com.microsoft")
    near(net.model(13), op.removeprefix("QLinear"))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_qlinear_conv_and_matmul(dtype: str) -> None:
    net = Net([1, 2, 4, 4], dtype)
    centre = 120 if dtype == "uint8" else -8
    rng = np.random.default_rng(0)
    net.quantise(0.02, centre)
    x = quantised_input(net, centre)
    w = (
        net.const(rng.integers(-9, 9, (3, 2, 3, 3)), np.int8),
        net.const([0.01, 0.02, 0.03]),
        net.const([0, 0, 0], np.int8),
    )
    y = (net.const(0.01), net.const(centre, net.dtype))
    net.op("QLinearConv", *x, *w, *y, net.const([100, -20, 3], np.int32), pads=[1, 1, 1, 1])
    w2 = (net.const(rng.integers(0, 9, (4, 5)), net.dtype), net.const(0.02), net.const(3, net.dtype))
    net.op("QLinearMatMul", net.value, *y, *w2, net.const(0.01), net.const(centre, net.dtype))
    seen = near(net.model(13), "Conv")
    assert {"MatMul", "QuantizeLinear", "DequantizeLinear"} < set(ops(seen))


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("real", [False, True])
def test_qgemm(transposed: int, real: bool) -> None:
    net = Net([2, 4], "int8")
    net.quantise(0.02, 3)
    x = quantised_input(net, 3)
    weight = np.random.default_rng(0).integers(-99, 99, (3, 4) if transposed else (4, 3))
    w = (net.const(weight, np.int8), net.const([0.01, 0.02, 0.03]), net.const([0, 0, 0], np.int8))
    result = () if real else (net.const(0.01), net.const(-3, np.int8))
    net.op(
        "QGemm",
        *x,
        *w,
        net.const([100, 0, -7], np.int32),
        *result,
        domain="com.microsoft",
        transB=transposed,
        alpha=0.5,
    )
    near(net.model(13), "Gemm")


def near(proto: onnx.ModelProto, op: str) -> View:
    """The expanded form is the same real function; onnxruntime rounds it in another place, so one step may differ.

    The contributed kernels multiply by a float32 ratio of scales where DQ - op - Q computes in reals.
    """
    from fusion_engine.model import read_model
    from fusion_engine.view import view, view_to_model
    from tests.view.oracle import draw, session

    model = read_model(proto)
    seen = view(model)
    invariants(seen)
    assert op in ops(seen)
    given = draw(model, 0)
    expected, actual = (session(p).run(None, given)[0] for p in (model.proto, view_to_model(seen)))
    assert expected.dtype == actual.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    else:
        assert np.abs(expected.astype(int) - actual.astype(int)).max() <= 1
    return seen


@pytest.mark.parametrize(
    ("bits", "zeros", "with_bias"),
    [(4, "packed", True), (4, "none", False), (4, "real", False), (8, "packed", False), (2, "packed", False)],
)
def test_matmul_nbits_is_a_product_with_its_weights_written_out(bits: int, zeros: str, with_bias: bool) -> None:
    """It had no type, and what read it was refused as `Add(?[?], ...)`."""
    n, k, block = 3, 40, 16
    count, per = -(-k // block), 8 // bits
    rng = np.random.default_rng(bits)
    tensors = {
        "b": rng.integers(0, 256, (n, count, block * bits // 8), np.uint8),
        "s": rng.uniform(0.01, 0.1, n * count).astype(np.float32),
    }
    if zeros == "packed":
        tensors["z"] = rng.integers(0, 256, n * -(-count // per), np.uint8)
    elif zeros == "real":
        tensors["z"] = rng.uniform(0, 100, n * count).astype(np.float32)
    names = ["x", "b", "s", "z" if zeros != "none" else "", "", "bias" if with_bias else ""]
    if with_bias:
        tensors["bias"] = rng.standard_normal(n).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits",
        names if with_bias else names[:4],
        ["y"],
        domain="com.microsoft",
        K=k,
        N=n,
        bits=bits,
        block_size=block,
    )
    ports = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [2, d]) for v, d in (("x", k), ("y", n))]
    graph = helper.make_graph(
        [node], "g", ports[:1], ports[1:], [numpy_helper.from_array(a, t) for t, a in tensors.items()]
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    seen = check(helper.make_model(graph, opset_imports=imports, ir_version=8))
    assert {v.op for v in seen.nodes} == ({"MatMul", "Add"} if with_bias else {"MatMul"})
