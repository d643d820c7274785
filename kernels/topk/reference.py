"""The greatest values of rows."""

from __future__ import annotations

import numpy as np


def topk_f32(x: np.ndarray, *, count: int, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices; a stable sort, so of equals the lower index is first."""
    indices = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(x, indices, axis=1), indices.astype(np.int64)
