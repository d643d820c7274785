"""ONNX QuantizeLinear and DequantizeLinear; scale and zero broadcast against x."""

from __future__ import annotations

import numpy as np


def quantize_linear(x: np.ndarray, scale: np.ndarray, zero: np.ndarray, *, lo: int, hi: int) -> np.ndarray:
    """The quotient is float32; NaN gives lo; the result has the zero point's type."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        steps = np.rint(x / scale) + zero
    return np.where(steps > lo, np.minimum(steps, np.float32(hi)), np.float32(lo)).astype(zero.dtype)


def dequantize_linear(x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    return (x.astype(np.int32) - zero).astype(np.float32) * scale


def dequantize_linear_i32(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) * scale
