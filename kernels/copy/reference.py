"""Movement without arithmetic."""

from __future__ import annotations

import numpy as np


def copy(x: np.ndarray) -> np.ndarray:
    return x.copy()


def expand(x: np.ndarray, *, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, shape)).copy()
