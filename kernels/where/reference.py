"""Selection by a condition."""

from __future__ import annotations

import numpy as np


def where_f32(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition, a, b).astype(np.float32)


def where_any(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(condition, a, b)
