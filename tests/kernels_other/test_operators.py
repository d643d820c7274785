"""The float and movement references mean what ONNX says: each against onnxruntime's operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import helper

from tests.kernels_compute.cases import Case
from tests.kernels_other.cases import CASES
from tests.kernels_other.drawn import Rng, clamp, extents, floats, integers
from tests.kernels_other.onnx_model import node, run_nodes, run_operator
from tests.kernels_other.test_tiled import expected, magnitude
from tests.tolerances import close_sums

Oracle = Callable[[Case], np.ndarray]


def clamped(case: Case, y: np.ndarray) -> np.ndarray:
    return np.clip(y, np.float32(case.attrs["lo"]), np.float32(case.attrs["hi"]))


def operator(op: str, **fixed: object) -> Oracle:
    def run(case: Case) -> np.ndarray:
        y = run_operator(op, case.operands, **fixed)
        return clamped(case, y) if "lo" in case.attrs else y

    return run


def pool(op: str) -> Oracle:
    names = ("strides", "dilations", "pads", "ceil_mode", "count_include_pad")

    def run(case: Case) -> np.ndarray:
        attrs = {n: case.attrs[n] for n in names if n in case.attrs}
        return clamped(case, run_operator(op, case.operands, kernel_shape=case.attrs["kernel"], **attrs))

    return run


def global_average(case: Case) -> np.ndarray:
    return clamped(case, run_operator("GlobalAveragePool", case.operands))


def layer_norm(case: Case) -> np.ndarray:
    d = case.operands["x"].shape[-1]
    gamma = case.operands.get("gamma", np.ones(d, np.float32))
    beta = case.operands.get("beta", np.zeros(d, np.float32))
    feeds = {"x": case.operands["x"], "gamma": gamma, "beta": beta}
    return run_operator("LayerNormalization", feeds, axis=-1, epsilon=case.attrs["epsilon"])


def affine(case: Case) -> np.ndarray:
    product = run_operator("Mul", {n: case.operands[n] for n in ("x", "scale")})
    return clamped(case, run_operator("Add", {"x": product, "bias": case.operands["bias"]}))


def reduction(case: Case) -> np.ndarray:
    names = {"sumsquare": "SumSquare", "logsum": "LogSum", "logsumexp": "LogSumExp"}
    op = str(case.attrs["op"])
    feeds = {"x": case.operands["x"], "axes": np.array([-1])}
    return run_operator(f"Reduce{names.get(op, op.capitalize())}", feeds, keepdims=0)


def argument(case: Case) -> np.ndarray:
    op = "ArgMin" if case.attrs["minimum"] else "ArgMax"
    return run_operator(op, case.operands, "int64", axis=-1, keepdims=0, select_last_index=case.attrs["last"])


def padded(case: Case) -> np.ndarray:
    x = case.operands["x"]
    feeds = {"x": x, "pads": np.array(case.attrs["pads"]), "value": np.array(case.attrs["value"], x.dtype)}
    return run_operator("Pad", feeds, str(x.dtype))


def mirrored(case: Case) -> np.ndarray:
    top, left, bottom, right = case.attrs["pads"]  # type: ignore[misc]
    feeds = {"x": case.operands["x"], "pads": np.array([0, 0, top, left, 0, 0, bottom, right])}
    mode = ("edge", "reflect", "wrap")[int(case.attrs["mode"])]  # type: ignore[arg-type]
    return run_operator("Pad", feeds, "int8", mode=mode)


def gathered(case: Case) -> np.ndarray:
    return run_operator("Gather", case.operands, str(case.operands["x"].dtype), axis=1)


def expanded(case: Case) -> np.ndarray:
    return run_operator("Expand", {"x": case.operands["x"], "shape": np.array(case.attrs["shape"])})


def converted(case: Case) -> np.ndarray:
    """ONNX leaves open what a float out of range becomes: there the kernel's own rule stands."""
    to, x = np.dtype(str(case.attrs["to"])), case.operands["x"]
    y = run_operator("Cast", case.operands, str(to), to=helper.np_dtype_to_tensor_dtype(to))
    if x.dtype.kind != "f" or to.kind not in "iu":
        return y
    info = np.iinfo(to)
    defined = np.isfinite(x) & (x.astype(np.float64) > info.min - 1.0) & (x.astype(np.float64) < info.max + 1.0)
    return np.where(defined, y, expected("cast", case))


def conditions(case: Case) -> np.ndarray:
    return run_operator("Where", case.operands)


