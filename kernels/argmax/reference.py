"""Index of the greatest or least element of the last axis."""

from __future__ import annotations

import numpy as np


def argmax(x: np.ndarray, *, minimum: int, last: int) -> np.ndarray:
    find = np.argmin if minimum else np.argmax
    if not last:
        return find(x, axis=-1).astype(np.int64)
    return (x.shape[-1] - 1 - find(x[..., ::-1], axis=-1)).astype(np.int64)
