"""Calls of middling size on which `cycles` formulas are held against counted instructions: {kernel: calls}."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fusion_engine.graph import CallAttr

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class KernelCall:
    """Operands in logical order, and attributes."""

    operands: Arrays
    attrs: Mapping[str, CallAttr]


def _values(kernel: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    if kernel.endswith("_f32"):
        return rng.standard_normal(shape).astype(np.float32)
    return rng.integers(-128, 128, shape).astype(np.int8)


def _ending(kernel: str, k: int) -> Arrays:
    if kernel.endswith("_f32"):
        return {"bias": np.ones(k, np.float32)}
    return {"bias": np.ones(k, np.int32), "mul": np.full(k, 2**30, np.int32), "shift": np.full(k, 39, np.uint8)}


def _conv(kernel: str, c: int, size: int, k: int, window: int, **attrs: CallAttr) -> KernelCall:
    groups = attrs.get("groups", 1)
    assert isinstance(groups, int)
    x, weight = _values(kernel, 1, c, size, size), _values(kernel, k, c // groups, window, window)
    return KernelCall({"x": x, "weight": weight, **_ending(kernel, k)}, {"pads": (window // 2,) * 4, **attrs})


def _depthwise(kernel: str, c: int, size: int, **attrs: CallAttr) -> KernelCall:
    x, weight = _values(kernel, 1, c, size, size), _values(kernel, c, 1, 3, 3)
    return KernelCall({"x": x, "weight": weight, **_ending(kernel, c)}, {"pads": (1, 1, 1, 1), **attrs})


def _pointwise(kernel: str, c: int, size: int, k: int) -> KernelCall:
    x, weight = _values(kernel, 1, c, size, size), _values(kernel, k, c, 1, 1)
    return KernelCall({"x": x, "weight": weight, **_ending(kernel, k)}, {})


def _linear(kernel: str, m: int, k: int, j: int) -> KernelCall:
    return KernelCall({"x": _values(kernel, m, k), "weight": _values(kernel, j, k), **_ending(kernel, j)}, {})


def _matmul(kernel: str, z: int, m: int, k: int, j: int) -> KernelCall:
    attrs: dict[str, CallAttr] = {} if kernel.endswith("_f32") else {"mul": 2**30, "shift": 39}
    return KernelCall({"a": _values(kernel, z, m, k), "b": _values(kernel, z, k, j)}, attrs)


def _pool(kernel: str, c: int, size: int, window: int, stride: int) -> KernelCall:
    attrs: dict[str, CallAttr] = {"kernel": (window, window), "strides": (stride, stride), "pads": (0, 0, 0, 0)}
    return KernelCall({"x": _values(kernel, 1, c, size, size)}, attrs)


def _one(kernel: str, *shape: int, **attrs: CallAttr) -> KernelCall:
    return KernelCall({"x": _values(kernel, *shape)}, attrs)


def _two(kernel: str, *shape: int, **attrs: CallAttr) -> KernelCall:
    return KernelCall({"a": _values(kernel, *shape), "b": _values(kernel, *shape)}, attrs)


def _norm(kernel: str, *shape: int) -> KernelCall:
    return KernelCall({"x": _values(kernel, *shape), "gamma": np.ones(shape[-1], np.float32)}, {})


def _gru(kernel: str, t: int, n: int, u: int) -> KernelCall:
    return KernelCall({"x": _values(kernel, t, n, 3, u), "r": _values(kernel, 3, u, u)}, {"linear_before_reset": 1})


def _lstm(kernel: str, t: int, n: int, u: int) -> KernelCall:
    return KernelCall({"x": _values(kernel, t, n, 4, u), "r": _values(kernel, 4, u, u)}, {})


def _attention(kernel: str, h: int, t: int, d: int) -> KernelCall:
    q, k, v = _values(kernel, 1, h, t, d), _values(kernel, 1, h, d, t), _values(kernel, 1, h, t, d)
    return KernelCall({"q": q, "k": k, "v": v}, {"scale": 0.125})


Makers = list[Callable[[str], KernelCall]]


def _alike(*names: str, calls: Makers) -> dict[str, Makers]:
    return {name: list(calls) for name in names}


CALLS: dict[str, Makers] = {
    **_alike(
        "conv2d_f32",
        "conv2d_i8",
        calls=[
            lambda n: _conv(n, 16, 16, 32, 3),
            lambda n: _conv(n, 3, 24, 16, 3, strides=(2, 2)),
            lambda n: _conv(n, 32, 9, 40, 3),
            lambda n: _conv(n, 16, 12, 16, 3, groups=4),
        ],
    ),
    **_alike(
        "depthwise_f32",
        "depthwise_i8",
        calls=[lambda n: _depthwise(n, 24, 16), lambda n: _depthwise(n, 64, 9, strides=(2, 2))],
    ),
    **_alike(
        "pointwise_f32",
        "pointwise_i8",
        calls=[lambda n: _pointwise(n, 32, 12, 48), lambda n: _pointwise(n, 128, 5, 72)],
    ),
    **_alike("linear_f32", "linear_i8", calls=[lambda n: _linear(n, 1, 640, 128), lambda n: _linear(n, 9, 64, 100)]),
    **_alike(
        "matmul_f32", "matmul_i8", calls=[lambda n: _matmul(n, 2, 24, 32, 40), lambda n: _matmul(n, 4, 9, 64, 16)]
    ),
    **_alike(
        "maxpool_f32",
        "maxpool_i8",
        "avgpool_f32",
        "avgpool_i8",
        calls=[lambda n: _pool(n, 24, 24, 2, 2), lambda n: _pool(n, 12, 17, 3, 1)],
    ),
    **_alike(
        "global_avgpool_f32",
        "global_avgpool_i8",
        "global_maxpool_f32",
        "global_maxpool_i8",
        calls=[lambda n: _one(n, 1, 96, 9, 9)],
    ),
    "softmax_f32": [lambda n: _one(n, 30, 64), lambda n: _one(n, 3, 200)],
    "add_f32": [lambda n: _two(n, 1, 24, 17, 16), lambda n: _two(n, 40, 30)],
    "mul_f32": [lambda n: _two(n, 1, 24, 17, 16)],
    "add_i8": [lambda n: _two(n, 1, 24, 17, 16, ma=3, mb=5, shift=4), lambda n: _two(n, 40, 30, ma=3, mb=5, shift=4)],
    "map_f32": [
        lambda n: KernelCall({"x0": _values(n, 24, 17, 16)}, {"expr": "mul(sigmoid(x0), x0)"}),
    ],
    "layernorm_f32": [lambda n: _norm(n, 30, 64), lambda n: _norm(n, 6, 200)],
    "rmsnorm_f32": [lambda n: _norm(n, 30, 64)],
    "groupnorm_f32": [lambda n: _one(n, 1, 12, 4, 80)],
    "gru_f32": [lambda n: _gru(n, 6, 1, 64), lambda n: _gru(n, 4, 9, 32)],
    "lstm_f32": [lambda n: _lstm(n, 6, 1, 64)],
    "attention_f32": [lambda n: _attention(n, 2, 24, 32)],
}
