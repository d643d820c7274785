"""Random calls of the dense kernels: operands, attributes and, for floats, the magnitude of what is summed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from fusion_engine.fixed_point import multiplier, shift
from fusion_engine.graph import CallAttr
from fusion_engine.kernels import load_kernels, solve_sizes
from fusion_engine.kernels.descriptor import Kernel

ROOM = Path(__file__).resolve().parents[2] / "kernels"
BATCHES = [((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((3,), ()), ((2, 1), (3,)), ((1, 2), (2, 1))]
Draw = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Case:
    """Operands and attributes of one call."""

    operands: dict[str, np.ndarray]
    attrs: dict[str, CallAttr]


@cache
def kernel(name: str) -> Kernel:
    return load_kernels([ROOM])[name]


def is_float(name: str) -> bool:
    return name.endswith("f32")


def numbers(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of the kernel's activations or weights, extremes included."""
    if is_float(name):
        return rng.standard_normal(shape).astype(np.float32)
    values = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice([-128, 127], shape), values).astype(np.int8)


def epilogue(rng: np.random.Generator, name: str, channels: int, terms: int) -> tuple[dict, dict]:
    """Bias, and for int8 the multipliers that bring sums of `terms` products into range, with a random clamp."""
    lo, hi = sorted(rng.integers(-128, 128, 2).tolist())
    if is_float(name):
        limits = {"lo": float(lo) / 64, "hi": float(hi) / 64} if rng.random() < 0.5 else {"lo": -np.inf, "hi": np.inf}
        return {"bias": rng.standard_normal(channels).astype(np.float32)}, limits
    factor = rng.uniform(0.2, 4.0, channels) / (64 * np.sqrt(max(terms, 1)))
    bias = rng.integers(-5000, 5000, channels).astype(np.int32)
    limits = {"lo": lo, "hi": hi} if rng.random() < 0.5 else {"lo": -128, "hi": 127}
    zeros = {"x_zero": int(rng.integers(-128, 128)), "y_zero": int(rng.integers(-128, 128))}
    return {"bias": bias, "mul": multiplier(factor), "shift": shift(factor)}, limits | zeros


@st.composite
def conv2d(draw: Draw, name: str) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r, s = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    strides = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    dilations = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    pads = tuple(draw(st.integers(0, 3)) for _ in range(4))
    h = draw(st.integers(max(1, dilations[0] * (r - 1) + 1 - pads[0] - pads[2]), 11))
    w = draw(st.integers(max(1, dilations[1] * (s - 1) + 1 - pads[1] - pads[3]), 11))
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    cg, kg = draw(st.integers(1, 9)), draw(st.integers(1, 40 if groups == 1 else 5))
    x = numbers(rng, name, (draw(st.integers(1, 2)), groups * cg, h, w))
    weight = numbers(rng, name, (groups * kg, cg, r, s))
    extra, attrs = epilogue(rng, name, groups * kg, r * s * cg)
    window = {"groups": groups, "strides": strides, "dilations": dilations, "pads": pads}
    return Case({"x": x, "weight": weight, **extra}, attrs | window)


