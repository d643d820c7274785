"""Float arithmetic on two broadcasting operands, clamped."""

from __future__ import annotations

import numpy as np


def _clamp(y: np.ndarray, lo: float, hi: float) -> np.ndarray:
    return np.minimum(np.maximum(y, np.float32(lo)), np.float32(hi)).astype(np.float32)


def add_f32(a: np.ndarray, b: np.ndarray, *, lo: float, hi: float) -> np.ndarray:
    return _clamp(a + b, lo, hi)


def sub_f32(a: np.ndarray, b: np.ndarray, *, lo: float, hi: float) -> np.ndarray:
    return _clamp(a - b, lo, hi)


def mul_f32(a: np.ndarray, b: np.ndarray, *, lo: float, hi: float) -> np.ndarray:
    return _clamp(a * b, lo, hi)


def div_f32(a: np.ndarray, b: np.ndarray, *, lo: float, hi: float) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return _clamp(a / b, lo, hi)
