"""Rotary position embedding."""

from __future__ import annotations

import numpy as np


def rotary_f32(x: np.ndarray, cosine: np.ndarray, sine: np.ndarray, *, interleaved: int) -> np.ndarray:
    """x[B, H, T, D]; cosine and sine broadcast over the first three axes, their last has D / 2 angles, or D."""
    wide, half = x.astype(np.float64), x.shape[-1] // 2
    first, second = (wide[..., 0::2], wide[..., 1::2]) if interleaved else (wide[..., :half], wide[..., half:])
    other = slice(None) if cosine.shape[-1] == half else slice(half, None)
    left = first * cosine[..., :half] - second * sine[..., :half]
    right = second * cosine[..., other] + first * sine[..., other]
    y = np.stack([left, right], -1).reshape(x.shape) if interleaved else np.concatenate([left, right], -1)
    return y.astype(np.float32)
