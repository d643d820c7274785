"""Rolled groups: consecutive calls that go down an image together, a few rows at a time.

Each step makes some rows of the last call's result; walking backwards, each call before it makes the rows that its
readers need. Of a *kept* tensor those are the new ones: its rows lie in a ring in L1, in which the ones still needed
are moved down now and then, and none is made twice. One that is made *again* keeps nothing from step to step: its call
makes all that is read in a step, so what that call reads widens in turn (`tiler/again.py` says which). Weights are
copied in once and stay for the group; what the group reads or writes outside comes and goes by tiles of rows, or stays
in L1 whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from fusion_engine.expr import evaluate
from tiler.cost import align16
from tiler.grid import Ints
from tiler.roll_time import Moves, Times, bundle_moves, moves_of, times
from tiler.row_calls import RollCall
from tiler.schedule import BoundOperand
from tiler.target import Target

SLIDE = 4  # bytes per cycle that core 0 moves kept rows down


@dataclass(frozen=True, slots=True)
class RingPlan:
    """An inner tensor: `rows` of `row_bytes` at most are in L1 at once, moved down before every `every`-th step, or
    made `again` in each."""

    root: str
    rows: int
    row_bytes: int
    height: int
    every: int
    again: bool

    @property
    def size(self) -> int:
        return self.rows * self.row_bytes


@dataclass(frozen=True)
class RollSteps:
    """A group of calls, `step` rows of the last result at a time, its outer tensors in L2 or, those of `stays`, in L1;
    the results of calls `again` (by number) are made again. Figures per call in their order, arrays by step."""

    calls: tuple[RollCall, ...]
    step: int
    stays: frozenset[str]
    target: Target
    again: frozenset[int] = frozenset()

    # ---- rows ----

    @cached_property
    def count(self) -> int:
        return -(-self.calls[-1].height // self.step)

    @cached_property
    def ends(self) -> tuple[Ints, ...]:
        """Per call, how many rows of its result are done behind each step, whatever is made again."""
        result: tuple[Ints, ...] = self.once("ends", self._ends)
        return result

    def once(self, what: object, make: Callable[[], Any]) -> Any:
        """Something that depends on the calls and the step alone, made the first time that it is asked for."""
        memo, key = self.calls[-1].memo, (what, len(self.calls), self.step)
        if key not in memo:
            memo[key] = make()
        return memo[key]

    def _ends(self) -> tuple[Ints, ...]:
        last = len(self.calls) - 1
        ends = {last: np.minimum(self.step * np.arange(1, self.count + 1), self.calls[-1].height)}
        for i in reversed(range(last)):
            needs = [c.needed(o, ends[j]) for j, c, o in self.readers[i]]
            ends[i] = np.max(needs, axis=0)
        for i, c in enumerate(self.calls):
            ends[i][-1] = c.height
        return tuple(ends[i] for i in range(last + 1))

    @cached_property
    def done(self) -> tuple[Ints, ...]:
        """Per call, how many rows are done before each step."""
        return tuple(np.concatenate([[0], e[:-1]]) for e in self.ends)

    @cached_property
    def starts(self) -> tuple[Ints, ...]:
        """Per call, the first row made in each step; the end where none is."""
        return tuple(self._walked[0])

    @cached_property
    def kept(self) -> tuple[Ints, ...]:
        """Per inner tensor (of each call but the last), the first row read in each step or behind it."""
        return tuple(self._walked[1][:-1])

    @cached_property
    def _walked(self) -> tuple[list[Ints], list[Ints]]:
        result: tuple[list[Ints], list[Ints]] = self.once(("walked", self.again), self._walk)
        return result

    def _walk(self) -> tuple[list[Ints], list[Ints]]:
        starts, lows, runs = (
            list(self.done),
            list(self.done),
            [e > d for d, e in zip(self.done, self.ends, strict=True)],
        )
        kept = list(self.done)
        for i in reversed(range(len(self.calls) - 1)):
            readers = self.readers[i]
            kept[i] = np.min([self.done[i], *(c.begins(o, lows[j]) for j, c, o in readers)], axis=0)
            if i in self.again:
                lows[i] = kept[i]
                runs[i] |= np.any([runs[j] for j, _, _ in readers], axis=0)  # rows that nothing reads come last
                starts[i] = np.where(runs[i], kept[i], self.ends[i])
        return starts, kept

    @cached_property
    def readers(self) -> list[list[tuple[int, RollCall, BoundOperand]]]:
        operands = [(j, c, o) for j, c in enumerate(self.calls) for o in c.bound.operands if o.role == "in"]
        return [[x for x in operands if x[2].root == c.out.root] for c in self.calls]

    def made(self, number: int) -> Ints:
        """How many rows of its result a call makes in each step."""
        made: Ints = self.ends[number] - self.starts[number]
        return made

    def tiles(self, number: int) -> int:
        """Steps in which the call has rows to make."""
        return sum(cycles > 0 for cycles in self.computing[number])

    # ---- memory ----

    @cached_property
    def inner(self) -> frozenset[str]:
        return frozenset(c.out.root for c in self.calls[:-1])

    def travels(self, o: BoundOperand) -> bool:
        """Whether tiles of rows of it are copied."""
        return o.role != "const" and o.root not in self.inner and o.root not in self.stays

    def tile_bytes(self, number: int, at: int) -> int:
        """The tile of an operand that is a constant or travels; 0 for what is in L1."""
        b, o = self.calls[number].bundle, self.calls[number].bound.operands[at]
        if b is not None and at in b.operands:
            return prod(o.extent) * o.itemsize
        moves = self.moves[number][at]
        return 0 if moves is None else moves.tile

    def scratch(self, number: int) -> dict[str, int]:
        """Bytes of one piece of each scratch buffer."""
        call = self.calls[number]
        if not call.bound.scratch:
            return {}
        lengths = call.environment(int(self.made(number).max()), self.target.cores)
        return {s.name: align16(evaluate(s.bytes, lengths)) for s in call.bound.scratch}

    def scratch_bytes(self, number: int) -> int:
        """All scratch of a call."""
        per = {s.name: s.per for s in self.calls[number].bound.scratch}
        sizes = self.scratch(number)
        return sum(size * (self.target.cores if per[name] == "core" else 1) for name, size in sizes.items())

    @cached_property
    def fixed_bytes(self) -> int:
        """L1 beside the rings."""
        tiles = sum(align16(m.tile) for moves in self.moves for m in moves if m is not None)
        return int(tiles) + max(self.scratch_bytes(i) for i in range(len(self.calls)))

    @cached_property
    def least_bytes(self) -> int:
        """L1 with the lowest rings."""
        rings: int = sum(align16(self.ring(i, 1)[0].size) for i in range(len(self.calls) - 1))
        return self.fixed_bytes + rings

    def ring(self, number: int, every: int) -> tuple[RingPlan, int]:
        """The ring of a call's result if it is moved down before every `every`-th step, and the bytes that all moving
        takes; none where it is made again."""
        if (number, every) not in self._rings:
            self._rings[number, every] = self._ring(number, every)
        return self._rings[number, every]

    @cached_property
    def _rings(self) -> dict[tuple[int, int], tuple[RingPlan, int]]:
        return {}

    def _ring(self, number: int, every: int) -> tuple[RingPlan, int]:
        rows, again = self.calls[number].rows[self.calls[number].out.name], number in self.again
        most, moved = (int(self.made(number).max()), 0) if again else self._sliding(number, every)
        return RingPlan(self.calls[number].out.root, most, rows.bytes, rows.count, every, again), moved * rows.bytes

    def _sliding(self, number: int, every: int) -> tuple[int, int]:
        """Rows of a ring at most, and rows moved down in it."""
        most = base = moved = 0
        kept = self.kept[number].tolist()
        for step, (start, end) in enumerate(zip(self.starts[number].tolist(), self.ends[number].tolist(), strict=True)):
            if step % every == 0 and kept[step] > base:
                base = kept[step]
                moved += start - base
            most = max(most, end - base)
        return most, moved

    # ---- figures ----

    @cached_property
    def moves(self) -> tuple[tuple[Moves | None, ...], ...]:
        """Per call and operand what copying its tiles takes, a constant in one step; None for what is in L1 or comes
        with another."""
        numbers = range(len(self.calls))
        return tuple(tuple(self._moves(i, at) for at in range(len(self.calls[i].bound.operands))) for i in numbers)

    def _moves(self, number: int, at: int) -> Moves | None:
        call = self.calls[number]
        o = call.bound.operands[at]
        if o.role != "const" and not self.travels(o):
            return None
        if call.bundle is not None and at in call.bundle.operands:
            return bundle_moves(call.bundle, self.target.hops["l2_l1"]) if at == call.bundle.lead else None
        first, end = self.starts[number], self.ends[number]
        key = ("moves", at) if o.role == "const" else ("moves", at, first.tobytes(), end.tobytes())
        if key not in call.memo:
            boxes = [np.array([e]) for e in o.extent] if o.role == "const" else call.boxes(o, first, end)
            call.memo[key] = moves_of(o, boxes, self.target.hops["l2_l1"])
        result: Moves = call.memo[key]
        return result

    @cached_property
    def moved(self) -> tuple[int, int]:
        """(bytes, commands) between L2 and L1."""
        found = [m for moves in self.moves for m in moves if m is not None]
        return sum(m.total for m in found), sum(m.all_commands for m in found)

    @cached_property
    def computing(self) -> tuple[list[float], ...]:
        """Per call and step, the cycles of its start."""
        return tuple(self.computing_of(i) for i in range(len(self.calls)))

    def computing_of(self, number: int) -> list[float]:
        """The cycles of a call's starts by step."""
        call = self.calls[number]
        return [call.cycles(n, self.target) if n else 0.0 for n in self.made(number).tolist()]

    @cached_property
    def computed(self) -> tuple[float, ...]:
        """Per call, the cycles of computing."""
        return tuple(sum(cycles) for cycles in self.computing)

    @cached_property
    def times(self) -> Times:
        return times(self.moves, self.computing)
