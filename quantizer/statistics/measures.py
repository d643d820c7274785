"""What binned populations say: mean, deviations, quantiles, Tukey's fences; float64, one entry per population."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from quantizer.statistics.populations import BINS_PER_OCTAVE, LOWEST_EXPONENT, OFFSET_BITS, Populations

WEAK, STRONG = 1.5, 3.0
"""Interquartile ranges beyond the quartiles where outliers begin (Tukey, Exploratory Data Analysis, 1977)."""
_LEADING = BINS_PER_OCTAVE << OFFSET_BITS


@dataclass(frozen=True, slots=True)
class Fences:
    """Bounds on edges of bins and how many finite numbers lie beyond them: float64[size], int64[size]."""

    low: np.ndarray
    high: np.ndarray
    below: np.ndarray
    above: np.ndarray


def moments(populations: Populations) -> tuple[np.ndarray, np.ndarray]:
    """Mean and the population's standard deviation, each correctly rounded from exact sums; NaN of nothing."""
    pairs = [_moments(populations, rows) for rows in _rows(populations)]
    return np.array([m for m, _ in pairs]), np.array([s for _, s in pairs])


def mean_absolute_deviation(populations: Populations) -> np.ndarray:
    """Mean of |x - mean|: exact but for the bin that holds the mean, whose members count as their own mean does."""
    mean, _ = moments(populations)
    centre, _ = _centres(populations)
    away = populations.count * np.abs(centre - mean[populations.owner])
    total = np.zeros(populations.size)
    np.add.at(total, populations.owner, away)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / populations.counts)


def quantiles(populations: Populations, levels: tuple[float, ...]) -> np.ndarray:
    """float64[size, levels]: numpy's linear quantiles to within the bin (1/16 of the value) that holds them.

    NaN of nothing.     Inside a bin the members are taken as evenly spread, with the bin's own mean and deviation."""
    centre, spread = _centres(populations)
    lower, upper = bin_edges(populations.bin)
    return np.array(
        [
            _quantiles(populations.count[r], centre[r], spread[r], lower[r], upper[r], levels, low, high)
            for r, low, high in zip(_rows(populations), populations.low, populations.high, strict=True)
        ]
    ).reshape(populations.size, len(levels))


def fences(populations: Populations, reach: float) -> Fences:
    """Tukey's fences, `reach` interquartile ranges beyond the quartiles, moved outward to edges of bins so that the
    counts beyond them are exact. 0 of nothing."""
    quarter, three = quantiles(populations, (0.25, 0.75)).T
    with np.errstate(over="ignore"):
        low, high = quarter - reach * (three - quarter), three + reach * (three - quarter)
    at, to = bin_edges(bin_of(low))[0], np.minimum(bin_edges(bin_of(high))[1], np.finfo(np.float64).max)
    lower, upper = bin_edges(populations.bin)
    owner, count = populations.owner, populations.count
    below, above = np.zeros(populations.size, np.int64), np.zeros(populations.size, np.int64)
    np.add.at(below, owner, np.where(upper <= at[owner], count, 0) * (lower < at[owner]))
    np.add.at(above, owner, np.where(lower >= to[owner], count, 0) * (upper > to[owner]))
    return Fences(at, to, below, above)


def bin_edges(bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper edge of each bin; zero's are both 0. A negative bin holds its upper edge's side of zero."""
    inner, outer = _magnitude(np.abs(bins) - 1), _magnitude(np.abs(bins))
    return (
        np.where(bins > 0, inner, np.where(bins < 0, -outer, 0.0)),
        np.where(bins > 0, outer, np.where(bins < 0, -inner, 0.0)),
    )


def bin_of(values: np.ndarray) -> np.ndarray:
    """The bin whose edges enclose each value; NaN and infinities are clipped to the last bin."""
    bounded = np.nan_to_num(values, nan=0.0, posinf=np.finfo(np.float64).max, neginf=np.finfo(np.float64).min)
    magnitude = (np.abs(bounded).view(np.int64) >> (52 - 4)) - BINS_PER_OCTAVE + 1
    return np.asarray(np.where(bounded < 0, -1, 1) * np.maximum(magnitude, 0))


def _magnitude(index: np.ndarray) -> np.ndarray:
    index = np.maximum(index, 0)
    exponent, step = index // BINS_PER_OCTAVE + LOWEST_EXPONENT, index % BINS_PER_OCTAVE
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(1.0 + step / BINS_PER_OCTAVE, exponent))


def _rows(populations: Populations) -> list[slice]:
    cuts = np.searchsorted(populations.owner, np.arange(populations.size + 1))
    return [slice(int(a), int(b)) for a, b in pairwise(cuts)]


def _moments(populations: Populations, rows: slice) -> tuple[float, float]:
    bins = populations.bin[rows].tolist()
    exponents = [(abs(b) - 1) // BINS_PER_OCTAVE if b else 0 for b in bins]
    if not bins:
        return math.nan, math.nan
    least, most = min(exponents), max(exponents)
    first = second = total = 0
    columns = (populations.count, populations.offsets, populations.squares_high, populations.squares_low)
    for b, e, n, o, h, s in zip(bins, exponents, *(c[rows].tolist() for c in columns), strict=True):
        total += n
        if b:
            edge = _LEADING + ((abs(b) - 1) % BINS_PER_OCTAVE << OFFSET_BITS)
            first += (n * edge + o << e - least) * (1 if b > 0 else -1)
            second += n * edge * edge + 2 * edge * o + (h << OFFSET_BITS) + s << 2 * (e - least)
    unit = total << most - least  # sums in units of the greatest exponent's last bit: nothing overflows
    mean, variance = Fraction(first, unit), Fraction(second * total - first * first, unit * unit)
    scale = most + LOWEST_EXPONENT - OFFSET_BITS - 4
    return math.ldexp(float(mean), scale), math.ldexp(math.sqrt(variance), scale)


def _centres(populations: Populations) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each bin's members."""
    bins, count = populations.bin, populations.count
    index = np.maximum(np.abs(bins) - 1, 0)
    unit = np.ldexp(1.0, index // BINS_PER_OCTAVE + LOWEST_EXPONENT - OFFSET_BITS - 4)
    offset = populations.offsets / count
    square = (populations.squares_high * float(1 << OFFSET_BITS) + populations.squares_low) / count
    edge = _LEADING + (index % BINS_PER_OCTAVE << OFFSET_BITS)
    return np.sign(bins) * (edge + offset) * unit, np.sqrt(np.maximum(square - offset * offset, 0.0)) * unit


def _quantiles(
    count: np.ndarray,
    centre: np.ndarray,
    spread: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    levels: tuple[float, ...],
    low: float,
    high: float,
) -> np.ndarray:
    if not len(count):
        return np.full(len(levels), np.nan)
    ends = np.cumsum(count)

    def ranked(rank: np.ndarray) -> np.ndarray:
        k = np.searchsorted(ends, rank, side="right")
        inside = (rank - (ends[k] - count[k]) + 0.5) / count[k] - 0.5
        value = centre[k] + np.sqrt(12.0) * spread[k] * inside
        return np.asarray(np.clip(np.clip(value, lower[k], upper[k]), low, high))

    place = np.asarray(levels) * (ends[-1] - 1)
    floor, part = ranked(np.floor(place)), place % 1
    return np.asarray(floor * (1 - part) + ranked(np.ceil(place)) * part)
