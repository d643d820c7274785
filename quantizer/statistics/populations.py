"""Populations of numbers, counted into bins whose integer sums merge exactly, whatever the split.

A finite number, rounded to 24 significant bits (float32's: only float64 and integers above 2^24 are rounded), falls
into one of 16 bins per octave: bin 0 is zero (and |x| < 2^-1022); bin b > 0 covers [2^e (1 + m/16), 2^e (1 + (m+1)/16))
with e = (b - 1) // 16 - 1022 and m = (b - 1) % 16; bin -b mirrors it. A bin keeps its count and the integer sums of its
members' offsets from its inner edge, in units of 2^(e - 23), and of their squares: mean and variance follow exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

BINS_PER_OCTAVE = 16
OFFSET_BITS = 19
"""Of 24 significant bits: the leading one, four that choose the bin, and the offset inside it."""
LOWEST_EXPONENT = -1022
_OFFSETS = (1 << OFFSET_BITS) - 1
_GREATEST = (2047 << 23) - 1
_CHUNK = 1 << 22
"""Elements counted at once: float64 adds 2^22 integers below 2^19 without rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Populations:
    """Populations side by side, one per channel of a tensor (or one alone).

    nans, positive_infinities, negative_infinities: int64[size]; low, high: float64[size], the finite numbers' extremes
    (+inf and -inf where there is none). The table's rows are sorted by population, then bin: owner, bin, count,
    offsets, squares_high, squares_low: int64[rows]; the sum of squared offsets is squares_high * 2^19 + squares_low.
    """

    nans: np.ndarray
    positive_infinities: np.ndarray
    negative_infinities: np.ndarray
    low: np.ndarray
    high: np.ndarray
    owner: np.ndarray
    bin: np.ndarray
    count: np.ndarray
    offsets: np.ndarray
    squares_high: np.ndarray
    squares_low: np.ndarray

    @property
    def size(self) -> int:
        """How many populations."""
        return len(self.nans)

    @property
    def counts(self) -> np.ndarray:
        """Finite numbers of each population, int64[size]."""
        return _per_owner(self.owner, self.count, self.size)

    @property
    def zeros(self) -> np.ndarray:
        """Zeros of each population, int64[size]."""
        return _per_owner(self.owner, np.where(self.bin == 0, self.count, 0), self.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Populations) and all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]


SCALARS = ("nans", "positive_infinities", "negative_infinities")
TABLE = ("owner", "bin", "count", "offsets", "squares_high", "squares_low")


def tally(values: np.ndarray, axis: int | None = None) -> Populations:
    """Count an array of numbers or booleans: one population per index along `axis`, or one of everything."""
    rows = _rows(values, axis)
    step = max(1, _CHUNK // max(1, len(rows)))
    total = _tally(rows[:, :step])
    for start in range(step, rows.shape[1], step):
        total = merge(total, _tally(rows[:, start : start + step]))
    return total


def empty(size: int = 1) -> Populations:
    """Populations of nothing."""
    return _tally(np.zeros((size, 0)))


def merge(a: Populations, b: Populations) -> Populations:
    """Both sets of samples as one; exact. Populations of different sizes are pooled first."""
    if a.size != b.size:
        a, b = pooled(a), pooled(b)
    return Populations(
        **{n: getattr(a, n) + getattr(b, n) for n in SCALARS},
        low=np.minimum(a.low, b.low),
        high=np.maximum(a.high, b.high),
        **_summed(*(np.concatenate([getattr(a, n), getattr(b, n)]) for n in TABLE)),
    )


def pooled(populations: Populations) -> Populations:
    """All channels as one population."""
    if populations.size == 1:
        return populations
    return Populations(
        **{n: getattr(populations, n).sum(keepdims=True) for n in SCALARS},
        low=populations.low.min(keepdims=True, initial=np.inf),
        high=populations.high.max(keepdims=True, initial=-np.inf),
        **_summed(np.zeros_like(populations.owner), *(getattr(populations, n) for n in TABLE[1:])),
    )


def _rows(values: np.ndarray, axis: int | None) -> np.ndarray:
    if axis is None:
        return values.reshape(1, values.size)
    size = values.shape[axis]
    return np.moveaxis(values, axis, 0).reshape(size, values.size // max(1, size))


def _tally(rows: np.ndarray) -> Populations:
    wide = rows.astype(np.float64)
    finite = np.isfinite(wide)
    owner = np.broadcast_to(np.arange(len(wide))[:, None], wide.shape)[finite]
    bins, offsets = _binned(wide[finite])
    return Populations(
        nans=np.isnan(wide).sum(1),
        positive_infinities=(wide == np.inf).sum(1),
        negative_infinities=(wide == -np.inf).sum(1),
        low=np.where(finite, wide, np.inf).min(1, initial=np.inf),
        high=np.where(finite, wide, -np.inf).max(1, initial=-np.inf),
        **_counted(owner, bins, offsets),
    )


def _binned(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bin and offset of finite float64, from their bits, rounded to 24 significant ones (half to even)."""
    bits = np.abs(values).view(np.int64)
    bits = np.minimum((bits + (1 << 28) - 1 + ((bits >> 29) & 1)) >> 29, _GREATEST)
    magnitude = (bits >> OFFSET_BITS) - BINS_PER_OCTAVE + 1
    there = magnitude > 0
    return np.where(there, np.where(values < 0, -magnitude, magnitude), 0), np.where(there, bits & _OFFSETS, 0)


def _counted(owner: np.ndarray, bins: np.ndarray, offsets: np.ndarray) -> dict[str, np.ndarray]:
    if not bins.size:
        return _table(*[np.zeros(0, np.int64)] * len(TABLE))
    present, place = _compact(bins)
    group = owner * len(present) + place
    squares = offsets * offsets
    sums = [_sums(group, column) for column in (None, offsets, squares >> OFFSET_BITS, squares & _OFFSETS)]
    seen = np.flatnonzero(sums[0])
    padded = [np.pad(s, (0, max(0, len(sums[0]) - len(s)))) for s in sums]
    return _table(seen // len(present), present[seen % len(present)], *(s[seen] for s in padded))


def _compact(bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct bins in order, and each element's place among them; linear time."""
    least = bins.min()
    present = np.flatnonzero(np.bincount(bins - least))
    place = np.zeros(present[-1] + 1, np.int64)
    place[present] = np.arange(len(present))
    return present + least, place[bins - least]


def _sums(group: np.ndarray, column: np.ndarray | None) -> np.ndarray:
    return np.bincount(group) if column is None else np.bincount(group, column.astype(np.float64)).astype(np.int64)


def _summed(owner: np.ndarray, bins: np.ndarray, *columns: np.ndarray) -> dict[str, np.ndarray]:
    """The table's rows sorted, equal (owner, bin) added up."""
    order = np.lexsort((bins, owner))
    owner, bins = owner[order], bins[order]
    if not len(owner):
        return _table(owner, bins, *columns)
    first = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(bins) != 0)])
    return _table(owner[first], bins[first], *(np.add.reduceat(c[order], first) for c in columns))


def _table(*columns: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(TABLE, columns, strict=True))


def _per_owner(owner: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    total = np.zeros(size, np.int64)
    np.add.at(total, owner, column)
    return total
