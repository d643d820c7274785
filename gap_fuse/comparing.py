"""Comparisons of arrays, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_engine.tolerances import DOUBTFUL_MARGIN_STEPS


@dataclass(frozen=True, slots=True)
class Difference:
    """How two arrays differ: values in all, values that differ, the greatest absolute difference, the reference's
    greatest magnitude."""

    values: int
    differing: int
    worst: float
    scale: float

    @property
    def relative(self) -> float:
        return self.worst / self.scale if self.scale else self.worst


def difference(got: np.ndarray, wanted: np.ndarray) -> Difference:
    """Compare elementwise; equal infinities and NaNs are equal, other non-finite differences are infinite."""
    if got.shape != wanted.shape:
        raise ValueError(f"shapes {got.shape} and {wanted.shape}")
    if got.size == 0:
        return Difference(0, 0, 0.0, 0.0)
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
    gap = np.where(np.isnan(gap), np.inf, gap)
    finite = np.abs(b[np.isfinite(b)])
    return Difference(got.size, int(np.count_nonzero(~same)), float(gap.max()), float(finite.max(initial=0.0)))


@dataclass(frozen=True, slots=True)
class TopOne:
    """Class decisions of two classifiers over samples. `doubts` lists samples decided otherwise although the
    reference's own margin,
    in steps, is small; `errors` those with a clear margin: (sample, reference's class, other class, margin in
    steps)."""

    samples: int
    doubts: tuple[tuple[int, int, int, float], ...]
    errors: tuple[tuple[int, int, int, float], ...]

    @property
    def agreeing(self) -> int:
        return self.samples - len(self.doubts) - len(self.errors)


def top_one(got: np.ndarray, wanted: np.ndarray, step: float) -> TopOne:
    """Compare decisions of rows [samples, classes]; `step` is one quantisation step of the output (0 for float: no
    doubts)."""
    a, b = got.argmax(1), wanted.argmax(1)
    rows = [(int(i), int(b[i]), int(a[i]), _margin(wanted[i], b[i], a[i], step)) for i in np.flatnonzero(a != b)]
    doubts = tuple(r for r in rows if r[3] <= DOUBTFUL_MARGIN_STEPS)
    return TopOne(len(a), doubts, tuple(r for r in rows if r[3] > DOUBTFUL_MARGIN_STEPS))


def _margin(row: np.ndarray, first: int, other: int, step: float) -> float:
    gap = float(row[first]) - float(row[other])
    if gap == 0.0:
        return 0.0
    return gap / step if step else float("inf")
