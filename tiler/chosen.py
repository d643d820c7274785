"""One tiling of a call in full: what a search found as numbers, as a `Choice`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiler.bundles import WAYS, bundle
from tiler.choice import Bundle, Choice
from tiler.levelled import levelled
from tiler.schedule import L2Tile
from tiler.space import NEAR, Space
from tiler.target import Hop


@dataclass(frozen=True, slots=True)
class TilingId:
    """A tiling by numbers: the loop order and the way in which constants are bundled (`order * WAYS + way`), the grid
    position, and bit i of `mask` for two buffers of operand i, or two halves of its stage."""

    number: int
    at: int
    mask: int


def chosen(space: Space, tiling: TilingId, cycles: int, levels: tuple[str, ...]) -> Choice:
    """Everything about one tiling that takes so many `cycles`."""
    found: Choice = space.once((tiling, cycles, levels), lambda: _Chosen(space, tiling, levels).choice(cycles))
    return found


class _Chosen:
    def __init__(self, space: Space, tiling: TilingId, levels: tuple[str, ...]) -> None:
        self.space, self.at, self.mask, self.levels = space, tiling.at, tiling.mask, levels
        order, self.way = divmod(tiling.number, WAYS)
        self.order = space.orders[order]

    def choice(self, cycles: int) -> Choice:
        space, at, levels = self.space, self.at, self.levels
        tables, order = levelled(space, levels), self.order
        loops = space.loops(at, order)
        bundles = self._bundles(loops)
        twice = self._twice(bundles)
        double = tuple(t and level != "l3" for t, level in zip(twice, levels, strict=True))
        halved = tuple(t and level == "l3" for t, level in zip(twice, levels, strict=True))
        copied = self._copied(bundles)
        l1 = int(tables.buffers[at] + sum(int(t[at]) for t, d in zip(space.tile, double, strict=True) if d))
        depth = tuple(_depth(r, loops) for r in space.reads)
        sizes = [
            0 if v in NEAR else int(space.value(t.tile_bytes, at)) for t, v in zip(space.traffic, levels, strict=True)
        ]
        return Choice(
            loops=loops,
            depth=depth,
            double=double,
            halved=halved,
            tile_bytes=tuple(sizes),
            bytes=tuple(c.bytes for c in copied),
            transfers=tuple(c.transfers for c in copied),
            scratch={n: int(space.value(s, at)) for n, s in space.scratch.items()},
            accumulator=int(space.value(space.accumulator, at)),
            tiles=int(space.tiles[at]),
            l1_bytes=l1,
            stage_bytes=int(tables.stage_bytes[at])
            + sum(int(t[at]) for t, h in zip(space.tile, halved, strict=True) if h),
            compute_cycles=int(np.ceil(space.value(space.compute, at))),
            moved_cycles=sum(c.cycles for c in copied),
            total_cycles=cycles,
            first=tuple(c.first for c in copied),
            beside=sum(c.first * (c.copies - 1) for c, d in zip(copied, double, strict=True) if d and c.copies),
            trail=tables.trail(order, at) if "ends" in levels else None,
            bundles=bundles,
            l2_tiles=tuple(
                L2Tile(d, 1, n) if v == "l3" else None for d, n, v in zip(depth, sizes, levels, strict=True)
            ),
        )

    def _bundles(self, loops: tuple[tuple[str, int], ...]) -> tuple[Bundle, ...]:
        slots = np.array([t[self.at] for t in self.space.tile])
        found = self.space.shares(self.levels, self.way, np.array([self.at]))
        return tuple(bundle(self.space.call, s, slots, loops, self.space.reads[int(s.last[0])]) for s in found)

    def _twice(self, bundles: Sequence[Bundle]) -> tuple[bool, ...]:
        """Operands that come together have as many buffers."""
        found = [bool(self.mask >> i & 1) for i in range(len(self.levels))]
        for b in bundles:
            two = any(found[i] for i in b.operands)
            for i in b.operands:
                found[i] = two
        return tuple(found)

    def _copied(self, bundles: Sequence[Bundle]) -> tuple[_Copied, ...]:
        """Per operand; of those that come together the first has all."""
        repeats = [int(r) for r in self.space.repeats(self.order, np.array([self.at]))[0]]
        found = [self._alone(i, r) for i, r in enumerate(repeats)]
        for b in bundles:
            for i in b.operands:
                found[i] = _NOTHING
            found[b.lead] = _shared(b, repeats[b.lead], self.space.target.hops["l2_l1"])
        return tuple(found)

    def _alone(self, operand: int, repeat: int) -> _Copied:
        level, t, at = self.levels[operand], self.space.traffic[operand], self.at
        if level in NEAR:
            return _NOTHING
        value, cost = self.space.value, self.space.move_cost(operand, level)
        issue, waited, moved = (float(value(x, at)) for x in (cost.issue, cost.waited, cost.moved))
        copies, size = int(value(t.copies, at)), int(value(t.bytes, at)) * repeat
        near = t.dense["l2_l1"] if level == "l3" else t.far["l2_l1"]
        bytes_, transfers = {"l2_l1": size}, {"l2_l1": int(value(near.commands, at)) * repeat}
        if level == "l3":
            bytes_["l3_l2"] = size
            transfers["l3_l2"] = int(value(t.far["l3_l2"].commands, at)) * repeat
        cycles = int(np.ceil((issue + waited + moved) * repeat))
        return _Copied(bytes_, transfers, cycles, moved / max(copies, 1), copies * repeat)


def _depth(reads: frozenset[str], loops: tuple[tuple[str, int], ...]) -> int:
    return max((i + 1 for i, (a, _) in enumerate(loops) if a in reads), default=0)


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
