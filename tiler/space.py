"""One bound call's whole space of tilings as tables; budgets come in only when it is searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from tiler.bound import BoundCall
from tiler.bundles import APART, EXACTLY, Shares, shares, tables
from tiler.cost import Floats, MoveCost, accumulator_bytes, align16, compute_cycles, move_cost, scratch_bytes
from tiler.grid import Grid, Ints, make_grid, operand_axes
from tiler.target import Target
from tiler.traffic import OperandTraffic, operand_traffic

NEAR = ("l1", "ends")  # levels of operands that lie whole in L1; "ends": the call is the last to read or makes it


class Space:
    """Everything about one bound call that does not depend on budgets: the grid and its tables. Made once, searched
    often."""

    def __init__(self, call: BoundCall, target: Target) -> None:
        self.call, self.target = call, target
        self.grid: Grid = make_grid(call)
        hops = [target.hops["l2_l1"], target.hops["l3_l2"]]
        self.traffic: list[OperandTraffic] = [operand_traffic(self.grid, o, hops) for o in call.operands]
        self.reads: list[frozenset[str]] = [operand_axes(self.grid, o) for o in call.operands]
        self.compute: Floats = compute_cycles(self.grid, target)
        self.scratch = scratch_bytes(self.grid, target)
        self.accumulator = accumulator_bytes(self.grid)
        self.tile: list[Ints] = [self.full(align16(t.tile_bytes)) for t in self.traffic]
        self.base: Ints = self._base()
        self.trips: dict[str, Ints] = {a: self.full(self.grid.trips(a)) for a in self.grid.axes}
        self.tiles: Ints = np.ones(len(self.base), np.int64)
        for trips in self.trips.values():
            self.tiles = self.tiles * trips
        self._memo: dict[object, Any] = {}

    def once(self, what: object, make: Callable[[], Any]) -> Any:
        """Something that follows from the call alone, made the first time that it is asked for."""
        if what not in self._memo:
            self._memo[what] = make()
        return self._memo[what]

    def full(self, values: Any) -> Ints:
        """Flattened over the grid."""
        return np.asarray(np.broadcast_to(values, self.grid.shape)).ravel()

    def value(self, values: Any, at: int) -> Any:
        """One grid position of a table in grid shape."""
        return np.broadcast_to(values, self.grid.shape)[np.unravel_index(at, self.grid.shape)]

    def move_cost(self, operand: int, level: str) -> MoveCost:
        """Of an operand whose far side is at this level."""
        found: MoveCost = self.once((operand, level), lambda: move_cost(self.traffic[operand], level, self.target.hops))
        return found

    def _base(self) -> Ints:
        """L1 bytes with one buffer each."""
        pieces = {s.name: s.per for s in self.call.scratch}
        total: Any = align16(self.accumulator)
        for name, size in self.scratch.items():
            total = total + size * (self.target.cores if pieces[name] == "core" else 1)
        flat = self.full(total)
        for t in self.tile:
            flat = flat + t
        return flat.astype(np.int64)

    @cached_property
    def orders(self) -> list[tuple[str, ...]]:
        """Loop orders, reductions innermost; of two neighbours that every operand treats alike only one sequence.
        What a recurrence runs over has one sequence, its own."""
        kept = self.call.accumulate
        over = kept.over if kept else ()
        outer = [a for a in self.grid.axes if a not in over]
        inner = [a for a in over if a in self.grid.axes]
        kind = {a: tuple(a in r for r in self.reads) for a in self.grid.axes}
        place = {a: i for i, a in enumerate(self.grid.axes)}

        def fixed(a: str, b: str) -> bool:
            return kept is not None and kept.ordered and a in over and b in over

        found = []
        for first in permutations(outer):
            for last in [tuple(inner)] if kept and kept.ordered else permutations(inner):
                order = first + last
                pairs = pairwise(order)
                same_side = all(
                    kind[a] != kind[b] or place[a] < place[b] or (a in over) != (b in over) or fixed(a, b)
                    for a, b in pairs
                )
                if same_side:
                    found.append(order)
        return found

    def loops(self, at: int, order: Sequence[str]) -> tuple[tuple[str, int], ...]:
        """The split axes of a tiling and their tiles, outermost first."""
        position = np.unravel_index(at, self.grid.shape) if self.grid.axes else ()
        tile = {a: int(t[i]) for a, t, i in zip(self.grid.axes, self.grid.tiles, position, strict=True)}
        return tuple((a, tile[a]) for a in order if tile[a] < self.grid.extents[a])

    def shares(self, levels: Sequence[str], way: int, rows: Ints) -> Iterator[Shares]:
        """The bundles of constants at some grid positions."""
        if way == APART or len(self.call.own) < 2:
            return iter(())
        found = tables(self.grid, self.traffic, self.reads, levels, rows)
        return shares(found, way == EXACTLY, self.target.hops["l2_l1"].max_bytes)

    def repeats(self, order: Sequence[str], rows: Ints) -> Ints:
        """How often each tile of each operand (columns) is copied at some grid positions (rows): trips of the loops
        outside its deepest that it does not depend on."""
        active: Any = np.zeros((len(rows), len(self.reads)), bool)
        repeat: Any = np.ones((len(rows), len(self.reads)), np.int64)
        for axis in reversed(order):
            trips = self.trips[axis][rows, None]
            along = np.array([axis in reads for reads in self.reads])
            repeat = np.where(active & ~along, repeat * trips, repeat)
            active |= along & (trips > 1)
        return np.asarray(repeat)
