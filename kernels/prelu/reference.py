"""Leaky ReLU with a slope operand."""

from __future__ import annotations

import numpy as np


def prelu_f32(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    return np.where(x < 0, x * slope, x).astype(np.float32)