ORACLES: Mapping[str, Oracle] = {
    "add_f32": operator("Add"),
    "sub_f32": operator("Sub"),
    "mul_f32": operator("Mul"),
    "div_f32": operator("Div"),
    "prelu_f32": operator("PRelu"),
    "softmax_f32": operator("Softmax", axis=-1),
    "log_softmax_f32": operator("LogSoftmax", axis=-1),
    "global_maxpool_f32": operator("GlobalMaxPool"),
    "global_avgpool_f32": global_average,
    "maxpool_f32": pool("MaxPool"),
    "avgpool_f32": pool("AveragePool"),
    "layernorm_f32": layer_norm,
    "scale_shift_f32": affine,
    "reduce_f32": reduction,
    "where_f32": conditions,
    "argmax_f32": argument,
    "argmax_i8": argument,
    "pad_f32": padded,
    "pad_i8": padded,
    "pad_mirror": mirrored,
    "gather": gathered,
    "expand": expanded,
    "cast": converted,
}


EXACT = {"where_f32", "pad_f32", "gather", "expand", "cast"}
"""Kernels that move or convert numbers: nothing to round twice."""


@pytest.mark.parametrize("name", ORACLES)
@given(seed=st.integers(0, 2**32))
@example(seed=239584)  # cast: uint16 beyond float16 is infinity on both sides, which no distance measures
def test_reference_is_the_operator(name: str, seed: int) -> None:
    case = CASES[name](np.random.default_rng(seed))
    ours, theirs = expected(name, case), ORACLES[name](case)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if ours.dtype.kind == "f" and name not in EXACT:
        assert close_sums(ours, theirs, magnitude(case, theirs))
    else:
        np.testing.assert_array_equal(ours, theirs)


def quantisation(rng: Rng, info: np.iinfo) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """x with halves between steps, scale and zero point per tensor or along one axis."""
    shape = extents(rng)
    axis = int(rng.integers(0, len(shape)))
    count = shape[axis] if rng.random() < 0.5 else 1
    scale = rng.choice([0.5, 0.0625, 0.1, 0.037], count).astype(np.float32)
    column = tuple(-1 if i == axis else 1 for i in range(len(shape)))
    range_ = 2 * (info.max - info.min)
    steps = rng.integers(-range_, range_, shape) / 2
    zero = integers(info.dtype.name, rng, (count,))
    return (steps * scale.reshape(column)).astype(np.float32), scale, zero, axis


@pytest.mark.parametrize(("suffix", "dtype"), [("", "int8"), ("_i16", "int16"), ("_u16", "uint16")])
@given(seed=st.integers(0, 2**32))
def test_quantise_and_dequantise_are_the_operators_bit_for_bit(suffix: str, dtype: str, seed: int) -> None:
    info = np.iinfo(dtype)
    x, scale, zero, axis = quantisation(np.random.default_rng(seed), info)
    column = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    ours = {"x": x, "scale": scale.reshape(column), "zero": zero.reshape(column)}
    theirs = {"x": x, "scale": scale if scale.size > 1 else scale[0], "zero": zero if scale.size > 1 else zero[0]}
    theirs = {n: np.asarray(v) for n, v in theirs.items()}
    whole = {"lo": int(info.min), "hi": int(info.max)}
    q = run_operator("QuantizeLinear", theirs, dtype, axis=axis)
    np.testing.assert_array_equal(expected(f"quantize_linear{suffix}", Case(ours, whole)), q)
    f = run_operator("DequantizeLinear", theirs | {"x": q}, axis=axis)
    np.testing.assert_array_equal(expected(f"dequantize_linear{suffix}", Case(ours | {"x": q}, {})), f)


def resize(x: np.ndarray, p: int, q: int, **attributes: object) -> np.ndarray:
    feeds = {"x": x, "sizes": np.array([*x.shape[:2], p, q])}
    return run_nodes([node("Resize", ["x", "", "", "sizes"], **attributes)], feeds, "float32")


def resized(rng: Rng) -> tuple[np.ndarray, tuple[int, int], str, dict[str, object]]:
    """An image, the extents wanted, the coordinate mode, and the kernel's attributes as the descriptor documents
    them."""
    x = floats(rng, tuple(int(v) for v in rng.integers(1, 8, 4)))
    h, w = x.shape[2:]
    p, q = (int(v) for v in rng.integers(2, 15, 2))
    coordinate = str(rng.choice(["half_pixel", "asymmetric", "align_corners"]))

    def triple(n: int, m: int) -> tuple[int, int, int]:
        return {"half_pixel": (2 * n, n - m, 2 * m), "asymmetric": (n, 0, m), "align_corners": (n - 1, 0, m - 1)}[
            coordinate
        ]

    return x, (p, q), coordinate, {"extent": (p, q), "rows": triple(h, p), "columns": triple(w, q)}


@given(seed=st.integers(0, 2**32))
def test_linear_resize_is_the_operator(seed: int) -> None:
    x, (p, q), coordinate, attrs = resized(np.random.default_rng(seed))
    theirs = resize(x, p, q, mode="linear", coordinate_transformation_mode=coordinate)
    ours = expected("resize_linear_f32", Case({"x": x}, attrs))  # type: ignore[arg-type]
    # onnxruntime computes the coordinate in float32: its error times the largest step between neighbours
    assert close_sums(ours, theirs, 2 * float(np.abs(x).max()) * max(x.shape[2:]))


