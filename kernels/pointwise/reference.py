"""1x1 convolution with a stride."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import add_scaled, requantise, saturate

Ints = tuple[int, ...]


def _sums(x: np.ndarray, weight: np.ndarray, strides: Ints) -> np.ndarray:
    """[N, K, P, Q] in float64: exact for integers below 2**53."""
    pixels = x[:, :, :: strides[0], :: strides[1]].astype(np.float64)
    return np.einsum("ncpq,kc->nkpq", pixels, weight[:, :, 0, 0].astype(np.float64), optimize=True)


def pointwise_f32(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
    addend: np.ndarray | None = None,
    *,
    strides: Ints,
    lo: float,
    hi: float,
    sum_lo: float,
    sum_hi: float,
) -> np.ndarray:
    """Accumulated in float64."""
    least = lo if low is None else low[:, None, None]
    most = hi if high is None else high[:, None, None]
    c = np.clip(_sums(x, weight, strides) + bias[:, None, None], least, most).astype(np.float32)
    return c if addend is None else np.clip(c + addend, sum_lo, sum_hi)


def pointwise_i8(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, mul: np.ndarray, shift: np.ndarray,
    addend: np.ndarray | None = None, *,
    strides: Ints, x_zero: int, y_zero: int, lo: int, hi: int,
    addend_zero: int, addend_mul: int, sum_mul: int, sum_shift: int, sum_zero: int, sum_lo: int, sum_hi: int,
) -> np.ndarray:  # fmt: skip
    """Weights are symmetric."""
    sums = _sums(x.astype(np.int32) - x_zero, weight, strides).astype(np.int64)
    column = (slice(None), None, None)
    c = saturate(requantise(sums + bias[column], mul[column], shift[column]), y_zero, lo, hi)
    if addend is None:
        return c
    real, other = c.astype(np.int64) - y_zero, addend.astype(np.int64) - addend_zero
    return saturate(add_scaled(real, sum_mul, other, addend_mul, sum_shift), sum_zero, sum_lo, sum_hi)
