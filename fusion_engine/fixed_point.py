"""Fixed-point rounding, once for Python; kernels/common/gf_fixed.h is the same in C, and a test holds them together.

A positive real factor f is written mul / 2**shift with mul in [2**30, 2**31) and shift in [1, 62]. Requantising an
int32
accumulator: (acc * mul + 2**(shift - 1)) >> shift in 64 bits, that is: multiply, then round to nearest, halves
towards plus infinity,
once. Then the zero point is added and the result clamped.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

FloatLike = float | np.ndarray


def multiplier(factor: FloatLike) -> np.ndarray:
    """The 31-bit integer mul of `factor` (int32, same shape). Raises ValueError where a factor is not positive,
    finite or in range."""
    return _parts(factor)[0]


def shift(factor: FloatLike) -> np.ndarray:
    """The right shift that goes with `multiplier(factor)` (uint8, same shape)."""
    return _parts(factor)[1]


def _parts(factor: FloatLike) -> tuple[np.ndarray, np.ndarray]:
    f = np.asarray(factor, dtype=np.float64)
    return _split(f.tobytes(), f.shape)


@lru_cache(maxsize=64)  # multiplier and shift are asked for one after the other
def _split(factors: bytes, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    f = np.frombuffer(factors, np.float64).reshape(shape)
    if not np.all(np.isfinite(f)) or np.any(f <= 0):
        raise ValueError(f"a requantisation factor must be positive and finite, not {f}")
    mantissa, exponent = np.frexp(f)  # f = mantissa * 2**exponent, mantissa in [0.5, 1)
    mul = np.rint(mantissa * 2.0**31).astype(np.int64)
    carry = mul == 2**31
    mul = np.where(carry, 2**30, mul)
    right = 31 - (exponent + carry)
    tiny = right > 62  # below 2**-31 every int32 accumulator rounds to nothing or one step: keep what 62 bits can say
    mul = np.where(tiny, mul >> np.minimum(right - 62, 40), mul)
    right = np.where(tiny, 62, right)
    if np.any(right < 1):
        raise ValueError(f"a requantisation factor must be below 2**30, not {f}")
    parts = mul.astype(np.int32), right.astype(np.uint8)
    for part in parts:
        part.flags.writeable = False
    return parts


def requantise(acc: np.ndarray, mul: np.ndarray, right: np.ndarray) -> np.ndarray:
    """round(acc * mul / 2**right), halves up, in int64 (mul and right broadcast against acc, acc within int32)."""
    product = acc.astype(np.int64) * np.asarray(mul, dtype=np.int64)
    right64 = np.asarray(right, dtype=np.int64)
    rounded: np.ndarray = (product + (np.int64(1) << (right64 - 1))) >> right64
    return rounded


def add_scaled(a: np.ndarray, a_mul: int, b: np.ndarray, b_mul: int, right: int) -> np.ndarray:
    """round((a * a_mul + b * b_mul) / 2**right), halves up, in int64: two quantised tensors, less their zero points,
    on one scale."""
    total = a.astype(np.int64) * a_mul + b.astype(np.int64) * b_mul
    rounded: np.ndarray = (total + (1 << (right - 1))) >> right
    return rounded


def saturate(value: np.ndarray, zero: int, lo: int, hi: int) -> np.ndarray:
    """Add the zero point and clamp to [lo, hi]; int8."""
    clamped: np.ndarray = np.clip(value + zero, lo, hi).astype(np.int8)
    return clamped
