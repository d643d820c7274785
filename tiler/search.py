"""The complete search for one call under one implementation: tile sizes x loop orders x double buffering, in L1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tiler.choice import Outcome
from tiler.cost import Floats, MoveCost, move_cost
from tiler.grid import Ints
from tiler.space import Space
from tiler.traffic import OperandTraffic

MAX_SUBSETS = 7  # operands whose double buffering is tried in every combination; above, those of equal axes go together


def search(space: Space, l1: int, levels: Sequence[str], stage: int | None = None, beat: int | None = None) -> Outcome:
    """The best tiling within `l1` bytes. `levels` says per operand where its far side is ("l2", "l3"), `stage` bounds
    the L2 bytes of the stages of those in L3.

    With `beat`, only tilings of fewer cycles count: `best` is None if there is none.
    """
    staged = space.stage_bytes(levels)
    fits = space.base <= l1
    if stage is not None:
        fits &= staged <= stage
    entries = np.flatnonzero(fits)
    orders = space.orders()
    compared = len(entries) * len(orders)
    if not len(entries):
        return Outcome(space.infeasible(l1, staged), compared, space.grid.thinned)
    running = _Search(space, l1, levels, entries, np.inf if beat is None else beat - 1)
    for number, order in enumerate(orders):
        running.try_order(number, order)
    if running.best_key is None:
        return Outcome(None, compared, space.grid.thinned)
    number, at, mask = running.best
    best = space.choice(orders[number], at, mask, int(running.best_cycles), levels)
    return Outcome(best, compared, space.grid.thinned)


class _Search:
    """The running best over loop orders: (order, grid position, double-buffer mask) with its cycles and tie-breaks."""

    def __init__(self, space: Space, l1: int, levels: Sequence[str], entries: Ints, limit: float) -> None:
        self.space, self.l1, self.entries = space, l1, entries
        self.cost: list[MoveCost] = [
            move_cost(t, level, space.target.hops) for t, level in zip(space.traffic, levels, strict=True)
        ]
        flat = space.full
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
