"""Pooling over windows of two spatial axes."""

from __future__ import annotations

import numpy as np

from fusion_engine.expr_functions import pool_out
from fusion_engine.fixed_point import requantise, saturate

Pair = tuple[int, ...]


def _windows(
    x: np.ndarray, fill: float, kernel: Pair, strides: Pair, dilations: Pair, pads: Pair, ceil_mode: int
) -> np.ndarray:
    """[N, C, P, Q, R, S]: every tap of every window, `fill` outside x (ceil_mode may reach beyond the pads)."""
    out = [
        pool_out(x.shape[2 + i], kernel[i], strides[i], dilations[i], pads[i], pads[2 + i], ceil_mode) for i in (0, 1)
    ]
    index = [
        np.arange(out[i])[:, None] * strides[i] + np.arange(kernel[i])[None, :] * dilations[i] - pads[i] for i in (0, 1)
    ]
    rows, columns = (np.clip(v, 0, x.shape[2 + i] - 1) for i, v in enumerate(index))
    taken = x[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    inside = [(v >= 0) & (v < x.shape[2 + i]) for i, v in enumerate(index)]
    both = inside[0][:, None, :, None] & inside[1][None, :, None, :]
    return np.where(both, taken, np.asarray(fill, x.dtype))


def _counts(
    x: np.ndarray, kernel: Pair, strides: Pair, dilations: Pair, pads: Pair, ceil_mode: int, count_include_pad: int
) -> np.ndarray:
    """[P, Q]: the taps that the average divides by."""
    ones = np.ones((1, 1, *x.shape[2:]), np.int64)
    if count_include_pad:
        ones = np.pad(ones, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=1)
        out = [
            pool_out(x.shape[2 + i], kernel[i], strides[i], dilations[i], pads[i], pads[2 + i], ceil_mode)
            for i in (0, 1)
        ]
        counted = _windows(ones, 0, kernel, strides, dilations, (0, 0, 0, 0), 1).sum((4, 5))[0, 0]
        return counted[: out[0], : out[1]]
    return _windows(ones, 0, kernel, strides, dilations, pads, ceil_mode).sum((4, 5))[0, 0]


def maxpool_f32(
    x: np.ndarray, *, kernel: Pair, strides: Pair, dilations: Pair, pads: Pair, ceil_mode: int, lo: float, hi: float
) -> np.ndarray:
    best = _windows(x, -np.inf, kernel, strides, dilations, pads, ceil_mode).max((4, 5))
    return np.minimum(np.maximum(best, np.float32(lo)), np.float32(hi)).astype(np.float32)


def maxpool_i8(
    x: np.ndarray, *, kernel: Pair, strides: Pair, dilations: Pair, pads: Pair, ceil_mode: int, lo: int, hi: int
) -> np.ndarray:
    return np.clip(_windows(x, -128, kernel, strides, dilations, pads, ceil_mode).max((4, 5)), lo, hi).astype(np.int8)


def avgpool_f32(
    x: np.ndarray,
    *,
    kernel: Pair,
    strides: Pair,
    dilations: Pair,
    pads: Pair,
    ceil_mode: int,
    count_include_pad: int,
    lo: float,
    hi: float,
) -> np.ndarray:
    total = _windows(x.astype(np.float64), 0, kernel, strides, dilations, pads, ceil_mode).sum((4, 5))
    count = _counts(x, kernel, strides, dilations, pads, ceil_mode, count_include_pad)
    return np.clip(total / count, lo, hi).astype(np.float32)


def avgpool_i8(
    x: np.ndarray,
    mul: np.ndarray,
    shift: np.ndarray,
    *,
    kernel: Pair,
    strides: Pair,
    dilations: Pair,
    pads: Pair,
    ceil_mode: int,
    count_include_pad: int,
    x_zero: int,
    y_zero: int,
    lo: int,
    hi: int,
) -> np.ndarray:
    total = _windows(x.astype(np.int64) - x_zero, 0, kernel, strides, dilations, pads, ceil_mode).sum((4, 5))
    count = _counts(x, kernel, strides, dilations, pads, ceil_mode, count_include_pad)
    return saturate(requantise(total, mul[count - 1], shift[count - 1]), y_zero, lo, hi)
