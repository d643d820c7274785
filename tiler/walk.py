"""The walk over every tiling of a call under one implementation, order by order; what it gathers is told to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from tiler.bundles import WAYS
from tiler.cost import Floats
from tiler.grid import Ints
from tiler.weighing import Search, Weighed

CHUNK = 4096  # grid positions weighed at once
# an id: number of the loop order and way of bundling, grid position, mask of operands with two buffers or two halves
NAMES = 3
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Part:
    """Some tilings of one loop order and one way of bundling: `rows` of the entries and their figures, `bits` and
    `masks` of the choices of double buffers by column, and what fits, as L1, keys, row of `weighed` and column."""

    number: int
    order: tuple[str, ...]
    way: int
    rows: Ints
    weighed: Weighed
    bits: Floats
    masks: Ints
    l1: Ints
    keys: Floats
    at: Ints
    column: Ints

    def take(self, chosen: Any) -> Part:
        """Some of what fits."""
        return replace(self, l1=self.l1[chosen], keys=self.keys[chosen], at=self.at[chosen], column=self.column[chosen])

    def names(self, entries: Ints) -> Ints:
        """The ids of what fits."""
        number = np.full(len(self.at), self.number * WAYS + self.way)
        return np.stack([number, entries[self.rows[self.at]], self.masks[self.column]], axis=-1)


class Wanted(Protocol[F]):
    """What a walk over tilings gathers: values `F` of what was found."""

    def limit(self, found: F, l1: Ints) -> Floats:
        """Above which objective a tiling of each size is superfluous; never higher once more is found."""

    def off(self, way: int, order: Sequence[str], rows: Ints, /) -> Floats:
        """What may at most be taken off the objective at some of the entries."""

    def most_off(self, way: int, /) -> Floats:
        """Of every entry under any order."""

    def added(self, found: F, part: Part, search: Search) -> F:
        """With what is wanted of some tilings."""


def walked(search: Search, found: F, wanted: Wanted[F]) -> F:
    """`found` with what is wanted of all tilings, order by order: none or all double buffers first, then every choice
    of them. What few buffers and many leave prunes the rest."""
    left: dict[tuple[int, int], tuple[Ints, Floats, Weighed]] = {}
    for number, order in enumerate(search.space.orders):
        for way in search.ways:
            rows = np.flatnonzero(search.least[way] - wanted.most_off(way) <= wanted.limit(found, search.base))
            if not len(rows):
                continue
            weighed = search.weighed(order, way, rows)
            least = weighed.least() - wanted.off(way, order, rows)
            keep = np.flatnonzero(search.fits(order, weighed, rows) & (least <= wanted.limit(found, weighed.base)))
            left[number, way] = rows[keep], least[keep], weighed.take(keep)
            found = _all_added(search, found, wanted, (number, order, way), left[number, way], whole=False)
    for (number, way), (rows, least, weighed) in left.items():
        keep = np.flatnonzero(least <= wanted.limit(found, weighed.base))
        if len(keep):
            kept = rows[keep], least[keep], weighed.take(keep)
            found = _all_added(search, found, wanted, (number, search.space.orders[number], way), kept, whole=True)
    return found


def _all_added(
    search: Search,
    found: F,
    wanted: Wanted[F],
    which: tuple[int, tuple[str, ...], int],
    kept: tuple[Ints, Floats, Weighed],
    whole: bool,
) -> F:
    rows, _, weighed = kept
    for start in range(0, len(rows), CHUNK):
        chunk = np.arange(start, min(start + CHUNK, len(rows)))
        part = weighed.take(chunk)
        masks = search.masks(part.streams())
        if not whole:
            masks = [masks[0], masks[-1]]
        bits = np.array([[m >> i & 1 for m in masks] for i in search.moving], float).reshape(-1, len(masks))
        points = part.points(bits, search.l1)
        if points is not None:
            number, order, way = which
            tilings = Part(number, order, way, rows[chunk], part, bits, np.array(masks), *points)
            found = wanted.added(found, tilings, search)
    return found
