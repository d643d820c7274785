"""Tensors of one value."""

from __future__ import annotations

import numpy as np


def fill_f32(*, shape: tuple[int, ...], value: float) -> np.ndarray:
    return np.full(shape, value, np.float32)


def fill_i8(*, shape: tuple[int, ...], value: int) -> np.ndarray:
    return np.full(shape, value, np.int8)
