"""Rolled groups: consecutive calls that go down an image together, a few rows at a time.

Each step makes some rows of the last call's result; walking backwards, each call before it makes the rows that are
newly needed, from a ring in L1 in which the rows still needed are moved down now and then. No row is made twice.
Weights are copied in once and stay for the group; what the group reads or writes outside comes and goes by tiles of
rows, or stays in L1 whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

import numpy as np

from fusion_engine.expr import evaluate
from tiler.cost import align16
from tiler.grid import Ints
from tiler.roll_time import Moves, Times, times
from tiler.row_calls import RollCall
from tiler.schedule import BoundOperand
from tiler.target import Target
from tiler.traffic import box_commands, hop_limits

SLIDE = 4  # bytes per cycle that core 0 moves kept rows down


@dataclass(frozen=True, slots=True)
class RingPlan:
    """An inner tensor: `rows` of `row_bytes` at most are in L1 at once, moved down before every `every`-th step."""

    root: str
    rows: int
    row_bytes: int
    height: int
    every: int


@dataclass(frozen=True)
class RollSteps:
    """A group of calls, `step` rows of the last result at a time, its outer tensors in L2 or, those of `stays`, in L1.
    Figures per call in their order, arrays by step."""

    calls: tuple[RollCall, ...]
    step: int
    stays: frozenset[str]
    target: Target

    # ---- rows ----

    @cached_property
    def count(self) -> int:
        return -(-self.calls[-1].height // self.step)

    @cached_property
    def ends(self) -> tuple[Ints, ...]:
        """Per call, how many rows of its result are done behind each step."""
        last = len(self.calls) - 1
        ends = {last: np.minimum(self.step * np.arange(1, self.count + 1), self.calls[-1].height)}
        for i in reversed(range(last)):
            needs = [c.needed(o, ends[j]) for j, c, o in self.readers[i]]
            ends[i] = np.max(needs, axis=0)
        for i, c in enumerate(self.calls):
            ends[i][-1] = c.height
        return tuple(ends[i] for i in range(last + 1))

    @cached_property
    def starts(self) -> tuple[Ints, ...]:
        """Per call, how many rows are done before each step."""
        return tuple(np.concatenate([[0], e[:-1]]) for e in self.ends)

    @cached_property
    def readers(self) -> list[list[tuple[int, RollCall, BoundOperand]]]:
        operands = [(j, c, o) for j, c in enumerate(self.calls) for o in c.bound.operands if o.role == "in"]
        return [[x for x in operands if x[2].root == c.out.root] for c in self.calls]

    @cached_property
    def kept(self) -> tuple[Ints, ...]:
        """Per inner tensor (of each call but the last), the first row still read in each step or behind it."""
        result = []
        for i in range(len(self.calls) - 1):
            begins = [c.begins(o, self.starts[j]) for j, c, o in self.readers[i]]
            result.append(np.min([self.starts[i], *begins], axis=0))
        return tuple(result)

    def tiles(self, number: int) -> int:
        """Steps in which the call has rows to make."""
        return int(np.count_nonzero(self.ends[number] > self.starts[number]))

    # ---- memory ----

    @cached_property
    def inner(self) -> frozenset[str]:
        return frozenset(c.out.root for c in self.calls[:-1])

    def travels(self, o: BoundOperand) -> bool:
        """Whether tiles of rows of it are copied."""
        return o.role != "const" and o.root not in self.inner and o.root not in self.stays

    @cached_property
    def boxes(self) -> tuple[tuple[list[Ints] | None, ...], ...]:
        """Per call and operand, the tiles of those that travel."""
        return tuple(
            tuple(
                c.boxes(o, self.starts[i], self.ends[i]) if self.travels(o) else None for o in c.bound.operands
            )
            for i, c in enumerate(self.calls)
        )

    def tile_bytes(self, number: int, at: int) -> int:
        """The buffer of an operand that is a constant or travels; 0 for what has none."""
        o, box = self.calls[number].bound.operands[at], self.boxes[number][at]
        if box is not None:
            return int(np.max(np.prod(box, axis=0))) * o.itemsize
        return prod(o.extent) * o.itemsize if o.role == "const" else 0

    def scratch(self, number: int) -> dict[str, int]:
        """Bytes of one piece of each scratch buffer."""
        call = self.calls[number]
        if not call.bound.scratch:
            return {}
        lengths = call.environment(int((self.ends[number] - self.starts[number]).max()), self.target.cores)
        return {s.name: align16(evaluate(s.bytes, lengths)) for s in call.bound.scratch}

    def scratch_bytes(self, number: int) -> int:
        """All scratch of a call."""
        per = {s.name: s.per for s in self.calls[number].bound.scratch}
        sizes = self.scratch(number)
        return sum(size * (self.target.cores if per[name] == "core" else 1) for name, size in sizes.items())

    @cached_property
    def fixed_bytes(self) -> int:
        """L1 beside the rings."""
        tiles: int = sum(
            align16(self.tile_bytes(i, at)) for i, c in enumerate(self.calls) for at in range(len(c.bound.operands))
        )
        return tiles + max(self.scratch_bytes(i) for i in range(len(self.calls)))

    @cached_property
    def least_bytes(self) -> int:
        """L1 with the lowest rings."""
        rings = [self.ring(i, 1) for i in range(len(self.calls) - 1)]
        return self.fixed_bytes + sum(align16(r.rows * r.row_bytes) for r in rings)

    def ring(self, number: int, every: int) -> RingPlan:
        """The ring of a call's result if it is moved down before every `every`-th step."""
        rows = self.calls[number].rows[self.calls[number].out.name]
        most = int((self.ends[number] - self._bases(number, every)).max())
        return RingPlan(self.calls[number].out.root, most, rows.bytes, rows.count, every)

    def _bases(self, number: int, every: int) -> Ints:
        """The first row in the ring at each step."""
        steps = np.arange(self.count)
        bases = self.kept[number][steps // every * every]
        return np.where(steps < every, 0, bases)

    def moved_down(self, number: int, every: int) -> int:
        """Bytes of rows that moving its ring down moves, over all steps."""
        bases = self._bases(number, every)
        kept = (self.starts[number] - bases)[1:][np.diff(bases) > 0]
        return int(kept.sum()) * self.calls[number].rows[self.calls[number].out.name].bytes

    # ---- figures ----

    def moves(self, number: int, at: int) -> Moves | None:
        """What copying an operand's tiles takes, by step; a constant's is of one step. None for what is in L1."""
        o, box = self.calls[number].bound.operands[at], self.boxes[number][at]
        if box is None and o.role != "const":
            return None
        hop = self.target.hops["l2_l1"]
        extents = [np.array([e]) for e in o.extent] if box is None else box
        pitch = [s * o.itemsize for s in o.far_strides]
        commands, lines = box_commands(extents, pitch, o.itemsize, hop_limits(hop))
        size = np.prod(extents, axis=0) * o.itemsize
        cycles = np.where(size > 0, hop.latency + lines * hop.per_run + size / hop.bytes_per_cycle, 0)
        return Moves(o.role, size, commands, commands * hop.start, cycles)

    @cached_property
    def all_moves(self) -> tuple[tuple[Moves | None, ...], ...]:
        return tuple(tuple(self.moves(i, at) for at in range(len(c.bound.operands))) for i, c in enumerate(self.calls))

    @cached_property
    def computing(self) -> tuple[list[float], ...]:
        """Per call and step, the cycles of its start."""
        rows = [(e - s).tolist() for e, s in zip(self.ends, self.starts, strict=True)]
        return tuple(
            [c.cycles(n, self.target) if n else 0.0 for n in made] for c, made in zip(self.calls, rows, strict=True)
        )

    @cached_property
    def times(self) -> Times:
        return times(self.all_moves, self.computing)


@dataclass(frozen=True)
class RollPlan:
    """A rolled group: `every[i]` says before which steps the ring of call i's result is moved down."""

    steps: RollSteps
    every: tuple[int, ...]

    @property
    def calls(self) -> tuple[RollCall, ...]:
        return self.steps.calls

    @cached_property
    def rings(self) -> tuple[RingPlan, ...]:
        return tuple(self.steps.ring(i, n) for i, n in enumerate(self.every))

    @cached_property
    def l1_bytes(self) -> int:
        """Of everything that the group has there."""
        return self.steps.fixed_bytes + sum(align16(r.rows * r.row_bytes) for r in self.rings)

    def compute(self, number: int) -> int:
        """Cycles of computing, kept rows moved down included."""
        total = sum(self.steps.computing[number])
        if number < len(self.every):
            total += self.steps.moved_down(number, self.every[number]) / SLIDE
        return ceil(total)

    def exposed(self, number: int) -> int:
        """Cycles of copies that nothing hides."""
        return ceil(self.steps.times.exposed[number])

    def traffic(self, number: int, at: int) -> tuple[int, int]:
        """(bytes, commands) between L2 and L1 of an operand."""
        moves = self.steps.all_moves[number][at]
        return (0, 0) if moves is None else (int(moves.bytes.sum()), int(moves.commands.sum()))

    @cached_property
    def key(self) -> tuple[int, int, int, int]:
        """(cycles, bytes, transfers, tiles) of the group."""
        numbers = range(len(self.calls))
        moved = [self.traffic(i, at) for i in numbers for at in range(len(self.calls[i].bound.operands))]
        cycles = sum(self.compute(i) + self.exposed(i) for i in numbers)
        return cycles, sum(m[0] for m in moved), sum(m[1] for m in moved), sum(self.steps.tiles(i) for i in numbers)


_Rings = tuple[int, int, tuple[int, ...]]  # bytes of some rings, bytes moved down in them, before which steps


def roll_plans(calls: Sequence[RollCall], step: int, stays: frozenset[str], target: Target, l1: int) -> list[RollPlan]:
    """The plans of one step size within `l1` bytes that no other beats in bytes of L1 and cycles of moving rows down."""
    steps = RollSteps(tuple(calls), step, stays, target)
    room = l1 - steps.fixed_bytes
    kept: list[_Rings] = [(0, 0, ())] if room >= 0 else []
    for i in range(len(calls) - 1):
        options = _options(steps, i)
        kept = _unbeaten([(a + b, m + n, e + x) for a, m, e in kept for b, n, x in options if a + b <= room])
    return [RollPlan(steps, e) for _, _, e in kept]


def _options(steps: RollSteps, number: int) -> list[_Rings]:
    """For the ring of one call."""
    result: list[_Rings] = []
    every = 1
    while True:
        ring = steps.ring(number, every)
        moved = steps.moved_down(number, every)
        result.append((align16(ring.rows * ring.row_bytes), moved, (every,)))
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
