"""Fully connected layer: x @ weight^T + bias."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate


def linear_f32(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *, lo: float, hi: float) -> np.ndarray:
    """Accumulated in float64."""
    return np.clip(x.astype(np.float64) @ weight.T.astype(np.float64) + bias, lo, hi).astype(np.float32)


def linear_i8(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, mul: np.ndarray, shift: np.ndarray, *,
    x_zero: int, y_zero: int, lo: int, hi: int,
) -> np.ndarray:  # fmt: skip
    """Weights are symmetric. The product in float64 is exact below 2**53."""
    sums = (x.astype(np.float64) - x_zero) @ weight.T.astype(np.float64)
    return saturate(requantise(sums.astype(np.int64) + bias, mul, shift), y_zero, lo, hi)
