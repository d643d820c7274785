"""The complete search for one call under one implementation: tile sizes x loop orders x double buffering, under the
L1 budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from tiler.bound import BoundCall
from tiler.cost import Floats, MoveCost, accumulator_bytes, align16, compute_cycles, move_cost, scratch_bytes
from tiler.grid import Grid, Ints, make_grid, operand_axes
from tiler.schedule import BoundOperand
from tiler.target import Target
from tiler.traffic import OperandTraffic, operand_traffic

MAX_SUBSETS = 7  # operands whose double buffering is tried in every combination; above, those of equal axes go together


@dataclass(frozen=True, slots=True)
class Choice:
    """One tiling. `loops` outermost first as (axis, tile); `depth`, `double` and counts per operand, in the call's
    order.

    `bytes` and `transfers` per hop over the whole call. `scratch` is bytes of one piece per buffer.
    """

    loops: tuple[tuple[str, int], ...]
    depth: tuple[int, ...]
    double: tuple[bool, ...]
    tile_bytes: tuple[int, ...]
    bytes: tuple[Mapping[str, int], ...]
    transfers: tuple[Mapping[str, int], ...]
    scratch: Mapping[str, int]
    accumulator: int
    tiles: int
    l1_bytes: int
    stage_bytes: int
    compute_cycles: int
    total_cycles: int

    @property
    def deep_bytes(self) -> int:
        """Bytes between L3 and L2."""
        return sum(b.get("l3_l2", 0) for b in self.bytes)

    @property
    def key(self) -> tuple[int, int, int, int]:
        """What is minimised: cycles, then bytes, then transfers, then L1."""
        moved = sum(sum(b.values()) for b in self.bytes)
        return self.total_cycles, moved, sum(sum(t.values()) for t in self.transfers), self.l1_bytes


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No tiling fits: the least L1 bytes of any (its loops), and the least L2 stage bytes of any that fits L1."""

    l1_bytes: int
    stage_bytes: int
    smallest: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best tiling or why there is none; how many were compared."""

    best: Choice | Infeasible | None
    compared: int
    thinned: bool


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
        self.tile: list[Ints] = [self._full(align16(t.tile_bytes)) for t in self.traffic]
        self.base: Ints = self._base()
        self.trips: dict[str, Ints] = {a: self._full(self.grid.trips(a)) for a in self.grid.axes}

    def _full(self, values: Any) -> Ints:
        """Flattened over the grid."""
        return np.asarray(np.broadcast_to(values, self.grid.shape)).ravel()

    def _base(self) -> Ints:
        """L1 bytes with one buffer each."""
        pieces = {s.name: s.per for s in self.call.scratch}
        total: Any = align16(self.accumulator)
        for name, size in self.scratch.items():
            total = total + size * (self.target.cores if pieces[name] == "core" else 1)
        flat = self._full(total)
        for t in self.tile:
            flat = flat + t
        return flat.astype(np.int64)

    # ---- the search ----

    def search(self, l1: int, levels: Sequence[str], stage: int | None = None, beat: int | None = None) -> Outcome:
        """The best tiling within `l1` bytes; `levels` says per operand where its far side is, `stage` bounds the L2
        stages.

        With `beat`, only tilings of fewer cycles count: `best` is None if there is none.
        """
        staged = self._stage(levels)
        fits = self.base <= l1
        if stage is not None:
            fits &= staged <= stage
        entries = np.flatnonzero(fits)
        orders = self._orders()
        compared = len(entries) * len(orders)
        if not len(entries):
            return Outcome(self._infeasible(l1, staged), compared, self.grid.thinned)
        search = _Search(self, l1, levels, entries, np.inf if beat is None else beat - 1)
        for number, order in enumerate(orders):
            search.try_order(number, order)
        best = None if search.best_key is None else self._choice(search, orders, levels, staged)
        return Outcome(best, compared, self.grid.thinned)

    def _stage(self, levels: Sequence[str]) -> Ints:
        total = np.zeros(int(np.prod(self.grid.shape)), np.int64)
        for t, level in zip(self.tile, levels, strict=True):
            total = total + (t if level == "l3" else 0)
        return total

    def _infeasible(self, l1: int, staged: Ints) -> Infeasible:
        at = int(np.argmin(self.base))
        within = staged[self.base <= l1]
        return Infeasible(
            int(self.base[at]), int(within.min()) if len(within) else int(staged.min()), self._loops(at, self.grid.axes)
        )

    def _orders(self) -> list[tuple[str, ...]]:
        """Loop orders, reductions innermost; of two neighbours that every operand treats alike only one sequence."""
        over = self.call.accumulate.over if self.call.accumulate else ()
        outer = [a for a in self.grid.axes if a not in over]
        inner = [a for a in self.grid.axes if a in over]
        kind = {a: tuple(a in r for r in self.reads) for a in self.grid.axes}
        place = {a: i for i, a in enumerate(self.grid.axes)}
        found = []
        for first in permutations(outer):
            for last in permutations(inner):
                order = first + last
                pairs = pairwise(order)
                same_side = all(
                    kind[a] != kind[b] or place[a] < place[b] or (a in over) != (b in over) for a, b in pairs
                )
                if same_side:
                    found.append(order)
        return found

    def _loops(self, at: int, order: Sequence[str]) -> tuple[tuple[str, int], ...]:
        position = np.unravel_index(at, self.grid.shape) if self.grid.axes else ()
        tile = {a: int(t[i]) for a, t, i in zip(self.grid.axes, self.grid.tiles, position, strict=True)}
        return tuple((a, tile[a]) for a in order if tile[a] < self.grid.extents[a])

    # ---- the chosen one in full ----

    def _choice(self, search: _Search, orders: list[tuple[str, ...]], levels: Sequence[str], staged: Ints) -> Choice:
        number, at, mask = search.best
        loops = self._loops(at, orders[number])
        repeats = [int(r[at]) for r in self.repeats(orders[number])]
        counts = [self._counts(t, r, level, at) for t, r, level in zip(self.traffic, repeats, levels, strict=True)]
        trips = [int(self.trips[a][at]) for a, _ in loops]
        double = tuple(bool(mask >> i & 1) for i in range(len(levels)))
        l1 = int(self.base[at] + sum(int(t[at]) for t, d in zip(self.tile, double, strict=True) if d))
        return Choice(
            loops=loops,
            depth=tuple(self._depth(r, loops) for r in self.reads),
            double=double,
            tile_bytes=tuple(int(self._full(t.tile_bytes)[at]) for t in self.traffic),
            bytes=tuple(b for b, _ in counts),
            transfers=tuple(t for _, t in counts),
            scratch={n: int(self._full(s)[at]) for n, s in self.scratch.items()},
            accumulator=int(self._full(self.accumulator)[at]),
            tiles=int(np.prod(trips, dtype=np.int64)),
            l1_bytes=l1,
            stage_bytes=int(staged[at]),
            compute_cycles=int(np.ceil(self._full(self.compute)[at])),
            total_cycles=int(search.best_cycles),
        )

    @staticmethod
    def _depth(reads: frozenset[str], loops: tuple[tuple[str, int], ...]) -> int:
        return max((i + 1 for i, (a, _) in enumerate(loops) if a in reads), default=0)

    def _counts(self, t: OperandTraffic, repeat: int, level: str, at: int) -> tuple[dict[str, int], dict[str, int]]:
        moved = int(self._full(t.bytes)[at]) * repeat
        near = t.far["l2_l1"] if level == "l2" else t.dense["l2_l1"]
        bytes_ = {"l2_l1": moved}
        transfers = {"l2_l1": int(self._full(near.commands)[at]) * repeat}
        if level == "l3":
            bytes_["l3_l2"] = moved
            transfers["l3_l2"] = int(self._full(t.far["l3_l2"].commands)[at]) * repeat
        return bytes_, transfers

    def repeats(self, order: Sequence[str]) -> list[Any]:
        """Per operand, how often each of its tiles is copied: trips of the loops outside its deepest that it does
        not depend on."""
        result = []
        for reads in self.reads:
            active: Any = np.zeros(1, bool)
            repeat: Any = np.ones(1, np.int64)
            for axis in reversed(order):
                trips = self.trips[axis]
                if axis in reads:
                    active = active | (trips > 1)
                else:
                    repeat = np.where(active, repeat * trips, repeat)
            result.append(np.broadcast_to(repeat, np.broadcast_shapes(repeat.shape, active.shape)))
        return [np.broadcast_to(r, (int(np.prod(self.grid.shape)),)) for r in result]


class _Search:
    """The running best over loop orders: (order, grid position, double-buffer mask) with its cycles and tie-breaks."""

    def __init__(self, space: Space, l1: int, levels: Sequence[str], entries: Ints, limit: float) -> None:
        self.space, self.l1, self.entries = space, l1, entries
        self.cost: list[MoveCost] = [
            move_cost(t, level, space.target.hops) for t, level in zip(space.traffic, levels, strict=True)
        ]
        flat = space._full
        self.issue = [flat(c.issue)[entries] for c in self.cost]
        self.waited = [flat(c.waited)[entries] for c in self.cost]
        self.moved = [flat(c.moved)[entries] for c in self.cost]
        self.copies = [flat(c.copies)[entries] for c in self.cost]
        self.bytes = [
            flat(t.bytes)[entries] * (2 if level == "l3" else 1) for t, level in zip(space.traffic, levels, strict=True)
        ]
        self.commands = [
            flat(self._commands(t, level))[entries] for t, level in zip(space.traffic, levels, strict=True)
        ]
        self.compute = flat(space.compute)[entries]
        self.tile = [t[entries] for t in space.tile]
        self.base = space.base[entries]
        self.best: tuple[int, int, int] = (0, 0, 0)
        self.best_key: tuple[float, ...] | None = None
        self.best_cycles = limit

    @staticmethod
    def _commands(t: OperandTraffic, level: str) -> Any:
        if level == "l2":
            return t.far["l2_l1"].commands
        return t.dense["l2_l1"].commands + t.far["l3_l2"].commands

    def try_order(self, number: int, order: Sequence[str]) -> None:
        repeats = [r[self.entries] for r in self.space.repeats(order)]
        fixed = np.zeros(len(self.entries))
        moved, first, streams = [], [], []
        for i, r in enumerate(repeats):
            fixed = fixed + (self.issue[i] + self.waited[i]) * r
            total, copies = self.moved[i] * r, np.maximum(self.copies[i] * r, 1)
            moved.append(total)
            first.append(total / copies)
            if np.any(copies > 1):
                streams.append(i)
        least = self._cycles(fixed, moved, first, sum(1 << i for i in streams))
        keep = np.flatnonzero(least <= self.best_cycles)
        if not len(keep):
            return
        order_bytes = sum(b * r for b, r in zip(self.bytes, repeats, strict=True))
        order_commands = sum(c * r for c, r in zip(self.commands, repeats, strict=True))
        for mask in self._masks(streams):
            self._try_mask(number, mask, fixed, moved, first, keep, order_bytes, order_commands, repeats)

    def _masks(self, streams: list[int]) -> list[int]:
        """Subsets of double-buffered operands, most first, so that the bound prunes early."""
        units = [[i] for i in streams]
        if len(units) > MAX_SUBSETS:
            kinds: dict[tuple[str, ...], list[int]] = {}
            for i in streams:
                kinds.setdefault(tuple(sorted(self.space.reads[i])), []).append(i)
            units = list(kinds.values())[:MAX_SUBSETS]
        bits = [sum(1 << i for i in u) for u in units]
        masks = [sum(b for j, b in enumerate(bits) if s >> j & 1) for s in range(1 << len(bits))]
        return sorted(masks, key=lambda m: (-m.bit_count(), m))

    def _cycles(
        self, fixed: Floats, moved: list[Floats], first: list[Floats], mask: int, at: Any = slice(None)
    ) -> Floats:
        hidden: Any = 0.0
        waited: Any = fixed[at]
        for i, total in enumerate(moved):
            if mask >> i & 1:
                hidden = hidden + (total[at] - first[i][at])
                waited = waited + first[i][at]
            else:
                waited = waited + total[at]
        return np.asarray(np.ceil(waited + np.maximum(self.compute[at], hidden)))

    def _try_mask(
        self,
        number: int,
        mask: int,
        fixed: Floats,
        moved: list[Floats],
        first: list[Floats],
        keep: Ints,
        bytes_: Any,
        commands: Any,
        repeats: list[Any],
    ) -> None:
        l1 = self.base[keep]
        for i in range(len(moved)):
            if mask >> i & 1:
                l1 = l1 + self.tile[i][keep]
                keep_copies = self.copies[i][keep] * repeats[i][keep] > 1  # one copy needs no second buffer
                l1 = np.where(keep_copies, l1, self.l1 + 1)
        ok = np.flatnonzero(l1 <= self.l1)
        if not len(ok):
            return
        at, l1 = keep[ok], l1[ok]
        cycles = self._cycles(fixed, moved, first, mask, at)
        low = cycles.min()
        if low > self.best_cycles:
            return
        tied = np.flatnonzero(cycles == low)
        at, l1 = at[tied], l1[tied]
        rank = np.lexsort((self.entries[at], l1, commands[at], bytes_[at]))[0]
        key = (float(low), float(bytes_[at][rank]), float(commands[at][rank]), float(l1[rank]))
        if self.best_key is None or key < self.best_key:
            self.best_key, self.best_cycles = key, low
            self.best = (number, int(self.entries[at[rank]]), mask)


def operand_levels(operands: Sequence[BoundOperand], staged: frozenset[str]) -> tuple[str, ...]:
    """Where each operand's far side is: "l3" for the roots in `staged`."""
    return tuple("l3" if o.root in staged else "l2" for o in operands)