@given(seed=st.integers(0, 2**32))
def test_nearest_resize_by_whole_factors_is_the_operator(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = floats(rng, tuple(int(v) for v in rng.integers(1, 8, 4)))
    h, w = x.shape[2:]
    p, q = h * int(rng.integers(1, 5)), w * int(rng.integers(1, 5))
    ways = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    theirs = resize(x, p, q, mode="nearest", **ways)
    attrs = {"extent": (p, q), "rows": (h, 0, p), "columns": (w, 0, q)}
    np.testing.assert_array_equal(expected("resize_nearest", Case({"x": x}, attrs)), theirs)


UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "gelu": "Gelu",
    "hardswish": "HardSwish", "log": "Log", "mish": "Mish", "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu",
    "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "softplus": "Softplus",
    "softsign": "Softsign", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
PARAMETRIC: Mapping[str, tuple[str, dict[str, object]]] = {
    "gelu_tanh(x0)": ("Gelu", {"approximate": "tanh"}),
    "elu(x0, 1.5)": ("Elu", {"alpha": 1.5}),
    "celu(x0, 0.75)": ("Celu", {"alpha": 0.75}),
    "selu(x0, 1.5, 1.25)": ("Selu", {"alpha": 1.5, "gamma": 1.25}),
    "leakyrelu(x0, 0.125)": ("LeakyRelu", {"alpha": 0.125}),
    "hardsigmoid(x0, 0.25, 0.375)": ("HardSigmoid", {"alpha": 0.25, "beta": 0.375}),
    "thresholdedrelu(x0, 0.5)": ("ThresholdedRelu", {"alpha": 0.5}),
    "shrink(x0, 0.5, 0.25)": ("Shrink", {"lambd": 0.5, "bias": 0.25}),
}
BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "min": "Min", "max": "Max", "prelu": "PRelu",
}  # fmt: skip
COMPARED = {
    "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less", "less_equal": "LessOrEqual",
    "equal": "Equal",
}  # fmt: skip
DOMAIN = {"acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.9, 0.9), "acosh": (1, 9), "log": (0.01, 9), "sqrt": (0, 9)}


def agrees(expr: str, operands: dict[str, np.ndarray], theirs: np.ndarray) -> None:
    """Beside the rounding of the result itself, an argument's rounding may be magnified by the slope: magnitudes
    count."""
    ours = expected("map_f32", Case({f"x{i}": v for i, v in enumerate(operands.values())}, {"expr": expr}))
    assert ours.shape == theirs.shape
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    finite = np.isfinite(theirs)
    assert np.array_equal(ours[~finite & ~np.isnan(ours)], theirs[~finite & ~np.isnan(theirs)])
    assert close_sums(ours[finite], theirs[finite], np.maximum(np.abs(theirs[finite]), 1.0))


@pytest.mark.parametrize("function", UNARY)
@given(seed=st.integers(0, 2**32))
def test_map_function_is_the_operator(function: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lo, hi = DOMAIN.get(function, (-4, 4))
    x = rng.uniform(lo, hi, 40).astype(np.float32)
    x[:6] = np.clip(np.array([0, 0.5, 1.5, -0.5, 2.5, -2.5]), lo, hi)  # halves, signs, zero
    agrees(f"{function}(x0)", {"x": x}, run_operator(UNARY[function], {"x": x}))


@pytest.mark.parametrize("expr", PARAMETRIC)
@given(seed=st.integers(0, 2**32))
def test_map_function_with_parameters_is_the_operator(expr: str, seed: int) -> None:
    x = floats(np.random.default_rng(seed), (40,))
    op, attributes = PARAMETRIC[expr]
    agrees(expr, {"x": x}, run_operator(op, {"x": x}, **attributes))


@pytest.mark.parametrize("function", [*BINARY, *COMPARED])
@given(seed=st.integers(0, 2**32))
def test_map_function_of_two_is_the_operator(function: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = floats(rng, (4, 5)), rng.choice([-1.5, 0.5, 2.0, 3.0], (1, 5)).astype(np.float32)
    a = np.abs(a) if function == "pow" else np.where(rng.random((4, 5)) < 0.3, b, a)
    if function in BINARY:
        agrees(f"{function}(x0, x1)", {"a": a, "b": b}, run_operator(BINARY[function], {"a": a, "b": b}))
    else:
        theirs = run_operator(COMPARED[function], {"a": a, "b": b}, "bool")
        agrees(f"{function}(x0, x1)", {"a": a, "b": b}, theirs.astype(np.float32))


@given(seed=st.integers(0, 2**32))
def test_clip_is_the_operator(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, limits = floats(rng, (30,)), clamp(rng, False)
    feeds = {"x": x} | {n: np.array(limits[n], np.float32) for n in ("lo", "hi")}
    agrees(f"clip(x0, {limits['lo']}, {limits['hi']})", {"x": x}, run_operator("Clip", feeds))
