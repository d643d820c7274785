"""From one quantisation to another."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import requantise, saturate


def requantize_i8(x: np.ndarray, *, mul: int, shift: int, x_zero: int, y_zero: int, lo: int, hi: int) -> np.ndarray:
    return saturate(requantise(x.astype(np.int64) - x_zero, mul, shift), y_zero, lo, hi)
