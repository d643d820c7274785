"""Quantised arithmetic on two broadcasting operands: 64-bit sums or products, one rounding, clamp."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate


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
    total = (a.astype(np.int64) - a_zero) * ma + (b.astype(np.int64) - b_zero) * mb
    return saturate((total + (1 << (shift - 1))) >> shift, y_zero, lo, hi)


def mul_i8(
    a: np.ndarray, b: np.ndarray, *, mul: int, shift: int, a_zero: int, b_zero: int, y_zero: int, lo: int, hi: int
) -> np.ndarray:
    product = (a.astype(np.int64) - a_zero) * (b.astype(np.int64) - b_zero)
    return saturate(requantise(product, mul, shift), y_zero, lo, hi)
