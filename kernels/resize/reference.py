"""Resizing by exact rational coordinates: index p maps to (t[0] * p + t[1]) / t[2]."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate

Triple = tuple[int, ...]


def _floor(extent: int, t: Triple) -> tuple[np.ndarray, np.ndarray]:
    """Quotient and remainder of the source coordinate of every output index."""
    return np.divmod(t[0] * np.arange(extent) + t[1], t[2])


def resize_nearest(x: np.ndarray, *, extent: tuple[int, ...], rows: Triple, columns: Triple) -> np.ndarray:
    h = np.clip(_floor(extent[0], rows)[0], 0, x.shape[2] - 1)
    w = np.clip(_floor(extent[1], columns)[0], 0, x.shape[3] - 1)
    return x[:, :, h][:, :, :, w]


def _lines(x: np.ndarray, axis: int, extent: int, t: Triple) -> np.ndarray:
    """t[2] times the linear interpolation of `x` along `axis`."""
    low, weight = _floor(extent, t)
    last = x.shape[axis] - 1
    shape = [-1 if a == axis else 1 for a in range(x.ndim)]
    upper = weight.reshape(shape)
    return x.take(np.clip(low, 0, last), axis) * (t[2] - upper) + x.take(np.clip(low + 1, 0, last), axis) * upper


def resize_linear_f32(x: np.ndarray, *, extent: tuple[int, ...], rows: Triple, columns: Triple) -> np.ndarray:
    y = _lines(_lines(x.astype(np.float64), 2, extent[0], rows), 3, extent[1], columns)
    return (y / (rows[2] * columns[2])).astype(np.float32)


def resize_linear_i8(
    x: np.ndarray,
    *,
    extent: tuple[int, ...],
    rows: Triple,
    columns: Triple,
    mul: int,
    shift: int,
    x_zero: int,
    y_zero: int,
    lo: int,
    hi: int,
) -> np.ndarray:
    total = _lines(_lines(x.astype(np.int64) - x_zero, 2, extent[0], rows), 3, extent[1], columns)
    return saturate(requantise(total, mul, shift), y_zero, lo, hi)
