"""Quantised arithmetic on two broadcasting operands: 64-bit sums or products, one rounding, clamp."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import add_scaled, requantise, saturate


def add_i8(
    a: np.ndarray,
    b: np.ndarray,
    *,
    ma: int,
    mb: int,
    shift: int,
    a_zero: int,
    b_zero: int,
    y_zero: int,
    lo: int,
    hi: int,
) -> np.ndarray:
    total = add_scaled(a.astype(np.int64) - a_zero, ma, b.astype(np.int64) - b_zero, mb, shift)
    return saturate(total, y_zero, lo, hi)


def mul_i8(
    a: np.ndarray, b: np.ndarray, *, mul: int, shift: int, a_zero: int, b_zero: int, y_zero: int, lo: int, hi: int
) -> np.ndarray:
    product = (a.astype(np.int64) - a_zero) * (b.astype(np.int64) - b_zero)
    return saturate(requantise(product, mul, shift), y_zero, lo, hi)
