"""The integer references stay within one output step of the float operator between dequantise and quantise, as
onnxruntime computes it.

Multipliers are made from the scales as the descriptors document it.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.fixed_point import multiplier, shift
from tests.kernels_compute.cases import Case
from tests.kernels_other.drawn import Rng, bytes_, channelwise, extents, scaling, zero
from tests.kernels_other.onnx_model import node, run_nodes, run_quantised
from tests.kernels_other.test_tiled import expected
from tests.kernels_other.window_cases import image, window

FULL = {"lo": -128, "hi": 127}
SEEDS = st.integers(0, 2**32)


def scale(rng: Rng) -> float:
    """As exporters write them: float32."""
    return float(np.float32(rng.choice([2.0**-7, 1.0 / 255, rng.uniform(0.002, 0.5)])))


def apart(ours: np.ndarray, theirs: np.ndarray) -> int:
    assert ours.dtype == theirs.dtype == np.int8
    assert ours.shape == theirs.shape
    return int(np.abs(ours.astype(np.int32) - theirs).max(initial=0))


@given(seed=SEEDS)
def test_add(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = extents(rng)
    a, b = bytes_(rng, shape), bytes_(rng, shape)
    sa, sb, sy = scale(rng), scale(rng), scale(rng) * 2
    za, zb, zy = zero(rng), zero(rng), zero(rng)
    right = int(shift(max(sa, sb) / sy))
    attrs = {"ma": round(sa / sy * 2.0**right), "mb": round(sb / sy * 2.0**right), "shift": right}
    ours = expected("add_i8", Case({"a": a, "b": b}, attrs | {"a_zero": za, "b_zero": zb, "y_zero": zy} | FULL))
    assert apart(ours, run_quantised("Add", {"a": (a, sa, za), "b": (b, sb, zb)}, (sy, zy))) <= 1


@given(seed=SEEDS)
def test_mul(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = extents(rng)
    a, b = bytes_(rng, shape), bytes_(rng, shape)
    sa, sb, sy = scale(rng), scale(rng), scale(rng)
    za, zb, zy = zero(rng), zero(rng), zero(rng)
    attrs = scaling(sa * sb / sy) | {"a_zero": za, "b_zero": zb, "y_zero": zy} | FULL
    ours = expected("mul_i8", Case({"a": a, "b": b}, attrs))
    assert apart(ours, run_quantised("Mul", {"a": (a, sa, za), "b": (b, sb, zb)}, (sy, zy))) <= 1


@given(seed=SEEDS)
def test_requantize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, sx, sy, zx, zy = bytes_(rng, extents(rng)), scale(rng), scale(rng), zero(rng), zero(rng)
    ours = expected("requantize_i8", Case({"x": x}, scaling(sx / sy) | {"x_zero": zx, "y_zero": zy} | FULL))
    assert apart(ours, run_quantised("Identity", {"x": (x, sx, zx)}, (sy, zy))) <= 1


@given(seed=SEEDS)
def test_scale_shift(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = extents(rng)
    part = channelwise(rng, shape)
    x, sx, sy, zx, zy = bytes_(rng, shape), scale(rng), scale(rng), zero(rng), zero(rng)
    gain, offset = rng.uniform(-3, 3, part), rng.uniform(-3, 3, part)
    right = shift(np.maximum(np.abs(gain * sx / sy), 2.0**-16))
    whole = right.astype(np.float64)
    constants = {
        "mul": np.rint(gain * sx / sy * 2**whole).astype(np.int32),
        "bias": np.rint(offset / sy * 2**whole).astype(np.int64),
        "shift": right,
    }
    ours = expected("scale_shift_i8", Case({"x": x} | constants, {"x_zero": zx, "y_zero": zy} | FULL))
    feeds = {
        "x": x, "xs": np.array(sx, np.float32), "xz": np.array(zx, np.int8), "ys": np.array(sy, np.float32),
        "yz": np.array(zy, np.int8), "gain": gain.astype(np.float32), "offset": offset.astype(np.float32),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", ("x", "xs", "xz"), "f"),
        node("Mul", ("f", "gain"), "g"),
        node("Add", ("g", "offset"), "h"),
        node("QuantizeLinear", ("h", "ys", "yz")),
    ]
    assert apart(ours, run_nodes(nodes, feeds, "int8")) <= 1


@given(seed=SEEDS)
def test_average_pool(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, sx, sy, zx, zy = bytes_(rng, image(rng, 5)), scale(rng), scale(rng), zero(rng), zero(rng)
    shape = window(rng) | {"count_include_pad": int(rng.integers(0, 2))}
    taps = int(np.prod(shape["kernel"]))  # type: ignore[arg-type]
    factors = sx / sy / np.arange(1, taps + 1)
    operands = {"x": x, "mul": multiplier(factors), "shift": shift(factors)}
    ours = expected("avgpool_i8", Case(operands, shape | {"x_zero": zx, "y_zero": zy} | FULL))
    names = {"kernel": "kernel_shape"}
    attributes = {names.get(n, n): v for n, v in shape.items()}
    assert apart(ours, run_quantised("AveragePool", {"x": (x, sx, zx)}, (sy, zy), **attributes)) <= 1


@given(seed=SEEDS)
def test_max_pool_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, sx, zx = bytes_(rng, image(rng, 5)), scale(rng), zero(rng)
    shape = window(rng)
    ours = expected("maxpool_i8", Case({"x": x}, shape | FULL))
    attributes = {{"kernel": "kernel_shape"}.get(n, n): v for n, v in shape.items()}
    assert apart(ours, run_quantised("MaxPool", {"x": (x, sx, zx)}, (sx, zx), **attributes)) == 0


@given(seed=SEEDS)
def test_global_pools(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = image(rng)
    x, sx, sy, zx, zy = bytes_(rng, shape), scale(rng), scale(rng), zero(rng), zero(rng)
    attrs = scaling(sx / sy / (shape[2] * shape[3])) | {"x_zero": zx, "y_zero": zy} | FULL
    ours = expected("global_avgpool_i8", Case({"x": x}, attrs))
    assert apart(ours, run_quantised("GlobalAveragePool", {"x": (x, sx, zx)}, (sy, zy))) <= 1
    greatest = expected("global_maxpool_i8", Case({"x": x}, {}))
    assert apart(greatest, run_quantised("GlobalMaxPool", {"x": (x, sx, zx)}, (sx, zx))) == 0


def softmax_difference(x: np.ndarray, sx: float, sy: float, zy: int) -> int:
    table = np.rint(2.0**30 * np.exp(-np.arange(256) * sx)).astype(np.uint32)
    ours = expected("softmax_i8", Case({"x": x, "table": table}, scaling(1 / sy) | {"y_zero": zy}))
    return apart(ours, run_quantised("Softmax", {"x": (x, sx, 0)}, (sy, zy), axis=-1))


@given(seed=SEEDS)
def test_softmax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = bytes_(rng, (*extents(rng, 0, 2), int(rng.integers(1, 200))))
    assert softmax_difference(x, scale(rng), float(rng.choice([1 / 256, 1 / 255, 0.01])), zero(rng)) <= 1


def test_softmax_of_long_and_flat_lines() -> None:
    rng = np.random.default_rng(0)
    assert softmax_difference(bytes_(rng, (1, 50000)), 0.2, 1 / 65536, -128) <= 1
    assert softmax_difference(np.zeros((2, 4096), np.int8), 0.1, 2.0**-14, -128) <= 1


@given(seed=SEEDS)
def test_linear_resize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, sx, sy, zx, zy = bytes_(rng, image(rng)), scale(rng), scale(rng), zero(rng), zero(rng)
    h, w = x.shape[2:]
    p, q = (int(v) for v in rng.integers(2, 14, 2))
    attrs = {"extent": (p, q), "rows": (2 * h, h - p, 2 * p), "columns": (2 * w, w - q, 2 * q)}
    factor = sx / sy / (4 * p * q)
    ours = expected("resize_linear_i8", Case({"x": x}, attrs | scaling(factor) | {"x_zero": zx, "y_zero": zy} | FULL))
    feeds = {
        "x": x, "xs": np.array(sx, np.float32), "xz": np.array(zx, np.int8), "ys": np.array(sy, np.float32),
        "yz": np.array(zy, np.int8), "sizes": np.array([*x.shape[:2], p, q]),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", ("x", "xs", "xz"), "f"),
        node("Resize", ("f", "", "", "sizes"), "g", mode="linear", coordinate_transformation_mode="half_pixel"),
        node("QuantizeLinear", ("g", "ys", "yz")),
    ]
    assert apart(ours, run_nodes(nodes, feeds, "int8")) <= 1
