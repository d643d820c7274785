"""Views as numpy sees them."""

from __future__ import annotations

import numpy as np


def reshape(x: np.ndarray, *, shape: tuple[int, ...]) -> np.ndarray:
    return x.reshape(shape)


def transpose(x: np.ndarray, *, perm: tuple[int, ...]) -> np.ndarray:
    return x.transpose(perm)


def slice_(x: np.ndarray, *, starts: tuple[int, ...], ends: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    return x[tuple(slice(s, e, k) for s, e, k in zip(starts, ends, steps, strict=True))]


def concat(x: tuple[np.ndarray, ...], *, axis: int) -> np.ndarray:
    return np.concatenate(x, axis)
