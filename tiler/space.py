"""One bound call's whole space of tilings as tables; budgets come in only when it is searched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiler.bound import BoundCall
from tiler.bundles import APART, EXACTLY, Shares, bundle, shares, tables
from tiler.choice import Bundle, Choice, Infeasible
from tiler.cost import Floats, accumulator_bytes, align16, compute_cycles, move_cost, scratch_bytes
from tiler.grid import Grid, Ints, make_grid, operand_axes
from tiler.target import Hop, Target
from tiler.traffic import OperandTraffic, operand_traffic
from tiler.trailing import Overlap, Trail, overlaps

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
        self._overlaps: dict[tuple[str, ...], list[Overlap]] = {}

    def full(self, values: Any) -> Ints:
        """Flattened over the grid."""
        return np.asarray(np.broadcast_to(values, self.grid.shape)).ravel()

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

    def stage_bytes(self, levels: Sequence[str]) -> Ints:
        """L2 bytes of the stages of operands whose level is "l3", at each grid position."""
        total = np.zeros(int(np.prod(self.grid.shape)), np.int64)
        for t, level in zip(self.tile, levels, strict=True):
            total = total + (t if level == "l3" else 0)
        return total

    def base_of(self, levels: Sequence[str]) -> Ints:
        """L1 bytes with one buffer each, operands that stay in L1 (level "l1") left out, of what ends the least."""
        buffers = self.buffers(levels)
        return buffers + self._ends_at_least(levels) if "ends" in levels else buffers

    def buffers(self, levels: Sequence[str]) -> Ints:
        """L1 bytes of one buffer for each operand that is copied, of scratch and of partial sums."""
        result = self.base
        for t, level in zip(self.tile, levels, strict=True):
            result = result - t if level in NEAR else result
        return result

    def fitting(self, levels: Sequence[str], l1: int, stage: int | None) -> NDArray[np.bool_]:
        """Where the tiles fit and kernels can walk what stays."""
        fits = self.walkable(levels) & (self.base_of(levels) <= l1)
        return fits if stage is None else fits & (self.stage_bytes(levels) <= stage)

    def walkable(self, levels: Sequence[str]) -> NDArray[np.bool_]:
        """Where kernels can walk every tile of what stays (level "l1") inside its tensor."""
        result: NDArray[np.bool_] = np.ones(len(self.base), bool)
        for t, level in zip(self.traffic, levels, strict=True):
            if level in NEAR:
                result = result & self.full(t.in_place).astype(bool)
        return result

    # ---- what ends here: inputs read for the last time, and a result that may overlap them ----

    def overlaps(self, levels: Sequence[str]) -> list[Overlap]:
        """How what ends here may overlap (level "ends": inputs, and one result)."""
        key = tuple(levels)
        if key not in self._overlaps:
            ends = [i for i, level in enumerate(levels) if level == "ends"]
            results = [i for i in ends if self.call.operands[i].role == "out"]
            inputs = [i for i in ends if i not in results]
            self._overlaps[key] = overlaps(self.grid, inputs, results[0]) if results else []
        return self._overlaps[key]

    def ends_bytes(self, levels: Sequence[str], order: Sequence[str]) -> Ints:
        """L1 bytes of what ends here at each grid position, one pair overlapped as far as the loops allow."""
        saved = [self._saved(o, order) for o in self.overlaps(levels)]
        return self._whole_ends(levels) - np.max(saved, axis=0) if saved else self._whole_ends(levels)

    def trail(self, levels: Sequence[str], order: Sequence[str], at: int) -> Trail | None:
        """How a pair lies in the tiling at grid position `at`: the first that saves most."""
        saved = [int(self._saved(o, order)[at]) for o in self.overlaps(levels)]
        if not saved or max(saved) <= 0:
            return None
        o = self.overlaps(levels)[saved.index(max(saved))]
        split = [a for a in order if self.trips[a][at] > 1]
        in_place = o.in_place and all(a in self.reads[o.result] for a in split)
        if not split or split[0] not in self.reads[o.result]:
            return Trail(o.input, o.result, o.sizes[1], o.sizes[0], in_place)
        tile = np.unravel_index(at, self.grid.shape)[self.grid.axes.index(split[0])]
        return Trail(o.input, o.result, int(o.below[split[0]][tile]), int(o.above[split[0]][tile]), in_place)

    def _whole_ends(self, levels: Sequence[str]) -> Ints:
        operands = [o for o, level in zip(self.call.operands, levels, strict=True) if level == "ends"]
        size = sum(align16(prod(o.extent) * o.itemsize) for o in operands)
        return np.full(len(self.base), size, np.int64)

    def _saved(self, o: Overlap, order: Sequence[str]) -> Ints:
        """Bytes that a pair shares: by its outermost loop, or in place."""
        saved: Ints = np.zeros(len(self.base), np.int64)
        able: NDArray[np.bool_] = np.full(len(self.base), o.in_place)
        for axis in reversed(order):
            walked = axis in self.reads[o.result]
            here = self.full(self.grid.along(axis, o.saved(axis))) if walked else 0
            saved = np.where(self.trips[axis] > 1, here, saved)
            able = able & (walked | (self.trips[axis] <= 1))
        return np.asarray(np.maximum(saved, np.where(able, o.saved_in_place, 0)))

    def _ends_at_least(self, levels: Sequence[str]) -> Ints:
        """Of `ends_bytes` the least over all orders."""
        least = self._whole_ends(levels)
        for axis in self.grid.axes:
            order = (axis, *(a for a in self.grid.axes if a != axis))
            least = np.minimum(least, self.ends_bytes(levels, order))
        return least if self.grid.axes else self.ends_bytes(levels, ())

    def infeasible(self, l1: int, levels: Sequence[str]) -> Infeasible | None:
        """What the least would need, nothing fitting; None where no tiling can be walked at all."""
        able = np.flatnonzero(self.walkable(levels))
        if not len(able):
            return None
        base, staged = self.base_of(levels)[able], self.stage_bytes(levels)[able]
        at = int(np.argmin(base))
        within = staged[base <= l1]
        return Infeasible(
            int(base[at]),
            int(within.min()) if len(within) else int(staged.min()),
            self._loops(int(able[at]), self.grid.axes),
        )

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

    def _loops(self, at: int, order: Sequence[str]) -> tuple[tuple[str, int], ...]:
        position = np.unravel_index(at, self.grid.shape) if self.grid.axes else ()
        tile = {a: int(t[i]) for a, t, i in zip(self.grid.axes, self.grid.tiles, position, strict=True)}
        return tuple((a, tile[a]) for a in order if tile[a] < self.grid.extents[a])

    def shares(self, levels: Sequence[str], way: int, rows: Ints) -> Iterator[Shares]:
        """The bundles of constants at some grid positions."""
        if way == APART or len(self.call.own) < 2:
            return iter(())
        found = tables(self.grid, self.traffic, self.reads, levels, rows)
        return shares(found, way == EXACTLY, self.target.hops["l2_l1"].max_bytes)

    def _bundles(self, order: Sequence[str], at: int, levels: Sequence[str], way: int) -> tuple[Bundle, ...]:
        loops, slots = self._loops(at, order), np.array([t[at] for t in self.tile])
        found = self.shares(levels, way, np.array([at]))
        return tuple(bundle(self.call, s, slots, loops, self.reads[int(s.last[0])]) for s in found)

    def choice(self, order: Sequence[str], at: int, mask: int, cycles: int, levels: Sequence[str], way: int) -> Choice:
        """Everything about one tiling: grid position `at`, loop order, bit i of `mask` for two buffers of operand i,
        or two halves of its stage, the way in which constants are bundled."""
        loops = self._loops(at, order)
        bundles = self._bundles(order, at, levels, way)
        twice = self._twice(mask, bundles)
        double = tuple(t and level != "l3" for t, level in zip(twice, levels, strict=True))
        halved = tuple(t and level == "l3" for t, level in zip(twice, levels, strict=True))
        copied = self._copied(order, at, levels, bundles)
        l1 = int(self.buffers(levels)[at] + sum(int(t[at]) for t, d in zip(self.tile, double, strict=True) if d))
        return Choice(
            loops=loops,
            depth=tuple(self._depth(r, loops) for r in self.reads),
            double=double,
            halved=halved,
            tile_bytes=tuple(
                0 if level in NEAR else int(self.full(t.tile_bytes)[at])
                for t, level in zip(self.traffic, levels, strict=True)
            ),
            bytes=tuple(c.bytes for c in copied),
            transfers=tuple(c.transfers for c in copied),
            scratch={n: int(self.full(s)[at]) for n, s in self.scratch.items()},
            accumulator=int(self.full(self.accumulator)[at]),
            tiles=int(self.tiles[at]),
            l1_bytes=l1,
            stage_bytes=int(self.stage_bytes(levels)[at])
            + sum(int(t[at]) for t, h in zip(self.tile, halved, strict=True) if h),
            compute_cycles=int(np.ceil(self.full(self.compute)[at])),
            moved_cycles=sum(c.cycles for c in copied),
            total_cycles=cycles,
            first=tuple(c.first for c in copied),
            beside=sum(c.first * (c.copies - 1) for c, d in zip(copied, double, strict=True) if d and c.copies),
            trail=self.trail(levels, order, at) if "ends" in levels else None,
            bundles=bundles,
        )

    def _twice(self, mask: int, bundles: Sequence[Bundle]) -> tuple[bool, ...]:
        """Operands that come together have as many buffers."""
        found = [bool(mask >> i & 1) for i in range(len(self.traffic))]
        for b in bundles:
            two = any(found[i] for i in b.operands)
            for i in b.operands:
                found[i] = two
        return tuple(found)

    def _copied(
        self, order: Sequence[str], at: int, levels: Sequence[str], bundles: Sequence[Bundle]
    ) -> tuple[_Copied, ...]:
        """Per operand; of those that come together the first has all."""
        repeats = [int(r[at]) for r in self.repeats(order)]
        found = [self._alone(t, r, v, at) for t, r, v in zip(self.traffic, repeats, levels, strict=True)]
        for b in bundles:
            for i in b.operands:
                found[i] = _NOTHING
            found[b.lead] = _shared(b, repeats[b.lead], self.target.hops["l2_l1"])
        return tuple(found)

    def _alone(self, t: OperandTraffic, repeat: int, level: str, at: int) -> _Copied:
        if level in NEAR:
            return _NOTHING
        cost = move_cost(t, level, self.target.hops)
        issue, waited, moved = (float(self.full(x)[at]) for x in (cost.issue, cost.waited, cost.moved))
        copies = int(self.full(t.copies)[at])
        size = int(self.full(t.bytes)[at]) * repeat
        near = t.dense["l2_l1"] if level == "l3" else t.far["l2_l1"]
        bytes_, transfers = {"l2_l1": size}, {"l2_l1": int(self.full(near.commands)[at]) * repeat}
        if level == "l3":
            bytes_["l3_l2"] = size
            transfers["l3_l2"] = int(self.full(t.far["l3_l2"].commands)[at]) * repeat
        cycles = int(np.ceil((issue + waited + moved) * repeat))
        return _Copied(bytes_, transfers, cycles, moved / max(copies, 1), copies * repeat)

    @staticmethod
    def _depth(reads: frozenset[str], loops: tuple[tuple[str, int], ...]) -> int:
        return max((i + 1 for i, (a, _) in enumerate(loops) if a in reads), default=0)

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


@dataclass(frozen=True, slots=True)
class _Copied:
    """Copying an operand's tiles over the whole call: bytes and commands per hop, all cycles, those that one copy is
    waited for, how many copies."""

    bytes: dict[str, int]
    transfers: dict[str, int]
    cycles: int
    first: float
    copies: int


_NOTHING = _Copied({"l2_l1": 0}, {"l2_l1": 0}, 0, 0.0, 0)


def _shared(b: Bundle, repeat: int, hop: Hop) -> _Copied:
    first = hop.latency + b.moved / b.count / hop.bytes_per_cycle
    cycles = int(np.ceil((b.commands * hop.start + first * b.count) * repeat))
    return _Copied({"l2_l1": b.moved * repeat}, {"l2_l1": b.commands * repeat}, cycles, first, b.count * repeat)
