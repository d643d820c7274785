"""The numpy references mean what ONNX says: float ones against onnxruntime, int8 ones against the float ones."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from fusion_engine.fixed_point import requantise, saturate
from fusion_engine.kernels import reference
from tests.kernels_compute.cases import FAMILIES, Case, cases, kernel, sums
from tests.kernels_compute.test_tiled import expected, magnitude
from tests.tolerances import close_sums

OPERATOR = {
    "conv2d": "Conv", "depthwise": "Conv", "pointwise": "Conv", "conv_transpose": "ConvTranspose",
    "linear": "Gemm", "matmul": "MatMul",
}  # fmt: skip


def onnx_attributes(family: str, case: Case) -> dict[str, object]:
    if family in ("linear", "matmul"):
        return {"transB": 1} if family == "linear" else {}
    attrs = {n: list(case.attrs[n]) for n in ("strides", "dilations", "pads", "output_padding") if n in case.attrs}
    groups = case.operands["x"].shape[1] if family == "depthwise" else case.attrs.get("groups", 1)
    return attrs | {"group": groups, "kernel_shape": list(case.operands["weight"].shape[2:])}


def run_onnx(family: str, case: Case) -> np.ndarray:
    node = helper.make_node(OPERATOR[family], list(case.operands), ["y"], **onnx_attributes(family, case))
    inputs = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, v.shape) for n, v in case.operands.items()]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph([node], "g", inputs, [output]), opset_imports=opset, ir_version=8)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, case.operands)[0]


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_float_reference_is_the_operator_then_a_clamp(family: str, data: st.DataObject) -> None:
    case = data.draw(cases(f"{family}_f32"))
    theirs = np.clip(run_onnx(family, case), np.float32(case.attrs["lo"]), np.float32(case.attrs["hi"]))
    ours = expected(f"{family}_f32", case)
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape
    assert close_sums(ours, theirs, magnitude(f"{family}_f32", case))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15)
@given(data=st.data())
def test_int8_reference_is_the_float_one_on_integers_requantised(family: str, data: st.DataObject) -> None:
    case = data.draw(cases(f"{family}_i8"))
    a = case.attrs
    zeros = {"x": a.get("x_zero", 0), "a": a.get("a_zero", 0), "b": a.get("b_zero", 0)}
    floats = {
        n: (v.astype(np.float32) - zeros.get(n, 0)) for n, v in case.operands.items() if n not in ("mul", "shift")
    }
    scaling = ("x_zero", "a_zero", "b_zero", "y_zero", "mul", "shift")
    attrs = {n: v for n, v in a.items() if n not in scaling} | {"lo": -np.inf, "hi": np.inf}
    sums = expected(f"{family}_f32", Case(floats, attrs))
    column = (slice(None), None, None) if sums.ndim == 4 and family != "matmul" else ()
    mul, right = (np.asarray(case.operands.get(n, a.get(n))) for n in ("mul", "shift"))
    theirs = saturate(requantise(sums.astype(np.int64), mul[column], right[column]), a["y_zero"], a["lo"], a["hi"])
    np.testing.assert_array_equal(expected(f"{family}_i8", case), theirs)


@pytest.mark.parametrize("family", ["conv2d", "depthwise", "pointwise"])
@settings(max_examples=15)
@given(data=st.data())
def test_a_convolution_with_an_addend_is_the_two_kernels_one_after_the_other(family: str, data: st.DataObject) -> None:
    case = data.draw(sums(f"{family}_i8"))
    a = case.attrs
    own = {n: v for n, v in a.items() if not n.startswith(("sum_", "addend_"))}
    alone = expected(f"{family}_i8", Case({n: v for n, v in case.operands.items() if n != "addend"}, own))
    add = {"ma": a["sum_mul"], "mb": a["addend_mul"], "shift": a["sum_shift"], "a_zero": a["y_zero"]}
    add |= {"b_zero": a["addend_zero"], "y_zero": a["sum_zero"], "lo": a["sum_lo"], "hi": a["sum_hi"]}
    both = reference(kernel("add_i8"))(a=alone, b=case.operands["addend"], **add)
    np.testing.assert_array_equal(expected(f"{family}_i8", case), both)
