"""Tensors with some rows or elements written anew."""

from __future__ import annotations

import numpy as np

COMBINE = {1: np.add, 2: np.multiply, 3: np.minimum, 4: np.maximum}


def scatter_rows(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, extents: np.ndarray) -> np.ndarray:
    y = x.copy()
    for m, row in enumerate(_rows(indices, extents)):
        if row >= 0:
            y[row] = updates[m]
    return y


def scatter_rows_f32(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, extents: np.ndarray, *, mode: int
) -> np.ndarray:
    y = x.copy()
    for m, row in enumerate(_rows(indices, extents)):
        if row >= 0:
            y[row] = COMBINE[mode](y[row], updates[m])
    return y


def scatter_elements(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, extent: int) -> np.ndarray:
    y = x.copy()
    for a, k, b in np.ndindex(*indices.shape):
        at = indices[a, k, b] + (extent if indices[a, k, b] < 0 else 0)
        if 0 <= at < extent:
            y[a, at, b] = updates[a, k, b]
    return y


def _rows(indices: np.ndarray, extents: np.ndarray) -> np.ndarray:
    """The row that each list of numbers means; -1 where one is outside."""
    wide = indices.astype(np.int64)
    at = np.where(wide < 0, wide + extents, wide)
    strides = np.concatenate([np.cumprod(extents[:0:-1].astype(np.int64))[::-1], [1]])
    return np.where(np.all((at >= 0) & (at < extents), axis=1), at @ strides, -1)
