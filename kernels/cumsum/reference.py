"""Running sums along the middle axis."""

from __future__ import annotations

import numpy as np


def cumsum(x: np.ndarray, *, exclusive: int, reverse: int) -> np.ndarray:
    """Floats are summed in float64."""
    v = x[:, ::-1] if reverse else x
    wide = v.astype(np.float64) if x.dtype == np.float32 else v
    sums = np.cumsum(wide, axis=1, dtype=wide.dtype)
    if exclusive:
        sums = np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], axis=1)
    return np.ascontiguousarray(sums[:, ::-1] if reverse else sums).astype(x.dtype)
