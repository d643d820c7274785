"""One factor and offset per channel."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import saturate


def scale_shift_f32(x: np.ndarray, scale: np.ndarray, bias: np.ndarray, *, lo: float, hi: float) -> np.ndarray:
    return np.minimum(np.maximum(x * scale + bias, np.float32(lo)), np.float32(hi)).astype(np.float32)


def scale_shift_i8(
    x: np.ndarray, mul: np.ndarray, bias: np.ndarray, shift: np.ndarray, *, x_zero: int, y_zero: int, lo: int, hi: int
) -> np.ndarray:
    right = shift.astype(np.int64)
    total = (x.astype(np.int64) - x_zero) * mul.astype(np.int64) + bias + (np.int64(1) << (right - 1))
    return saturate(total >> right, y_zero, lo, hi)
