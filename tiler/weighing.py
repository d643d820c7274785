"""What the tilings of a call cost, for many grid positions at once: of one loop order and one way of bundling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tiler.bundles import APART, EXACTLY, TOGETHER, Shares
from tiler.cost import Floats
from tiler.grid import Ints
from tiler.levelled import levelled
from tiler.objective import Objective
from tiler.space import NEAR, Space
from tiler.streaming import streaming
from tiler.target import Hop
from tiler.traffic import OperandTraffic

MAX_SUBSETS = 7  # operands whose double buffering is tried in every combination; above, those of equal axes go together


class Search:
    """Weighs the tilings at some grid positions, order by order."""

    def __init__(
        self, space: Space, l1: int, levels: Sequence[str], stage: int | None, entries: Ints, objective: Objective
    ) -> None:
        self.space, self.l1, self.levels, self.stage = space, l1, levels, stage
        self.entries, self.objective = entries, objective
        self.moving = [i for i, level in enumerate(levels) if level not in NEAR]
        self.tables = levelled(space, levels)
        pairs = [(space.traffic[i], levels[i]) for i in self.moving]
        apart = self._apart(pairs)
        way = TOGETHER if objective.cycles else EXACTLY
        found = list(space.shares(levels, way, entries))
        self.ways = {way: _together(apart, found, self.moving, space.target.hops["l2_l1"])} if found else {}
        self.ways[APART] = apart
        self.far = np.array([level == "l3" for _, level in pairs], float)
        self.half = -(-self._flat([t.tile_bytes for t, _ in pairs]) // 16) * 16 * self.far
        self.staged = self.tables.stage_bytes[entries]
        self.compute = space.full(space.compute)[entries]
        self.tiles = space.tiles[entries]
        self.base = self.tables.base[entries]
        self.buffers = self.tables.buffers[entries]
        self.least = {way: self._least(moving) for way, moving in self.ways.items()}

    def _least(self, moving: Moving) -> Floats:
        """An objective that nothing gets below under any order: each tile copied once, all but the first hidden."""
        first = moving.moved / np.maximum(moving.copies, 1)
        cycles = whole_cycles(moving.fixed.sum(-1) + first.sum(-1) + self.compute)
        o = self.objective
        rest = o.near * moving.near.sum(-1) + o.deep * moving.deep.sum(-1) + o.tiles * self.tiles
        return np.asarray((o.cycles * cycles + rest) * (1 - 1e-12))

    def _apart(self, pairs: list[tuple[OperandTraffic, str]]) -> Moving:
        cost = [self.space.move_cost(i, self.levels[i]) for i in self.moving]
        near = np.array([level != "l3" for _, level in pairs], float)
        tile = self._flat([t.tile_bytes for t, _ in pairs])
        return Moving(
            fixed=self._flat([c.issue + c.waited for c in cost]),
            moved=self._flat([c.moved for c in cost]),
            copies=self._flat([c.copies for c in cost]),
            near=self._flat([t.bytes for t, _ in pairs]),
            deep=self._flat([t.bytes if level == "l3" else np.zeros((), np.int64) for t, level in pairs]),
            commands=self._flat([_commands(t, level) for t, level in pairs]),
            tile=-(-tile // 16) * 16 * near,
        )

    def _flat(self, tables: list[Any]) -> Any:
        """(entries, moving operands)."""
        if not tables:
            return np.zeros((len(self.entries), 0))
        return np.stack([self.space.full(t)[self.entries] for t in tables], axis=-1)

    def weighed(self, order: tuple[str, ...], way: int, rows: Ints) -> Weighed:
        """The figures of one loop order and one way of bundling at some of the entries."""
        entries = self.entries[rows]
        repeat = self.space.repeats(order, entries)[:, self.moving]
        ending = self.tables.ends_bytes(order, entries) if "ends" in self.levels else 0
        return Weighed(self, self.ways[way].take(rows), repeat, self.buffers[rows] + ending, rows)

    def fits(self, order: tuple[str, ...], weighed: Weighed, rows: Ints) -> Any:
        """Where one buffer each fits, and what streams can."""
        within = weighed.base <= self.l1
        if "stream" not in self.levels:
            return within
        return within & streaming(self.space, order, self.levels, self.stage)[self.entries[rows]]

    def masks(self, streams: list[int]) -> list[int]:
        """Subsets of operands with two buffers (of those in L3, two halves of a stage), most first."""
        units = [[self.moving[i]] for i in streams]
        if len(units) > MAX_SUBSETS:
            kinds: dict[tuple[str, ...], list[int]] = {}
            for i in (self.moving[i] for i in streams):
                kinds.setdefault(tuple(sorted(self.space.reads[i])), []).append(i)
            units = list(kinds.values())[:MAX_SUBSETS]
        bits = [sum(1 << i for i in u) for u in units]
        masks = [sum(b for j, b in enumerate(bits) if s >> j & 1) for s in range(1 << len(bits))]
        return sorted(masks, key=lambda m: (-m.bit_count(), m))


@dataclass(frozen=True, slots=True)
class Moving:
    """Copying every tile once, rows being grid positions, columns the moving operands: cycles of issuing and of what
    cannot be hidden, of what can be; copies, bytes, commands, and the bytes of a buffer."""

    fixed: Any
    moved: Any
    copies: Any
    near: Any
    deep: Any
    commands: Any
    tile: Any

    def take(self, rows: Ints) -> Moving:
        """Some rows only."""
        return Moving(*(getattr(self, f.name)[rows] for f in fields(self)))


def _together(apart: Moving, found: Sequence[Shares], moving: Sequence[int], hop: Hop) -> Moving:
    """With bundles: each one's figures in the column of its first operand, zeros in those of its others."""
    values = {f.name: getattr(apart, f.name).copy() for f in fields(Moving)}
    column = {operand: i for i, operand in enumerate(moving)}
    for s in found:
        at, first = np.nonzero(s.members), [column[i] for i in s.first.tolist()]
        rows, columns = s.rows[at[0]], [column[i] for i in at[1].tolist()]
        figures = {
            "fixed": s.commands * hop.start,
            "moved": s.count * hop.latency + s.bytes / hop.bytes_per_cycle,
            "copies": s.count,
            "near": s.bytes,
            "deep": 0,
            "commands": s.commands,
            "tile": s.size,
        }
        for name, figure in figures.items():
            values[name][rows, columns] = 0
            values[name][s.rows, first] = figure
    return Moving(**values)


