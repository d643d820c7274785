"""The vocabulary of the quantisation lens: scales, zero points, stored integers, fixed-point factors, tables."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np

from fusion_engine.covering.types import ValueRef
from fusion_engine.graph import Quantisation
from fusion_engine.language.unary import UNARY
from fusion_engine.language.values import Binding, NotKnownError, Value, array_of, scalar_of, simple

FAR = 2.0**32  # steps, beyond every integer there is


def _quantisation(value: Value) -> Quantisation:
    if not isinstance(value, Binding):
        raise NotKnownError("scale, zero and stored need a capture or the result, not a computed value")
    if value.quantisation is None:
        raise NotKnownError(f"{value.name} is not quantised")
    return value.quantisation


def scale_of(value: Value) -> Value:
    scale = _quantisation(value).scale
    return scale[0] if len(scale) == 1 else np.asarray(scale, dtype=np.float64)


def zero_of(value: Value) -> Value:
    zero = _quantisation(value).zero
    return zero[0] if len(set(zero)) == 1 else np.asarray(zero, dtype=np.int64)


def stored_of(value: Value, scale: Value = None) -> Value:
    """The integers of a capture; with a scale, a constant as int32 at that scale, as it is where it already is that."""
    if scale is not None:
        return _stored_at(value, np.asarray(array_of(scale), dtype=np.float64))
    if isinstance(value, tuple):
        return tuple(stored_of(v) for v in value)
    _quantisation(value)
    if value.stored_const is not None:
        return value.stored_const
    if value.stored is None:
        raise NotKnownError(f"{value.name} is not quantised")
    return ValueRef(value.stored)


def _stored_at(value: Value, scale: np.ndarray) -> np.ndarray:
    if isinstance(value, Binding) and value.stored_const is not None and _is_at(value, scale):
        return value.stored_const.astype(np.int32)
    steps: np.ndarray = np.rint(array_of(value).astype(np.float64) / scale)
    limit = 2**31 - 1
    if not np.all(np.abs(steps) <= limit):
        raise NotKnownError("a bias too large for int32 at scale(x) * scale(w)")
    return np.asarray(steps, dtype=np.int32)


def _is_at(value: Binding, scale: np.ndarray) -> bool:
    q = value.quantisation
    if q is None or value.stored_const is None or any(q.zero) or value.stored_const.dtype != np.int32:
        return False
    own = np.asarray(q.scale, dtype=np.float64)
    return bool(np.all(np.abs(own - scale) <= 1e-6 * np.abs(scale)))


def _to_steps(real: np.ndarray, q: Quantisation) -> np.ndarray:
    if len(q.scale) != 1:
        raise NotKnownError("a quantisation per axis has no single step")
    steps = np.rint(real / q.scale[0]) + q.zero[0]
    return np.clip(np.where(np.isnan(steps), q.zero[0], steps), -128, 127)


def _to_step(real: float, q: Quantisation) -> int:
    """The same of one number, in a fifth of the time."""
    if len(q.scale) != 1 or not q.scale[0] > 0 or isnan(real):
        return int(_to_steps(np.asarray(real), q))
    steps = min(max(real / q.scale[0], -FAR), FAR)
    return min(max(round(steps) + q.zero[0], -128), 127)


def steps_of(value: Value, like: Value) -> Value:
    """`value` in steps of `like`, halves to even, saturated to int8 (an infinite bound is the end of the range)."""
    if isinstance(value, float):
        return _to_step(value, _quantisation(like))
    return simple(_to_steps(array_of(value).astype(np.float64), _quantisation(like)).astype(np.int64))


def table_i8(op: Value, x: Value, y: Value, **attrs: Value) -> np.ndarray:
    """int8[256]: entry i is the result's integer where the operand's is i - 128."""
    if op not in UNARY:
        raise NotKnownError(f"no table for the operator {op}")
    qx, qy = _quantisation(x), _quantisation(y)
    if len(qx.scale) != 1:
        raise NotKnownError(f"{x.name} has a scale per axis")
    # DequantizeLinear is a float32 product, which matters where Ceil or Sign step
    real = (np.float32(qx.scale[0]) * (np.arange(-128, 128) - qx.zero[0]).astype(np.float32)).astype(np.float64)
    words = {k: v if isinstance(v, str) else scalar_of(v) for k, v in attrs.items() if v is not None}
    return _to_steps(np.asarray(UNARY[op](real, **words)), qy).astype(np.int8)


def same_as(a: Value, b: Value) -> bool:
    return _quantisation(a) == _quantisation(b)


def fixed_part(part: Callable[[Any], np.ndarray]) -> Callable[[Value], Value]:
    def split(factor: Value) -> Value:
        return simple(part(array_of(factor).astype(np.float64)))

    return split
