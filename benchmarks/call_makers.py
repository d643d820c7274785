"""Operands and attributes of calls of kernels, made from a few extents; `kernel` is the name, which tells the type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fusion_engine.graph import CallAttr

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall:
    """Operands in logical order, attributes, element types of results that neither tells, and storage orders other
    than row-major."""

    operands: Arrays
    attrs: Mapping[str, CallAttr]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def values(kernel: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    if kernel.endswith("_f32"):
        return rng.standard_normal(shape).astype(np.float32)
    return rng.integers(-128, 128, shape).astype(np.int8)


def ending(kernel: str, k: int) -> Arrays:
    if kernel.endswith("_f32"):
        return {"bias": np.ones(k, np.float32)}
    return {"bias": np.ones(k, np.int32), "mul": np.full(k, 2**30, np.int32), "shift": np.full(k, 39, np.uint8)}


def conv(kernel: str, c: int, size: int, k: int, window: int, **attrs: CallAttr) -> KernelCall:
    groups = attrs.get("groups", 1)
    assert isinstance(groups, int)
    x, weight = values(kernel, 1, c, size, size), values(kernel, k, c // groups, window, window)
    return KernelCall({"x": x, "weight": weight, **ending(kernel, k)}, {"pads": (window // 2,) * 4, **attrs})


def depthwise(kernel: str, c: int, size: int, **attrs: CallAttr) -> KernelCall:
    x, weight = values(kernel, 1, c, size, size), values(kernel, c, 1, 3, 3)
    return KernelCall({"x": x, "weight": weight, **ending(kernel, c)}, {"pads": (1, 1, 1, 1), **attrs})


def pointwise(kernel: str, c: int, size: int, k: int) -> KernelCall:
    x, weight = values(kernel, 1, c, size, size), values(kernel, k, c, 1, 1)
    return KernelCall({"x": x, "weight": weight, **ending(kernel, k)}, {})


def linear(kernel: str, m: int, k: int, j: int) -> KernelCall:
    return KernelCall({"x": values(kernel, m, k), "weight": values(kernel, j, k), **ending(kernel, j)}, {})


def matmul(kernel: str, z: int, m: int, k: int, j: int) -> KernelCall:
    attrs: dict[str, CallAttr] = {} if kernel.endswith("_f32") else {"mul": 2**30, "shift": 39}
    return KernelCall({"a": values(kernel, z, m, k), "b": values(kernel, z, k, j)}, attrs)


def pool(kernel: str, c: int, size: int, window: int, stride: int) -> KernelCall:
    attrs: dict[str, CallAttr] = {"kernel": (window, window), "strides": (stride, stride), "pads": (0, 0, 0, 0)}
    return KernelCall({"x": values(kernel, 1, c, size, size)}, attrs)


def one(kernel: str, *shape: int, **attrs: CallAttr) -> KernelCall:
    return KernelCall({"x": values(kernel, *shape)}, attrs)


def two(kernel: str, *shape: int, **attrs: CallAttr) -> KernelCall:
    return KernelCall({"a": values(kernel, *shape), "b": values(kernel, *shape)}, attrs)


def broadcast(kernel: str, **attrs: CallAttr) -> KernelCall:
    """A number for each channel: tiles of several rows."""
    return KernelCall({"a": values(kernel, 24, 9, 33), "b": values(kernel, 24, 1, 1)}, attrs)


def norm(kernel: str, *shape: int) -> KernelCall:
    return KernelCall({"x": values(kernel, *shape), "gamma": np.ones(shape[-1], np.float32)}, {})


def gru(kernel: str, t: int, n: int, u: int) -> KernelCall:
    return KernelCall({"x": values(kernel, t, n, 3, u), "r": values(kernel, 3, u, u)}, {"linear_before_reset": 1})


def lstm(kernel: str, t: int, n: int, u: int) -> KernelCall:
    return KernelCall({"x": values(kernel, t, n, 4, u), "r": values(kernel, 4, u, u)}, {})


def rnn(kernel: str, t: int, n: int, u: int) -> KernelCall:
    return KernelCall({"x": values(kernel, t, n, u), "r": values(kernel, u, u)}, {})


def attention(kernel: str, h: int, t: int, d: int) -> KernelCall:
    q, k, v = values(kernel, 1, h, t, d), values(kernel, 1, h, d, t), values(kernel, 1, h, t, d)
    return KernelCall({"q": q, "k": k, "v": v}, {"scale": 0.125})


def avgpool_i8(kernel: str, c: int, size: int, window: int, stride: int) -> KernelCall:
    plain = pool(kernel, c, size, window, stride)
    ending = {"mul": np.full(window**2, 2**30, np.int32), "shift": np.full(window**2, 33, np.uint8)}
    return KernelCall(plain.operands | ending, plain.attrs)


def transposed(kernel: str, c: int, size: int, k: int, **attrs: CallAttr) -> KernelCall:
    groups = attrs.get("groups", 1)
    assert isinstance(groups, int)
    x, weight = values(kernel, 1, c, size, size), values(kernel, c, k // groups, 3, 3)
    return KernelCall(
        {"x": x, "weight": weight, **ending(kernel, k)}, {"strides": (2, 2), "pads": (1, 1, 1, 1), **attrs}
    )


def of(dtype: str, *shape: int) -> np.ndarray:
    return np.ones(shape, dtype)


def indices(below: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(0, below, shape)


def channels(dtype: str, *constants: tuple[str, str], **attrs: CallAttr) -> KernelCall:
    """Elements whose constants run along the first axis of three: tiles of several rows."""
    x = np.random.default_rng(0).integers(0, 100, (24, 9, 33)).astype(dtype)
    return KernelCall({"x": x, **{name: of(t, 24, 1, 1) for name, t in constants}}, attrs)


def where(dtype: str, *condition: int) -> KernelCall:
    a, b = of(dtype, 24, 17, 16), of(dtype, 24, 17, 16)
    return KernelCall({"condition": of("bool", *condition), "a": a, "b": b}, {})


def rotary(kernel: str, h: int, t: int, d: int) -> KernelCall:
    angles = {"cosine": of("float32", 1, 1, t, d // 2), "sine": of("float32", 1, 1, t, d // 2)}
    return KernelCall({"x": values(kernel, 1, h, t, d), **angles}, {})


def scatter(r: int, b: int, m: int) -> KernelCall:
    rows = {"indices": indices(r, m, 1), "updates": of("float32", m, b), "extents": np.asarray([r], np.int32)}
    return KernelCall({"x": of("float32", r, b), **rows}, {})


def resize(kernel: str, c: int, size: int, **attrs: CallAttr) -> KernelCall:
    rational = (2 * size, -size, 4 * size)  # twice the extent, half_pixel
    return KernelCall(
        {"x": values(kernel, 1, c, size, size)},
        {"extent": (2 * size, 2 * size), "rows": rational, "columns": rational, **attrs},
    )
