"""The complete search for one call under one implementation: tile sizes x loop orders x double buffering, for every
size of L1 at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiler.choice import Choice, Outcome
from tiler.chosen import TilingId, chosen
from tiler.cost import Floats
from tiler.frontier import Frontier, empty, frontier, merged
from tiler.grid import Ints
from tiler.levelled import levelled
from tiler.objective import CYCLES, PARTS, Objective
from tiler.space import Space
from tiler.walk import NAMES, Part, walked
from tiler.weighing import Search


def search(
    space: Space, l1: int, levels: Sequence[str], stage: int | None = None, objective: Objective = CYCLES
) -> Outcome:
    """The best tiling within `l1` bytes. `levels` says per operand where its far side is ("l2", "l3"; "l1": it stays
    there, outside these bytes; "ends": it is read there for the last time or made there, within these bytes; "stream":
    L2, the outermost loop going through it once), `stage` bounds the L2 bytes of the stages of those in L3, or of what
    an iteration of that loop reads of those that stream."""
    found = search_all(space, l1, levels, stage, objective, alone=True)
    at = found.at(l1)
    if at is None:
        return Outcome(levelled(space, levels).infeasible(l1), space.grid.thinned)
    return Outcome(choice_of(space, found, at, levels), space.grid.thinned)


def choice_of(space: Space, found: Frontier, at: int, levels: Sequence[str]) -> Choice:
    """Everything about one point of a frontier."""
    tiling = TilingId(*(int(i) for i in found.ids[at, -NAMES:]))
    return chosen(space, tiling, int(found.keys[at, 1]), tuple(levels))


def search_all(
    space: Space,
    l1: int,
    levels: Sequence[str],
    stage: int | None = None,
    objective: Objective = CYCLES,
    known: Frontier | None = None,
    alone: bool = False,
) -> Frontier:
    """What nothing beats, for every size up to `l1`, or the best `alone` within `l1`; of it only what the points of
    `known` do not beat."""
    entries = np.flatnonzero(levelled(space, levels).fitting(l1, stage))
    found = empty(PARTS, NAMES)
    if not len(entries):
        return found
    running = Search(space, l1, levels, stage, entries, objective)
    return walked(running, found, _Least(known) if alone else _Cheapest(known))


@dataclass(frozen=True, slots=True)
class _Cheapest:
    """The frontier, of which only what `known` does not beat."""

    known: Frontier | None

    def limit(self, found: Frontier, l1: Ints) -> Floats:
        limit = found.limit(l1)
        return limit if self.known is None else np.minimum(limit, self.known.limit(l1))

    def off(self, _way: int, _order: Sequence[str], rows: Ints) -> Floats:
        return np.zeros(len(rows))

    def most_off(self, _way: int) -> Floats:
        return np.zeros(())

    def added(self, found: Frontier, part: Part, search: Search) -> Frontier:
        part = part.take(part.keys[:, 0] <= self.limit(found, part.l1))
        return merged([found, frontier(part.l1, part.keys, part.names(search.entries))])


class _Least(_Cheapest):
    """The best tiling alone."""

    def limit(self, found: Frontier, l1: Ints) -> Floats:
        known = [f.keys[-1, 0] for f in (found, self.known) if f is not None and len(f.l1)]
        return np.full(l1.shape, min(known, default=np.inf))

    def added(self, found: Frontier, part: Part, search: Search) -> Frontier:
        return _Cheapest.added(self, found, part, search).least()
