"""The tilings of a call with its operands at some levels: what fits, and how what ends here overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiler.choice import Infeasible
from tiler.cost import align16
from tiler.grid import Ints
from tiler.space import NEAR, Space
from tiler.trailing import Overlap, Trail, overlaps


def levelled(space: Space, levels: Sequence[str]) -> Levelled:
    """A space with its operands at some levels."""
    found: Levelled = space.once(tuple(levels), lambda: Levelled(space, tuple(levels)))
    return found


@dataclass(frozen=True)
class Levelled:
    """Tables over the grid positions of `space`, its operands at `levels` ("l1", "ends", "l2", "l3", "stream")."""

    space: Space
    levels: tuple[str, ...]

    @cached_property
    def stage_bytes(self) -> Ints:
        """L2 bytes of the stages of operands whose level is "l3"."""
        total = np.zeros(len(self.space.base), np.int64)
        for t, level in zip(self.space.tile, self.levels, strict=True):
            total = total + (t if level == "l3" else 0)
        return total

    @cached_property
    def base(self) -> Ints:
        """L1 bytes with one buffer each, operands that stay in L1 (level "l1") left out, of what ends the least."""
        return self.buffers + self._ends_at_least() if "ends" in self.levels else self.buffers

    @cached_property
    def buffers(self) -> Ints:
        """L1 bytes of one buffer for each operand that is copied, of scratch and of partial sums."""
        result = self.space.base
        for t, level in zip(self.space.tile, self.levels, strict=True):
            result = result - t if level in NEAR else result
        return result

    def fitting(self, l1: int, stage: int | None) -> NDArray[np.bool_]:
        """Where the tiles fit and kernels can walk what stays."""
        fits = self.walkable & (self.base <= l1)
        return fits if stage is None else fits & (self.stage_bytes <= stage)

    @cached_property
    def walkable(self) -> NDArray[np.bool_]:
        """Where kernels can walk every tile of what stays (level "l1") inside its tensor."""
        result: NDArray[np.bool_] = np.ones(len(self.space.base), bool)
        for t, level in zip(self.space.traffic, self.levels, strict=True):
            if level in NEAR:
                result = result & self.space.full(t.in_place).astype(bool)
        return result

    def infeasible(self, l1: int) -> Infeasible | None:
        """What the least would need, nothing fitting; None where no tiling can be walked at all."""
        able = np.flatnonzero(self.walkable)
        if not len(able):
            return None
        base, staged = self.base[able], self.stage_bytes[able]
        at = int(np.argmin(base))
        within = staged[base <= l1]
        return Infeasible(
            int(base[at]),
            int(within.min()) if len(within) else int(staged.min()),
            self.space.loops(int(able[at]), self.space.grid.axes),
        )

    # ---- what ends here: inputs read for the last time, and a result that may overlap them ----

    @cached_property
    def overlaps(self) -> list[Overlap]:
        """How what ends here may overlap (level "ends": inputs, and one result)."""
        ends = [i for i, level in enumerate(self.levels) if level == "ends"]
        results = [i for i in ends if self.space.call.operands[i].role == "out"]
        inputs = [i for i in ends if i not in results]
        return overlaps(self.space.grid, inputs, results[0]) if results else []

    def ends_bytes(self, order: Sequence[str], rows: Ints) -> Ints:
        """L1 bytes of what ends here at some grid positions, one pair overlapped as far as the loops allow."""
        saved = [self._saved(o, order, rows) for o in self.overlaps]
        whole: Ints = np.full(len(rows), self._whole_ends, np.int64)
        return whole - np.max(saved, axis=0) if saved else whole

    def trail(self, order: Sequence[str], at: int) -> Trail | None:
        """How a pair lies in the tiling at grid position `at`: the first that saves most."""
        saved = [int(self._saved(o, order, np.array([at]))[0]) for o in self.overlaps]
        if not saved or max(saved) <= 0:
            return None
        space, o = self.space, self.overlaps[saved.index(max(saved))]
        split = [a for a in order if space.trips[a][at] > 1]
        in_place = o.in_place and all(a in space.reads[o.result] for a in split)
        if not split or split[0] not in space.reads[o.result]:
            return Trail(o.input, o.result, o.sizes[1], o.sizes[0], in_place)
        tile = np.unravel_index(at, space.grid.shape)[space.grid.axes.index(split[0])]
        return Trail(o.input, o.result, int(o.below[split[0]][tile]), int(o.above[split[0]][tile]), in_place)

    @cached_property
    def _whole_ends(self) -> int:
        operands = [o for o, level in zip(self.space.call.operands, self.levels, strict=True) if level == "ends"]
        return sum(align16(prod(o.extent) * o.itemsize) for o in operands)

    def _saved(self, o: Overlap, order: Sequence[str], rows: Ints) -> Ints:
        """Bytes that a pair shares: by its outermost loop, or in place."""
        saved: Ints = np.zeros(len(rows), np.int64)
        able: NDArray[np.bool_] = np.full(len(rows), o.in_place)
        for axis in reversed(order):
            walked, split = axis in self.space.reads[o.result], self.space.trips[axis][rows] > 1
            saved = np.where(split, self._shared(o, axis)[rows] if walked else 0, saved)
            able = able if walked else able & ~split
        return np.asarray(np.maximum(saved, np.where(able, o.saved_in_place, 0)))

    def _shared(self, o: Overlap, axis: str) -> Ints:
        """Bytes that a pair shares at most with the loop of an axis outermost."""
        found: Ints = self.space.once(
            (o.input, o.result, axis), lambda: self.space.full(self.space.grid.along(axis, o.saved(axis)))
        )
        return found

    def _ends_at_least(self) -> Any:
        """Of `ends_bytes` the least over all orders."""
        axes, rows = self.space.grid.axes, np.arange(len(self.space.base))
        orders = [(axis, *(a for a in axes if a != axis)) for axis in axes] or [()]
        return np.min([np.full(len(rows), self._whole_ends), *(self.ends_bytes(o, rows) for o in orders)], axis=0)
