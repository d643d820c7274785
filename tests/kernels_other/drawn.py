"""What the cases of kernels draw: shapes, values, scalings."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import multiplier, shift
from fusion_engine.graph import CallAttr

Rng = np.random.Generator
Attrs = dict[str, CallAttr]


def extents(rng: Rng, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(int(rng.integers(1, 7)) for _ in range(rng.integers(least, most + 1)))


def floats(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32) * np.float32(rng.choice([0.1, 1.0, 5.0]))


def bytes_(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    values = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice([-128, 127], shape), values).astype(np.int8)


def clamp(rng: Rng, whole: bool) -> Attrs:
    lo, hi = sorted(rng.integers(-128, 128, 2).tolist())
    if rng.random() < 0.5:
        return {"lo": -128, "hi": 127} if whole else {"lo": -np.inf, "hi": np.inf}
    return {"lo": lo, "hi": hi} if whole else {"lo": lo / 32, "hi": hi / 32}


def zero(rng: Rng) -> int:
    return int(rng.integers(-128, 128))


def scaling(factor: float) -> Attrs:
    return {"mul": int(multiplier(factor)), "shift": int(shift(factor))}


def broadcast(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to `shape`, sometimes of lower rank."""
    kept = tuple(d if rng.random() < 0.6 else 1 for d in shape)
    return kept[rng.integers(0, len(kept)) :] if rng.random() < 0.3 else kept


def channelwise(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    axis = int(rng.integers(0, len(shape)))
    return tuple(d if i == axis and rng.random() < 0.8 else 1 for i, d in enumerate(shape))


def integers(dtype: str, rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Integers over the whole range of their type."""
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def any_index(rng: Rng, extent: int, shape: tuple[int, ...]) -> np.ndarray:
    """Indices of either sign, a few outside."""
    return rng.integers(-extent - 1, extent + 1, shape).astype(rng.choice(["int32", "int64"]))


def whole(rng: Rng, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small ones, 0 among them, and the ends of the type."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    ends = np.iinfo(dtype)
    values = rng.integers(max(ends.min, -9), 10, shape, dtype=np.int64)
    return np.where(rng.random(shape) < 0.1, rng.choice([ends.min, ends.max, -1], shape), values).astype(dtype)
