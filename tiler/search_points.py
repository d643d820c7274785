"""The complete search for one call once more, for the tilings that matter where first copies may start early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiler.bundles import WAYS
from tiler.cost import Floats
from tiler.first_copies import COLUMNS, Points, added
from tiler.grid import Ints
from tiler.levelled import levelled
from tiler.objective import Objective
from tiler.search import CHUNK, NAMES, Search, Weighed
from tiler.space import Space

NONE = 2.0**40  # bytes, where nothing can start early


@dataclass(frozen=True, slots=True)
class Early:
    """Per operand whether the call before may start its first copy, and the cycles above which nobody hides more."""

    able: tuple[bool, ...]
    cap: float


def search_points(
    space: Space, l1: int, levels: Sequence[str], objective: Objective, early: Early, found: Points, number: int
) -> Points:
    """`found` and the tilings of this implementation, of a `number`, that nothing replaces, for every size up to `l1`,
    whatever the calls around it leave."""
    entries = np.flatnonzero(levelled(space, levels).fitting(l1, None))
    if not len(entries):
        return found
    search = Search(space, l1, levels, None, entries, objective)
    ways = [_Points(search, early, number, way) for way in search.ways]
    for whole in (False, True):
        for n, order in enumerate(space.orders):
            for way in ways:
                found = way.add_order(found, n, order, whole)
    return found


def no_points() -> Points:
    """Nothing fits."""
    return Points(np.zeros((0, len(COLUMNS))), np.zeros((0, NAMES + 1), np.int64))


class _Points:
    """Weighs the tilings of one implementation, order by order. Tables in rows of the search's entries, what does not
    depend on the order of loops made once."""

    def __init__(self, search: Search, early: Early, number: int, way: int) -> None:
        self.search, self.cap, self.number, self.weight = search, early.cap, number, search.objective.cycles
        self.way, moving = way, search.ways[way]
        able = np.array([early.able[i] for i in search.moving], bool)
        self.near = ~search.far.astype(bool)
        alone = (moving.copies <= 1) & able
        first = moving.moved / np.maximum(moving.copies, 1)
        self.tile = moving.tile
        self.gain = (first * alone).sum(-1)
        self.bytes = (moving.tile * alone).sum(-1)
        self.least = _least(moving.tile, alone)
        self.split = {a: t[search.entries] > 1 for a, t in search.space.trips.items()}
        self.once = np.zeros(alone.shape, bool)  # where tiles change with one split axis alone
        for j, i in enumerate(search.moving):
            cut = sum((self.split[a].astype(int) for a in search.space.reads[i]), np.zeros(len(alone), int))
            self.once[:, j] = able[j] & (cut == 1)
        self.begins = first * self.once

    def add_order(self, found: Points, number: int, order: Sequence[str], whole: bool) -> Points:
        """`found` with the tilings of one loop order: all choices of double buffers, or (not `whole`) none and all."""
        s = self.search
        weighed = s.weighed(order, self.way)
        once = self._outermost(order)
        most = self.weight * (self.gain + (self.begins * once).sum(-1))
        curves = _Curves(found, self.weight, self.cap)
        keep = np.flatnonzero((weighed.base <= s.l1) & (weighed.least() - most <= curves.limit(weighed.base)))
        for start in range(0, len(keep), CHUNK):
            rows = keep[start : start + CHUNK]
            part = weighed.take(rows)
            masks = s.masks(part.streams())
            bits = np.array([[m >> i & 1 for m in masks] for i in s.moving], float).reshape(-1, len(masks))
            if not whole:
                bits, masks = bits[:, [0, -1]], [masks[0], masks[-1]]
            points = part.points(bits, s.l1)
            if points is None:
                continue
            l1, keys, at, column = points
            gain = self.gain[rows, None] + (self.begins[rows] * once[rows]) @ bits
            best = keys[:, 0] - self.weight * gain[at, column]
            able = np.flatnonzero(best <= curves.limit(l1))
            l1, keys, at, column = l1[able], keys[able], at[able], column[able]
            row = rows[at]
            new = self._points(part, bits, once[row], row, l1, keys, at, column)
            ids = [
                np.full(len(at), self.number),
                np.full(len(at), number * WAYS + self.way),
                s.entries[row],
                np.array(masks)[column],
            ]
            points_ = Points(new, np.stack(ids, axis=1))
            found = added(found, points_.take(~curves.beaten(points_)), self.weight)
            curves = _Curves(found, self.weight, self.cap)
        return found

    def _points(
        self, part: Weighed, bits: Floats, once: Any, row: Ints, l1: Ints, keys: Floats, at: Ints, column: Ints
    ) -> Floats:
        """The table of some points: of `part` rows `at` and columns `column` of `bits`, entries `row`."""
        double = (bits.T[column] > 0) & self.near
        begun = double & once & self.once[row]
        tile = self.tile[row]
        copies = part.copies[at]
        hidden = ((part.moved - part.first)[at] * double).sum(-1)
        streams = ((copies <= 1) | double).all(-1)
        columns = {
            "l1": l1,
            "cycles": keys[:, 1],
            "rest": keys[:, 0] - self.weight * keys[:, 1],
            "moved": keys[:, 2],
            "transfers": keys[:, 3],
            "gain": self.gain[row] + (part.first[at] * begun).sum(-1),
            "least": np.minimum(self.least[row], _least(tile, begun)),
            "most": self.bytes[row] + (tile * begun).sum(-1),
            "hide": np.where(streams, np.clip(part.compute[at] - hidden, 0.0, self.cap), 0.0),
        }
        return np.stack([columns[c] for c in COLUMNS], axis=1)

    def _outermost(self, order: Sequence[str]) -> Any:
        """Where each operand's tiles change with the outermost split loop."""
        outermost = np.full(len(self.gain), len(order))
        for k, axis in reversed(list(enumerate(order))):
            outermost[self.split[axis]] = k
        reads = [self.search.space.reads[i] for i in self.search.moving]
        along = np.array([[a in r for r in reads] for a in order] + [[False] * len(reads)], bool)
        return along.reshape(len(order) + 1, len(reads))[outermost]


