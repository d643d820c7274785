"""Comparisons of arrays, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fusion_engine.tolerances import DOUBTFUL_MARGIN_STEPS, TRUSTED


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
    same = (got == wanted) | (np.isnan(a) & np.isnan(b))
    least = 1.0 if got.dtype.kind in "iu" and wanted.dtype.kind in "iu" else 0.0  # int64 beyond 2**53 are one float64
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.maximum(np.abs(a - b), least))
    gap = np.where(np.isnan(gap), np.inf, gap)
    finite = np.abs(b[np.isfinite(b)])
    return Difference(got.size, int(np.count_nonzero(~same)), float(gap.max()), float(finite.max(initial=0.0)))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Floats against onnxruntime's (`model`); where these differ beyond `tolerance`, `exact` is the same against the
    model in float64 and `runtime` onnxruntime against it.

    onnxruntime is float32 too, and not always right: its sigmoid is a rational function around 1/2 whose last bit is
    worth 2^-24, and answers 0 where the sigmoid is 1e-8. So the judge is r in float64: |C - r| <= max(tolerance *
    scale, 2 * |onnxruntime - r|), the second bound only where r is near enough to onnxruntime to be trusted itself.
    """

    model: Difference
    tolerance: float
    exact: Difference | None = None
    runtime: Difference | None = None

    @property
    def passed(self) -> bool:
        """Integers have tolerance 0: they equal onnxruntime's, or what float64 says."""
        if self.model.relative <= self.tolerance:
            return True
        return self.exact is not None and self.exact.worst <= self._allowed(self.exact)

    def _allowed(self, exact: Difference) -> float:
        own = self.runtime.worst if self.runtime is not None else 0.0
        trusted = self.tolerance > 0 and own <= TRUSTED * exact.scale
        return max(self.tolerance * exact.scale, 2 * own if trusted else 0.0)

    def __str__(self) -> str:
        if self.model.differing == 0:
            return "the only value equal" if self.model.values == 1 else f"all {self.model.values:,} values equal"
        size = f"{self.model.relative:.1e} of the largest magnitude"
        if self.model.relative <= self.tolerance:
            return f"within {size} (allowed {self.tolerance:.0e})"
        if self.exact is None or self.runtime is None:
            return f"off by {size} (allowed {self.tolerance:.0e}); no float64 reference says who is right"
        return (
            f"off by {size} (allowed {self.tolerance:.0e}); against float64 the C is off by {self.exact.relative:.1e}, "
            f"onnxruntime by {self.runtime.relative:.1e}"
        )


def agreement(
    got: np.ndarray, wanted: np.ndarray, tolerance: float, exact: Callable[[], np.ndarray | None]
) -> Agreement:
    """Compare with onnxruntime's `wanted`, and with `exact()` where that does not do."""
    model = difference(got, wanted)
    if model.relative <= tolerance:
        return Agreement(model, tolerance)
    truth = exact()
    if truth is None or truth.shape != got.shape:
        return Agreement(model, tolerance)
    return Agreement(model, tolerance, difference(got, truth), difference(wanted, truth))


@dataclass(frozen=True, slots=True)
class TopOne:
    """Class decisions of two classifiers over samples.

    `doubts` lists samples decided otherwise although the reference's own margin, in steps, is small; `errors` those
    with a clear margin: (sample, reference's class, other class, margin in steps).
    """

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
