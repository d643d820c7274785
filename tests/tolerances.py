"""How the tests apply the project's tolerances (fusion_engine/tolerances.py). Integer kernels have none: they equal
their references."""

from __future__ import annotations

import numpy as np

from fusion_engine.tolerances import KERNEL

# One rounding of float32 is 6e-8: sums of up to a few thousand terms, in any order, stay within this share of the sum
# of the terms' magnitudes.
FLOAT32_SUM = KERNEL["float32"]


def close_sums(
    actual: np.ndarray, expected: np.ndarray, magnitude: np.ndarray | float, limit: float = FLOAT32_SUM
) -> bool:
    """Whether |actual - expected| <= limit * magnitude everywhere; `magnitude` bounds the sum of the absolute terms."""
    return bool(np.all(np.abs(actual.astype(np.float64) - expected) <= limit * np.maximum(magnitude, 1e-30)))
