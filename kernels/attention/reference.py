"""Scaled dot-product attention."""

from __future__ import annotations

import numpy as np


def attention_f32(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, *,
    scale: float, softcap: float, shared: int, causal: int, keep: int, masked: float, empty: int,
) -> np.ndarray:  # fmt: skip
    """q[B, H, T, D], k[B, G, D, C], v[B, G, C, E], each head for `shared` of q; mask broadcasts to [B, H, T, C]."""
    scores = scale * (q.astype(np.float64) @ np.repeat(k.astype(np.float64), shared, 1))
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    if mask is not None and mask.dtype == bool:
        scores = np.where(mask == bool(keep), scores, masked)
    elif mask is not None:
        scores = scores + mask
    if causal:
        rows, columns = np.ogrid[: scores.shape[2], : scores.shape[3]]
        scores = np.where(columns <= rows, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
    p = np.where(np.isneginf(scores).all(-1, keepdims=True), 0.0, p) if empty else p
    return (p @ np.repeat(v.astype(np.float64), shared, 1)).astype(np.float32)
