"""The complete search for one call once more, for the tilings that matter where first copies may start early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiler.cost import Floats
from tiler.first_copies import COLUMNS, Points, added
from tiler.grid import Ints
from tiler.levelled import levelled
from tiler.objective import Objective
from tiler.space import Space
from tiler.walk import NAMES, Part, walked
from tiler.weighing import Search

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
    wanted = _Early(search, early, number)
    return walked(search, _Curves(found, objective.cycles, early.cap), wanted).found


def no_points() -> Points:
    """Nothing fits."""
    return Points(np.zeros((0, len(COLUMNS))), np.zeros((0, NAMES + 1), np.int64))


class _Early:
    """Gathers what may be best with first copies that start early, of one implementation."""

    def __init__(self, search: Search, early: Early, number: int) -> None:
        self.ways = {way: _Firsts(search, early, way) for way in search.ways}
        self.number = number

    def limit(self, found: _Curves, l1: Ints) -> Floats:
        return found.limit(l1)

    def off(self, way: int, order: Sequence[str], rows: Ints) -> Floats:
        return self.ways[way].off(order, rows)

    def most_off(self, way: int) -> Floats:
        return self.ways[way].most_off

    def added(self, found: _Curves, part: Part, search: Search) -> _Curves:
        firsts = self.ways[part.way]
        once = firsts.outermost(part.order, part.rows)
        gain = firsts.gain[part.rows, None] + (firsts.begins[part.rows] * once) @ part.bits
        best = part.keys[:, 0] - firsts.weight * gain[part.at, part.column]
        part = part.take(np.flatnonzero(best <= found.limit(part.l1)))
        if not len(part.at):
            return found
        names = part.names(search.entries)
        ids = np.concatenate([np.full((len(names), 1), self.number), names], axis=1)
        new = Points(firsts.table(part, once), ids)
        return found.added(new.take(~found.beaten(new)))


class _Firsts:
    """First copies under one way of bundling. Tables in rows of the search's entries."""

    def __init__(self, search: Search, early: Early, way: int) -> None:
        self.search, self.cap, self.weight = search, early.cap, search.objective.cycles
        moving = search.ways[way]
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
        self.most_off: Floats = self.weight * (self.gain + self.begins.sum(-1)) * (1 + 1e-12)

    def off(self, order: Sequence[str], rows: Ints) -> Floats:
        """What hiding all first copies takes off the objective, at some rows."""
        begun = (self.begins[rows] * self.outermost(order, rows)).sum(-1)
        return np.asarray(self.weight * (self.gain[rows] + begun))

    def table(self, part: Part, once: Any) -> Floats:
        """The table of points of some tilings."""
        row, at, figures = part.rows[part.at], part.at, part.weighed
        double = (part.bits.T[part.column] > 0) & self.near
        begun = double & once[at] & self.once[row]
        tile, copies = self.tile[row], figures.copies[at]
        hidden = ((figures.moved - figures.first)[at] * double).sum(-1)
        streams = ((copies <= 1) | double).all(-1)
        columns = {
            "l1": part.l1,
            "cycles": part.keys[:, 1],
            "rest": part.keys[:, 0] - self.weight * part.keys[:, 1],
            "moved": part.keys[:, 2],
            "transfers": part.keys[:, 3],
            "gain": self.gain[row] + (figures.first[at] * begun).sum(-1),
            "least": np.minimum(self.least[row], _least(tile, begun)),
            "most": self.bytes[row] + (tile * begun).sum(-1),
            "hide": np.where(streams, np.clip(figures.compute[at] - hidden, 0.0, self.cap), 0.0),
        }
        return np.stack([columns[c] for c in COLUMNS], axis=1)

    def outermost(self, order: Sequence[str], rows: Ints) -> Any:
        """Where each operand's tiles change with the outermost split loop, at some rows."""
        outermost = np.full(len(rows), len(order))
        for k, axis in reversed(list(enumerate(order))):
            outermost[self.split[axis][rows]] = k
        reads = [self.search.space.reads[i] for i in self.search.moving]
        along = np.array([[a in r for r in reads] for a in order] + [[False] * len(reads)], bool)
        return along.reshape(len(order) + 1, len(reads))[outermost]


def _least(tile: Ints, chosen: Any) -> Floats:
    """Bytes of the smallest of the operands chosen."""
    return np.asarray(np.min(np.where(chosen & (tile > 0), tile, NONE), axis=-1, initial=NONE))


class _Curves:
    """What some points reach within each size: all of them, and those that hide enough for any call."""

    def __init__(self, points: Points, weight: float, cap: float) -> None:
        self.found, self.weight, self.cap = points, weight, cap
        self.all = _Curve(points, weight)
        self.hiding = _Curve(points.take(points.column("hide") >= cap), weight)

    def added(self, new: Points) -> _Curves:
        """With some points."""
        return _Curves(added(self.found, new, self.weight), self.weight, self.cap) if len(new) else self

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
