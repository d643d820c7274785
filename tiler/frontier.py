"""The tilings of a call that nothing beats: for every size of L1 the least key, ascending in L1, descending in key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiler.cost import Floats
from tiler.grid import Ints


@dataclass(frozen=True)
class Frontier:
    """Points by ascending `l1`; row i of `keys` is what point i costs (compared from the left), `ids` say which tiling
    it is."""

    l1: Ints
    keys: Floats
    ids: Ints

    def at(self, l1: int) -> int | None:
        """The best point within `l1` bytes."""
        found = int(np.searchsorted(self.l1, l1, side="right")) - 1
        return found if found >= 0 else None

    def least(self) -> Frontier:
        """The one of the least key, if any."""
        return Frontier(self.l1[-1:], self.keys[-1:], self.ids[-1:])

    def limit(self, l1: Ints) -> Floats:
        """The first part of the best key within each size, infinite where nothing fits."""
        if not len(self.l1):
            return np.full(l1.shape, np.inf)
        found = np.searchsorted(self.l1, l1, side="right") - 1
        return np.where(found >= 0, self.keys[np.maximum(found, 0), 0], np.inf)


def empty(parts: int, names: int) -> Frontier:
    """Nothing fits: `parts` numbers to a key, `names` to an id."""
    return Frontier(np.zeros(0, np.int64), np.zeros((0, parts)), np.zeros((0, names), np.int64))


def frontier(l1: Ints, keys: Floats, ids: Ints) -> Frontier:
    """What is left of some points; of equal ones the least id."""
    columns = [*ids.T[::-1], l1, *keys.T[::-1]]
    order = np.lexsort(columns)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    by_size = np.lexsort((rank, l1))
    best = np.minimum.accumulate(rank[by_size])
    kept = by_size[np.concatenate([[True], best[1:] < best[:-1]])] if len(by_size) else by_size
    return Frontier(l1[kept], keys[kept], ids[kept])


def merged(parts: Sequence[Frontier]) -> Frontier:
    """The frontier of several together."""
    return frontier(
        np.concatenate([p.l1 for p in parts]),
        np.concatenate([p.keys for p in parts]),
        np.concatenate([p.ids for p in parts]),
    )
