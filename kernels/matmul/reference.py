"""Matrix products over broadcasting leading dimensions."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate


def matmul_f32(a: np.ndarray, b: np.ndarray, *, lo: float, hi: float) -> np.ndarray:
    """Accumulated in float64."""
    return np.clip(a.astype(np.float64) @ b.astype(np.float64), lo, hi).astype(np.float32)


def matmul_i8(
    a: np.ndarray, b: np.ndarray, *,
    mul: int, shift: int, a_zero: int, b_zero: int, y_zero: int, lo: int, hi: int,
) -> np.ndarray:  # fmt: skip
    """The product in float64 is exact below 2**53."""
    sums = (a.astype(np.float64) - a_zero) @ (b.astype(np.float64) - b_zero)
    return saturate(requantise(sums.astype(np.int64), np.int64(mul), np.int64(shift)), y_zero, lo, hi)
