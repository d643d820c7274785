"""Softmax over the last axis."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate


def softmax_f32(x: np.ndarray) -> np.ndarray:
    e = np.exp(_below_largest(x))
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def log_softmax_f32(x: np.ndarray) -> np.ndarray:
    d = _below_largest(x)
    return (d - np.log(np.exp(d).sum(-1, keepdims=True))).astype(np.float32)


def _below_largest(x: np.ndarray) -> np.ndarray:
    """x less its row's largest; a row whose largest is infinite is NaN where inf - inf stands, as ONNX has it."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64) - x.max(-1, keepdims=True)


def softmax_i8(x: np.ndarray, table: np.ndarray, *, mul: int, shift: int, y_zero: int) -> np.ndarray:
    """Per row: S = sum(e) >= 2^30; S' = S brought into [2^31, 2^32) by 2^-z; q = floor(mul * 2^32 / S') brought below
    2^31; e is
    requantised by q and the shift that belongs to it, at most 62 (q loses the bits beyond)."""
    e = table[x.max(-1, keepdims=True).astype(np.int32) - x]
    total = e.astype(np.uint64).sum(-1, keepdims=True)
    factor, right = np.empty(total.shape, np.int64), np.empty(total.shape, np.int64)
    for row, value in np.ndenumerate(total):
        factor[row], right[row] = _row_factor(int(value), mul, shift)
    return saturate(requantise(e, factor, right), y_zero, -128, 127)


def _row_factor(total: int, mul: int, shift: int) -> tuple[int, int]:
    z = total.bit_length() - 32
    normal = total >> z if z >= 0 else total << -z
    quotient, right = (mul << 32) // normal, shift + 32 + z
    while quotient >= 2**31:
        quotient, right = quotient >> 1, right - 1
    if right > 62:
        quotient, right = quotient >> min(right - 62, 31), 62
    return quotient, right
