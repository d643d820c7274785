"""1x1 convolution with a stride."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate

Ints = tuple[int, ...]


def _sums(x: np.ndarray, weight: np.ndarray, strides: Ints) -> np.ndarray:
    """[N, K, P, Q] in float64: exact for integers below 2**53."""
    pixels = x[:, :, :: strides[0], :: strides[1]].astype(np.float64)
    return np.einsum("ncpq,kc->nkpq", pixels, weight[:, :, 0, 0].astype(np.float64), optimize=True)


def pointwise_f32(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *, strides: Ints, lo: float, hi: float
) -> np.ndarray:
    """Accumulated in float64."""
    return np.clip(_sums(x, weight, strides) + bias[:, None, None], lo, hi).astype(np.float32)


def pointwise_i8(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, mul: np.ndarray, shift: np.ndarray, *,
    strides: Ints, x_zero: int, y_zero: int, lo: int, hi: int,
) -> np.ndarray:  # fmt: skip
    """Weights are symmetric."""
    sums = _sums(x.astype(np.int32) - x_zero, weight, strides).astype(np.int64)
    column = (slice(None), None, None)
    return saturate(requantise(sums + bias[column], mul[column], shift[column]), y_zero, lo, hi)