class Weighed:
    """Figures of one loop order, rows being grid positions, columns the moving operands."""

    def __init__(self, search: Search, moving: Moving, repeat: Any, base: Ints, rows: Ints) -> None:
        self.objective = search.objective
        self.copies = moving.copies * repeat
        self.moved = moving.moved * repeat
        self.first = self.moved / np.maximum(self.copies, 1)
        self.fixed = (moving.fixed * repeat).sum(-1)
        self.near, self.deep = (moving.near * repeat).sum(-1), (moving.deep * repeat).sum(-1)
        self.transfers = (moving.commands * repeat).sum(-1)
        self.compute, self.tiles, self.base, self.tile = search.compute[rows], search.tiles[rows], base, moving.tile
        self.far, self.half, self.staged, self.stage = search.far, search.half[rows], search.staged[rows], search.stage

    def take(self, rows: Ints) -> Weighed:
        """Some rows only."""
        part = object.__new__(Weighed)
        part.objective, part.far, part.stage = self.objective, self.far, self.stage
        for name in (
            "copies",
            "moved",
            "first",
            "fixed",
            "near",
            "deep",
            "transfers",
            "compute",
            "tiles",
            "base",
            "tile",
            "half",
            "staged",
        ):
            setattr(part, name, getattr(self, name)[rows])
        return part

    def streams(self) -> list[int]:
        """Operands of which some tiling copies more than one tile."""
        return [int(i) for i in np.flatnonzero((self.copies > 1).any(axis=0))]

    def least(self) -> Floats:
        """The objective with every operand double-buffered."""
        many = self.copies > 1
        hidden = np.where(many, self.moved - self.first, 0)
        beside = np.maximum(hidden @ (1 - self.far), hidden @ self.far)
        waited = self.fixed + np.where(many, self.first, self.moved).sum(-1)
        return np.asarray(self._primary(whole_cycles(waited + np.maximum(self.compute, beside))))

    def _primary(self, cycles: Any) -> Any:
        o = self.objective
        rest = o.near * self.near + o.deep * self.deep + o.tiles * self.tiles
        return o.cycles * cycles + (rest[:, None] if cycles.ndim == 2 else rest)

    def points(self, bits: Floats, l1: int) -> tuple[Ints, Floats, Ints, Ints] | None:
        """(L1, keys, row, column of `bits`) of what fits."""
        size = self.base[:, None] + np.rint(self.tile @ bits).astype(np.int64)
        wasted = (self.copies <= 1).astype(float) @ bits > 0  # one copy needs no second buffer
        if self.objective.double:
            wasted |= ((self.copies > 1) * (1 - self.far)) @ (1 - bits) > 0
        if self.stage is not None:
            wasted |= self.staged[:, None] + self.half @ bits > self.stage
        row, column = np.nonzero(~wasted & (size <= l1))
        if not len(row):
            return None
        hidden = self.moved - self.first
        near, deep = (hidden * (1 - self.far)) @ bits, (hidden * self.far) @ bits
        waited = self.fixed[:, None] + self.moved.sum(-1)[:, None] - near - deep
        cycles = whole_cycles(waited + np.maximum(self.compute[:, None], np.maximum(near, deep)))
        primary = self._primary(cycles)[row, column]
        moved = (self.near + self.deep)[row]
        keys = np.stack([primary, cycles[row, column], moved, self.transfers[row]], axis=-1)
        return size[row, column], keys, row, column


def _commands(t: OperandTraffic, level: str) -> Any:
    if level != "l3":
        return t.far["l2_l1"].commands
    return t.dense["l2_l1"].commands + t.far["l3_l2"].commands


def whole_cycles(cycles: Any) -> Any:
    """Rounded up, what sums of fractions leave aside."""
    return np.ceil(np.round(cycles, 6))
