"""Normalisation of groups of channels."""

from __future__ import annotations

import numpy as np


def groupnorm_f32(
    x: np.ndarray, gamma: np.ndarray | None, beta: np.ndarray | None, *, epsilon: float, lo: float, hi: float
) -> np.ndarray:
    """x[N, G, K, P]; gamma and beta [G, K]."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean((2, 3), keepdims=True)
    y = centred / np.sqrt((centred * centred).mean((2, 3), keepdims=True) + epsilon)
    y = y if gamma is None else y * gamma[..., None]
    return np.clip(y if beta is None else y + beta[..., None], lo, hi).astype(np.float32)