@st.composite
def depthwise(draw: Draw, name: str) -> Case:
    c = draw(st.one_of(st.integers(1, 9), st.integers(30, 45)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r, s = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    strides = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    dilations = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    pads = tuple(draw(st.integers(0, 3)) for _ in range(4))
    h = draw(st.integers(max(1, dilations[0] * (r - 1) + 1 - pads[0] - pads[2]), 10))
    w = draw(st.integers(max(1, dilations[1] * (s - 1) + 1 - pads[1] - pads[3]), 10))
    x, weight = numbers(rng, name, (draw(st.integers(1, 2)), c, h, w)), numbers(rng, name, (c, 1, r, s))
    extra, attrs = epilogue(rng, name, c, r * s)
    return Case({"x": x, "weight": weight, **extra}, attrs | {"strides": strides, "dilations": dilations, "pads": pads})


@st.composite
def pointwise(draw: Draw, name: str) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    c, k = draw(st.integers(1, 20)), draw(st.integers(1, 70))
    x = numbers(rng, name, (draw(st.integers(1, 2)), c, draw(st.integers(1, 9)), draw(st.integers(1, 9))))
    extra, attrs = epilogue(rng, name, k, c)
    weight = numbers(rng, name, (k, c, 1, 1))
    strides = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    return Case({"x": x, "weight": weight, **extra}, attrs | {"strides": strides})


@st.composite
def linear(draw: Draw, name: str) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, k, j = (
        draw(st.integers(1, 20)),
        draw(st.integers(1, 60)),
        draw(st.one_of(st.integers(1, 40), st.integers(60, 150))),
    )
    extra, attrs = epilogue(rng, name, j, k)
    return Case({"x": numbers(rng, name, (m, k)), "weight": numbers(rng, name, (j, k)), **extra}, attrs)


@st.composite
def matmul(draw: Draw, name: str) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, k, j = draw(st.integers(1, 20)), draw(st.integers(1, 40)), draw(st.integers(1, 50))
    left, right = draw(st.sampled_from(BATCHES))
    a, b = numbers(rng, name, (*left, m, k)), numbers(rng, name, (*right, k, j))
    extra, attrs = epilogue(rng, name, 1, k)
    if is_float(name):
        return Case({"a": a, "b": b}, attrs)
    zeros = {"a_zero": attrs.pop("x_zero"), "b_zero": int(rng.integers(-128, 128)), "y_zero": attrs.pop("y_zero")}
    return Case({"a": a, "b": b}, attrs | zeros | {"mul": int(extra["mul"][0]), "shift": int(extra["shift"][0])})


@st.composite
def conv_transpose(draw: Draw, name: str) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r, s = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    strides = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    dilations = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    output_padding = tuple(draw(st.integers(0, m - 1)) for m in strides)
    h, w = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    room = [(n - 1) * m + d * (t - 1) for n, m, d, t in zip((h, w), strides, dilations, (r, s), strict=True)]
    pads = tuple(draw(st.integers(0, min(2, room[i % 2] // 2))) for i in range(4))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    c, k = draw(st.integers(1, 6)), draw(st.integers(1, 20 if groups == 1 else 5))
    x = numbers(rng, name, (draw(st.integers(1, 2)), groups * c, h, w))
    weight = numbers(rng, name, (groups * c, k, r, s))
    extra, attrs = epilogue(rng, name, groups * k, c * r * s)
    window = {
        "groups": groups,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "output_padding": output_padding,
    }
    return Case({"x": x, "weight": weight, **extra}, attrs | window)


FAMILIES = {
    "conv2d": conv2d,
    "conv_transpose": conv_transpose,
    "depthwise": depthwise,
    "linear": linear,
    "matmul": matmul,
    "pointwise": pointwise,
}


def cases(name: str) -> st.SearchStrategy[Case]:
    return FAMILIES[name.rsplit("_", 1)[0]](name)


@st.composite
def sums(draw: Draw, name: str) -> Case:
    """A convolution with a tensor of its result's shape added; floats now and then with bounds for each channel."""
    case: Case = draw(cases(name))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shapes = {n: v.shape for n, v in case.operands.items()}
    fitted = solve_sizes(kernel(name), shapes, {n: v.dtype.name for n, v in case.operands.items()}, case.attrs)
    assert not isinstance(fitted, str), fitted
    operands = case.operands | {"addend": numbers(rng, name, fitted.shapes["y"])}
    lo, hi = sorted(rng.integers(-128, 128, 2).tolist())
    if is_float(name):
        bounds = np.sort(rng.standard_normal((2, len(case.operands["bias"]))), 0).astype(np.float32)
        each = {"low": bounds[0], "high": bounds[1]} if rng.random() < 0.5 else {}
        return Case(operands | each, case.attrs | {"sum_lo": lo / 32, "sum_hi": hi / 32})
    factors = rng.uniform(0.05, 2.0, 2)
    right = int(shift(float(factors.max())))
    own, other = (round(f * 2.0**right) for f in factors)
    zeros = {"addend_zero": int(rng.integers(-128, 128)), "sum_zero": int(rng.integers(-128, 128))}
    scales = {"addend_mul": other, "sum_mul": own, "sum_shift": right}
    return Case(operands, case.attrs | zeros | scales | {"sum_lo": lo, "sum_hi": hi})
