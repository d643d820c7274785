"""What a call's first copies are worth that the call before may start.

A tiling's first copies are those before its loops. Where they fit beside what the call before has in L1, what they
take runs beside its computing (`ahead.py`). That is known only when addresses stand; here is the most that it takes
off, so that tilings can be chosen by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tiler.cost import Floats, align16
from tiler.frontier import Frontier
from tiler.grid import Ints
from tiler.schedule import BoundOperand
from tiler.target import Hop

CHUNK = 256  # points compared with all others at once
COLUMNS = ("l1", "cycles", "rest", "moved", "transfers", "gain", "least", "most", "hide")


@dataclass(frozen=True, slots=True)
class Points:
    """Tilings by ascending L1, a row of `table` (see `COLUMNS`) and of `ids` each.

    `cycles` are its own, `rest` is what the objective has beside them. `gain`:
    cycles of its first copies; all may start early where `most` bytes are free, a part from `least` on. `hide`: cycles
    behind which it can start the next call's.
    """

    table: Floats
    ids: Ints

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> Floats:
        return np.asarray(self.table[:, COLUMNS.index(name)])

    @property
    def l1(self) -> Floats:
        return self.column("l1")

    def take(self, rows: Any) -> Points:
        """Some of them."""
        return Points(self.table[rows], self.ids[rows])

    def cost(self, weight: float) -> Floats:
        """The objective, `weight` being that of a cycle."""
        return np.asarray(weight * self.column("cycles") + self.column("rest"))

    def best(self, weight: float) -> Floats:
        """With all first copies hidden."""
        return np.asarray(weight * (self.column("cycles") - self.column("gain")) + self.column("rest"))

    def early(self, free: int, hide: float, per_byte: float, overhead: float) -> Floats:
        """The most that starting early takes off each, with so many bytes and cycles of the call before; where not all
        first copies fit, `overhead` and `per_byte` cycles a byte."""
        gain, least, most = (self.column(c) for c in ("gain", "least", "most"))
        part = np.minimum(gain, overhead + free * per_byte)
        fits = np.where(free >= most, gain, np.where(free >= least, part, 0.0))
        return np.asarray(np.minimum(fits, hide))


@dataclass(frozen=True, slots=True)
class Tiling:
    """One of a call's points, and the cycles that the choice counts on; `early`: with first copies that the call before
    starts."""

    ids: tuple[int, ...]
    total: int
    cycles: float
    early: bool


def plain_points(found: Frontier, weight: float) -> Points:
    """What nothing beats, as points whose first copies nobody starts and which start nobody's."""
    cycles = found.keys[:, 1]
    rest = found.keys[:, 0] - weight * cycles
    figures = [found.l1, cycles, rest, found.keys[:, 2], found.keys[:, 3], *np.zeros((4, len(cycles)))]
    return Points(np.stack(figures, axis=1), found.ids)


def added(found: Points, new: Points, weight: float) -> Points:
    """Those of both that no other replaces, wherever the calls around leave it, by ascending L1; `found` is such a set
    already, `weight` the objective's of a cycle."""
    new = new.take(~_replaced(found, new, weight))
    if not len(new):
        return found
    new = _reduced(new, weight)
    found = found.take(~_replaced(new, found, weight))
    both = Points(np.concatenate([found.table, new.table]), np.concatenate([found.ids, new.ids]))
    return both.take(np.lexsort((both.cost(weight), both.l1)))


def _reduced(new: Points, weight: float) -> Points:
    """Those that none before replaces, cheapest first; of equal ones that of fewest bytes, transfers, least id."""
    columns = [new.column(c) for c in ("most", "least", "l1")] + [new.best(weight)]
    ties = [new.column("transfers"), new.column("moved"), new.cost(weight)]
    new = new.take(np.lexsort([*new.ids.T[::-1], *columns, -new.column("hide"), *ties]))
    kept = np.ones(len(new), bool)
    for begin in range(0, len(new), CHUNK):
        part = new.take(slice(begin, begin + CHUNK))
        kept[begin:] &= ~_replaced(part, new.take(slice(begin, None)), weight, strictly=True)
    return new.take(kept)


def _replaced(by: Points, of: Points, weight: float, strictly: bool = False) -> Any:
    """Which of some points one of others can stand for; `strictly`: both begin with the same, and only one before."""
    (c, d, p), (cost, best, t) = ((x.cost(weight), x.best(weight), x.column) for x in (by, of))
    found = (d[:, None] <= best) & (c[:, None] <= cost)
    for name in ("most", "least"):
        found &= p(name)[:, None] <= t(name)
    found |= c[:, None] <= best
    found &= (p("l1")[:, None] <= t("l1")) & (p("hide")[:, None] >= t("hide"))
    if strictly:
        found &= np.arange(len(by))[:, None] < np.arange(len(of))
    return found.any(0)


def overhead(operands: Sequence[BoundOperand], hop: Hop) -> float:
    """Cycles beside their bytes that nothing which these operands' first copies take is above."""
    lines = sum(prod(o.extent[:-1]) for o in operands)
    return float(len(operands) * hop.latency + lines * hop.per_run)


def most_bytes(operands: Sequence[BoundOperand]) -> int:
    """Of L1 that these operands' first copies take."""
    return sum(align16(prod(o.extent) * o.itemsize) for o in operands)


def most_gain(operands: Sequence[BoundOperand], l1: int, hop: Hop) -> float:
    """Cycles that these operands' first copies do not exceed."""
    return overhead(operands, hop) + min(most_bytes(operands), l1) / hop.bytes_per_cycle
