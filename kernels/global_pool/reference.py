"""Pooling over both spatial axes."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate


def global_avgpool_f32(x: np.ndarray, *, factor: float, lo: float, hi: float) -> np.ndarray:
    total = x.astype(np.float64).sum((2, 3), keepdims=True)
    return np.clip(total * np.float32(factor), lo, hi).astype(np.float32)


def global_avgpool_i8(x: np.ndarray, *, mul: int, shift: int, x_zero: int, y_zero: int, lo: int, hi: int) -> np.ndarray:
    total = (x.astype(np.int64) - x_zero).sum((2, 3), keepdims=True)
    return saturate(requantise(total, mul, shift), y_zero, lo, hi)


def global_maxpool_f32(x: np.ndarray) -> np.ndarray:
    return x.max((2, 3), keepdims=True)


def global_maxpool_i8(x: np.ndarray) -> np.ndarray:
    return x.max((2, 3), keepdims=True)
