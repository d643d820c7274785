"""Transposed two-dimensional convolution: every input pixel adds its filters, `strides` apart."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate

Ints = tuple[int, ...]


def _sums(
    x: np.ndarray, weight: np.ndarray, groups: int, strides: Ints, dilations: Ints, pads: Ints, output_padding: Ints
) -> np.ndarray:
    """[N, K, P, Q] in float64: exact for integers below 2**53."""
    n, c, h, w = x.shape
    _, k, r, s = weight.shape
    by_group = x.astype(np.float64).reshape(n, groups, c // groups, h, w)
    filters = weight.astype(np.float64).reshape(groups, c // groups, k, r, s)
    full = [
        (extent - 1) * strides[i] + dilations[i] * (taps - 1) + 1 + output_padding[i]
        for i, (extent, taps) in enumerate(((h, r), (w, s)))
    ]
    y = np.zeros((n, groups * k, *full))
    for i in range(r):
        for j in range(s):
            part = np.einsum("ngchw,gck->ngkhw", by_group, filters[..., i, j]).reshape(n, groups * k, h, w)
            top, left = i * dilations[0], j * dilations[1]
            y[:, :, top : top + h * strides[0] : strides[0], left : left + w * strides[1] : strides[1]] += part
    return y[:, :, pads[0] : full[0] - pads[2], pads[1] : full[1] - pads[3]]


def conv_transpose_f32(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *,
    groups: int, strides: Ints, dilations: Ints, pads: Ints, output_padding: Ints, lo: float, hi: float,
) -> np.ndarray:  # fmt: skip
    """Accumulated in float64."""
    sums = _sums(x, weight, groups, strides, dilations, pads, output_padding) + bias[:, None, None]
    return np.clip(sums, lo, hi).astype(np.float32)


def conv_transpose_i8(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, mul: np.ndarray, shift: np.ndarray, *,
    groups: int, strides: Ints, dilations: Ints, pads: Ints, output_padding: Ints,
    x_zero: int, y_zero: int, lo: int, hi: int,
) -> np.ndarray:  # fmt: skip
    """Weights are symmetric; where no input pixel reaches, the sum is the bias."""
    sums = _sums(x.astype(np.int32) - x_zero, weight, groups, strides, dilations, pads, output_padding).astype(np.int64)
    column = (slice(None), None, None)
    return saturate(requantise(sums + bias[column], mul[column], shift[column]), y_zero, lo, hi)