def _least(tile: Ints, chosen: Any) -> Floats:
    """Bytes of the smallest of the operands chosen."""
    return np.asarray(np.min(np.where(chosen & (tile > 0), tile, NONE), axis=-1, initial=NONE))


class _Curves:
    """What some points reach within each size: all of them, and those that hide enough for any call."""

    def __init__(self, points: Points, weight: float, cap: float) -> None:
        self.weight = weight
        self.all = _Curve(points, weight)
        self.hiding = _Curve(points.take(points.column("hide") >= cap), weight)

    def limit(self, l1: Ints) -> Floats:
        """A cost that makes a tiling of each size superfluous even if all its first copies are hidden."""
        return self.hiding.limit(l1)

    def beaten(self, new: Points) -> Any:
        """Which of some points surely are."""
        idle = (new.column("hide") <= 0) & self.all.beaten(new)
        return idle | self.hiding.beaten(new)


class _Curve:
    """Within each size the least cost, and the point that is cheapest once its first copies are hidden."""

    def __init__(self, points: Points, weight: float) -> None:
        self.points, self.weight = points, weight
        self.cost, self.best = points.cost(weight), points.best(weight)
        self.least = np.minimum.accumulate(self.cost)
        lowest = np.minimum.accumulate(self.best)
        self.which = np.maximum.accumulate(np.where(self.best <= lowest, np.arange(len(points)), 0))

    def limit(self, l1: Any) -> Floats:
        if not len(self.points):
            return np.full(len(l1), np.inf)
        at = np.searchsorted(self.points.l1, l1, side="right") - 1
        return np.where(at >= 0, self.least[np.maximum(at, 0)], np.inf)

    def beaten(self, new: Points) -> Any:
        cost, best = new.cost(self.weight), new.best(self.weight)
        result = best > self.limit(new.l1)
        if not len(self.points):
            return result
        at = np.searchsorted(self.points.l1, new.l1, side="right") - 1
        p = self.which[np.maximum(at, 0)]
        for name in ("most", "least"):
            at = np.where(self.points.column(name)[p] <= new.column(name), at, -1)
        better = (self.best[p] < best) & (self.cost[p] <= cost) | (self.best[p] <= best) & (self.cost[p] < cost)
        return result | (better & (at >= 0))
