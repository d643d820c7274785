"""Two-dimensional convolution with groups, dilation and asymmetric pads."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import add_scaled, requantise, saturate

Ints = tuple[int, ...]


def _sums(x: np.ndarray, weight: np.ndarray, groups: int, strides: Ints, dilations: Ints, pads: Ints) -> np.ndarray:
    """[N, K, P, Q] in float64, the border 0: exact for integers below 2**53."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    r, s = weight.shape[2:]
    span = (dilations[0] * (r - 1) + 1, dilations[1] * (s - 1) + 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, span, (2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    grouped = windows.reshape(x.shape[0], groups, -1, *windows.shape[2:])
    filters = weight.astype(np.float64).reshape(groups, -1, *weight.shape[1:])
    sums = np.einsum("ngcpqrs,gkcrs->ngkpq", grouped, filters, optimize=True)
    return sums.reshape(x.shape[0], weight.shape[0], *sums.shape[3:])


def conv2d_f32(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, low: np.ndarray | None = None,
    high: np.ndarray | None = None, addend: np.ndarray | None = None, *,
    groups: int, strides: Ints, dilations: Ints, pads: Ints, lo: float, hi: float, sum_lo: float, sum_hi: float,
) -> np.ndarray:  # fmt: skip
    """Accumulated in float64."""
    sums = _sums(x, weight, groups, strides, dilations, pads) + bias[:, None, None]
    least = lo if low is None else low[:, None, None]
    most = hi if high is None else high[:, None, None]
    c = np.clip(sums, least, most).astype(np.float32)
    return c if addend is None else np.clip(c + addend, sum_lo, sum_hi)


def conv2d_i8(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, mul: np.ndarray, shift: np.ndarray,
    addend: np.ndarray | None = None, *,
    groups: int, strides: Ints, dilations: Ints, pads: Ints, x_zero: int, y_zero: int, lo: int, hi: int,
    addend_zero: int, addend_mul: int, sum_mul: int, sum_shift: int, sum_zero: int, sum_lo: int, sum_hi: int,
) -> np.ndarray:  # fmt: skip
    """The border means x_zero."""
    sums = _sums(x.astype(np.int32) - x_zero, weight, groups, strides, dilations, pads).astype(np.int64)
    column = (slice(None), None, None)
    c = saturate(requantise(sums + bias[column], mul[column], shift[column]), y_zero, lo, hi)
    if addend is None:
        return c
    real, other = c.astype(np.int64) - y_zero, addend.astype(np.int64) - addend_zero
    return saturate(add_scaled(real, sum_mul, other, addend_mul, sum_shift), sum_zero, sum_lo, sum_hi)
