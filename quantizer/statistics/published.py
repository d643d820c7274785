"""TensorStatistics: what a model's metadata says of one tensor (docs/tensor-statistics.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from quantizer.statistics.measures import STRONG, WEAK, Fences, fences, mean_absolute_deviation, moments, quantiles
from quantizer.statistics.populations import Populations, pooled

VERSION = 1
LEVELS = (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Outliers(_Value):
    """How many finite numbers lie beyond a pair of fences. The bounds stand on edges of the histogram's bins."""

    low: float
    high: float
    below: int
    above: int


class Histogram(_Value):
    """Counts of bins, 16 per octave of magnitude, in order; empty bins are left out."""

    bins: tuple[int, ...]
    counts: tuple[int, ...]


class ChannelStatistics(_Value):
    """The measures of each index along the channel axis; null where a channel has no finite number."""

    count: tuple[int, ...]
    min: tuple[float | None, ...]
    max: tuple[float | None, ...]
    mean: tuple[float | None, ...]
    std: tuple[float | None, ...]
    mean_absolute_deviation: tuple[float | None, ...]
    zero_fraction: tuple[float | None, ...]
    weak_outliers: tuple[int, ...]
    strong_outliers: tuple[int, ...]


class KnownRange(_Value):
    """What a quantised model says of a value: per tensor (one entry) or per index along `axis`, the range that its grid
    holds, and where that stands (quantization_annotation, or the operator)."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    scale: tuple[float, ...]
    zero_point: tuple[float, ...]
    dtype: str
    axis: int | None = None
    source: str


class TensorStatistics(_Value):
    """One tensor over all samples. Measures are of the finite numbers, null where there is none; `note` says what is
    missing and why."""

    version: int = VERSION
    count: int
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    mean_absolute_deviation: float | None = None
    zero_fraction: float | None = None
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    quantiles: tuple[tuple[float, float], ...] = ()
    histogram: Histogram = Histogram(bins=(), counts=())
    weak_outliers: Outliers | None = None
    strong_outliers: Outliers | None = None
    channel_axis: int | None = None
    channels: ChannelStatistics | None = None
    known_range: KnownRange | None = None
    note: str | None = None

    def __str__(self) -> str:
        if not self.count:
            known = self.known_range
            said = f"range [{min(known.low):.6g}, {max(known.high):.6g}] by {known.source}" if known else self.note
            return "no finite number" + _odd(self) + (f" ({said})" if said else "")
        beyond = sum(o.below + o.above for o in (self.weak_outliers,) if o)
        return (
            f"{self.count} in [{self.min:.6g}, {self.max:.6g}], mean {self.mean:.6g}, std {self.std:.6g}, "
            f"{100 * (self.zero_fraction or 0):.1f} % zero, {beyond} outliers" + _odd(self)
        )


def _odd(statistics: TensorStatistics) -> str:
    infinities = statistics.positive_infinity + statistics.negative_infinity
    return (f", {statistics.nan} NaN" if statistics.nan else "") + (f", {infinities} Inf" if infinities else "")


def published(populations: Populations, axis: int | None = None, note: str | None = None) -> TensorStatistics:
    """The published form of a tensor's populations: of all together, and of each where `axis` names their axis."""
    one = pooled(populations)
    counted = {
        "count": int(one.counts[0]),
        "nan": int(one.nans[0]),
        "positive_infinity": int(one.positive_infinities[0]),
        "negative_infinity": int(one.negative_infinities[0]),
        "note": note,
    }
    channels = None if axis is None else _channels(populations)
    if not counted["count"]:
        return TensorStatistics(**counted, channel_axis=axis, channels=channels)
    mean, std = moments(one)
    return TensorStatistics(
        **counted,
        min=float(one.low[0]),
        max=float(one.high[0]),
        mean=float(mean[0]),
        std=float(std[0]),
        mean_absolute_deviation=float(mean_absolute_deviation(one)[0]),
        zero_fraction=int(one.zeros[0]) / int(one.counts[0]),
        quantiles=tuple(zip(LEVELS, map(float, quantiles(one, LEVELS)[0]), strict=True)),
        histogram=Histogram(bins=tuple(one.bin.tolist()), counts=tuple(one.count.tolist())),
        weak_outliers=_outliers(fences(one, WEAK)),
        strong_outliers=_outliers(fences(one, STRONG)),
        channel_axis=axis,
        channels=channels,
    )


def _outliers(bounds: Fences) -> Outliers:
    return Outliers(
        low=float(bounds.low[0]), high=float(bounds.high[0]), below=int(bounds.below[0]), above=int(bounds.above[0])
    )


def _channels(populations: Populations) -> ChannelStatistics:
    counts = populations.counts
    mean, std = moments(populations)
    weak, strong = fences(populations, WEAK), fences(populations, STRONG)
    with np.errstate(invalid="ignore"):
        zero = populations.zeros / counts
    return ChannelStatistics(
        count=tuple(counts.tolist()),
        min=_known(populations.low),
        max=_known(populations.high),
        mean=_known(mean),
        std=_known(std),
        mean_absolute_deviation=_known(mean_absolute_deviation(populations)),
        zero_fraction=_known(zero),
        weak_outliers=tuple((weak.below + weak.above).tolist()),
        strong_outliers=tuple((strong.below + strong.above).tolist()),
    )


def _known(column: Sequence[float] | np.ndarray) -> tuple[float | None, ...]:
    return tuple(float(v) if np.isfinite(v) else None for v in column)
