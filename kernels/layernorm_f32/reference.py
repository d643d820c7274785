"""Normalisation of the last axis."""

from __future__ import annotations

import numpy as np


def layernorm_f32(x: np.ndarray, gamma: np.ndarray | None, beta: np.ndarray | None, *, epsilon: float) -> np.ndarray:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon)
    y = y if gamma is None else y * gamma
    return (y if beta is None else y + beta).astype(np.float32)


def rmsnorm_f32(x: np.ndarray, gamma: np.ndarray | None, *, epsilon: float) -> np.ndarray:
    wide = x.astype(np.float64)
    y = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + epsilon)
    return (y if gamma is None else y * gamma).astype(np.float32)
