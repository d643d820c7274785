"""Recurrent layers in one direction. x: what each step's input gives each gate, biases included: [T, N, gates, U]."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def gru_f32(
    x: np.ndarray, r: np.ndarray, b: np.ndarray | None, h0: np.ndarray | None, *, reverse: int, linear_before_reset: int
) -> np.ndarray:
    wide, r = x.astype(np.float64), r.astype(np.float64)
    h, y = _state(h0, wide[0, :, 0]), np.empty(wide[:, :, 0].shape)
    offset = np.zeros(1) if b is None else b.astype(np.float64)
    for t in _steps(len(x), reverse):
        z, reset = _sigmoid(wide[t, :, 0] + h @ r[0].T), _sigmoid(wide[t, :, 1] + h @ r[1].T)
        inner = reset * (h @ r[2].T + offset) if linear_before_reset else (reset * h) @ r[2].T + offset
        h = (1 - z) * np.tanh(wide[t, :, 2] + inner) + z * h
        y[t] = h
    return y.astype(np.float32)


def lstm_f32(
    x: np.ndarray, r: np.ndarray, h0: np.ndarray | None, c0: np.ndarray | None, *, reverse: int
) -> tuple[np.ndarray, np.ndarray]:
    wide, r = x.astype(np.float64), r.astype(np.float64)
    h, c, y = _state(h0, wide[0, :, 0]), _state(c0, wide[0, :, 0]), np.empty(wide[:, :, 0].shape)
    for t in _steps(len(x), reverse):
        i, o, f, g = (wide[t, :, gate] + h @ r[gate].T for gate in range(4))
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        y[t] = h
    return y.astype(np.float32), c.astype(np.float32)


def rnn_f32(x: np.ndarray, r: np.ndarray, h0: np.ndarray | None, *, reverse: int, relu: int) -> np.ndarray:
    wide, r = x.astype(np.float64), r.astype(np.float64)
    h, y = _state(h0, wide[0]), np.empty(wide.shape)
    for t in _steps(len(x), reverse):
        v = wide[t] + h @ r.T
        h = np.maximum(v, 0) if relu else np.tanh(v)
        y[t] = h
    return y.astype(np.float32)


def _state(start: np.ndarray | None, like: np.ndarray) -> np.ndarray:
    return np.zeros_like(like) if start is None else start.astype(np.float64)


def _steps(count: int, reverse: int) -> Iterator[int]:
    return iter(range(count)[::-1] if reverse else range(count))


def _sigmoid(v: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * v)))
