"""Plans of a rolled group: how often each ring's kept rows are moved down, against the L1 that its rows take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

from tiler.cost import align16
from tiler.rolling import SLIDE, RingPlan, RollSteps
from tiler.row_calls import RollCall


@dataclass(frozen=True)
class RollPlan:
    """A rolled group: `every[i]` says before which steps the ring of call i's result is moved down; without it, what
    the group takes where nothing is."""

    steps: RollSteps
    every: tuple[int, ...]

    @property
    def calls(self) -> tuple[RollCall, ...]:
        return self.steps.calls

    @cached_property
    def _rings(self) -> tuple[tuple[RingPlan, int], ...]:
        return tuple(self.steps.ring(i, n) for i, n in enumerate(self.every))

    @property
    def rings(self) -> tuple[RingPlan, ...]:
        return tuple(r for r, _ in self._rings)

    @cached_property
    def l1_bytes(self) -> int:
        """Of everything that the group has there."""
        rings: int = sum(align16(r.size) for r in self.rings)
        return self.steps.fixed_bytes + rings

    def compute(self, number: int) -> int:
        """Cycles of computing, kept rows moved down included."""
        total = self.steps.computed[number]
        if number < len(self.every):
            total += self._rings[number][1] / SLIDE
        return ceil(total)

    def exposed(self, number: int) -> int:
        """Cycles of copies that nothing hides."""
        return ceil(self.steps.times.exposed[number])

    @cached_property
    def key(self) -> tuple[int, int, int, int]:
        """(cycles, bytes, transfers, tiles) of the group."""
        numbers = range(len(self.calls))
        cycles = sum(self.compute(i) + self.exposed(i) for i in numbers)
        return cycles, *self.steps.moved, sum(self.steps.tiles(i) for i in numbers)


_Rings = tuple[int, int, tuple[int, ...]]  # bytes of some rings, bytes moved down in them, before which steps


def roll_plans(steps: RollSteps, l1: int) -> list[RollPlan]:
    """The plans of one step size within `l1` bytes; none beats another in both L1 and rows moved down."""
    room = l1 - steps.fixed_bytes
    kept: list[_Rings] = [(0, 0, ())] if room >= 0 else []
    for i in range(len(steps.calls) - 1):
        options = _options(steps, i)
        kept = _unbeaten([(a + b, m + n, e + x) for a, m, e in kept for b, n, x in options if a + b <= room])
    return [RollPlan(steps, e) for _, _, e in kept]


def _options(steps: RollSteps, number: int) -> list[_Rings]:
    """For the ring of one call."""
    result: list[_Rings] = []
    every = 1
    while True:
        ring, moved = steps.ring(number, every)
        result.append((align16(ring.size), moved, (every,)))
        if not moved:
            return _unbeaten(result)
        every = min(2 * every, steps.count)


def _unbeaten(points: list[_Rings]) -> list[_Rings]:
    """Those of which no other has fewer of both."""
    result: list[_Rings] = []
    for p in sorted(points, key=lambda p: p[:2]):
        if not result or p[1] < result[-1][1]:
            result.append(p)
    return result
