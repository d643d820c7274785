"""Local response normalisation."""

from __future__ import annotations

import numpy as np


def lrn_f32(x: np.ndarray, *, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    squares = np.square(x.astype(np.float64))
    before = (size - 1) // 2
    padded = np.pad(squares, ((0, 0), (before, size - 1 - before), (0, 0)))
    sums = sum(padded[:, k : k + x.shape[1]] for k in range(size))
    return np.asarray(x / (bias + alpha / size * sums) ** beta).astype(np.float32)
