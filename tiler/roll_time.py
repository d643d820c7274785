"""The time of a rolled group: computing call after call and step after step, its copies beside it.

Constants and the rows of the first step are asked for at the start, in the order of the calls; the rows of the next
step as soon as a call is through with those it has, while the calls behind it run; results leave the same way, and
must have left before the next are written. Core 0 issues the commands (never hidden), the engine serves them in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiler.cost import Floats
from tiler.grid import Ints


@dataclass(frozen=True, slots=True)
class Moves:
    """Copies of an operand by step: bytes, commands, cycles of issuing them and cycles of moving; 0 where none is."""

    role: str
    bytes: Ints
    commands: Ints
    issue: Ints
    cycles: Floats


@dataclass(frozen=True, slots=True)
class Times:
    """Per call, cycles of issuing copies and of waiting for them."""

    exposed: tuple[float, ...]


def times(moves: Sequence[Sequence[Moves | None]], computing: Sequence[Sequence[float]]) -> Times:
    """`moves` by call and operand, `computing` by call and step."""
    return _Clock(moves, computing).run()


class _Clock:
    def __init__(self, moves: Sequence[Sequence[Moves | None]], computing: Sequence[Sequence[float]]) -> None:
        self.computing = computing
        self.now = self.engine = 0.0  # time of core 0, and when the engine is through with what it has
        self.exposed = [0.0] * len(computing)
        self.arrived = [0.0] * len(computing)  # when what the call reads next is there
        self.left = [0.0] * len(computing)  # when its last results have left
        self.constants = [_lists(of, "const") for of in moves]
        self.inputs = [_lists(of, "in") for of in moves]
        self.outputs = [_lists(of, "out") for of in moves]

    def run(self) -> Times:
        for i in range(len(self.computing)):
            self._start(i, self.inputs[i], 0, self.arrived)
            self._start(i, self.constants[i], 0, self.arrived)
        steps = len(self.computing[0])
        for step in range(steps):
            for i, cycles in enumerate(self.computing):
                if cycles[step]:
                    self._wait(i, max(self.arrived[i], self.left[i]))
                    self.now += cycles[step]
                    self._start(i, self.outputs[i], step, self.left)
                if step + 1 < steps:
                    self._start(i, self.inputs[i], step + 1, self.arrived)
        for i in range(len(self.computing)):
            self._wait(i, self.left[i])
        return Times(tuple(self.exposed))

    def _start(self, call: int, moves: list[tuple[list[int], list[float]]], step: int, done: list[float]) -> None:
        for issue, cycles in moves:
            if cycles[step]:
                self.now += issue[step]
                self.exposed[call] += issue[step]
                self.engine = max(self.engine, self.now) + cycles[step]
                done[call] = self.engine

    def _wait(self, call: int, until: float) -> None:
        if until > self.now:
            self.exposed[call] += until - self.now
            self.now = until


def _lists(moves: Sequence[Moves | None], role: str) -> list[tuple[list[int], list[float]]]:
    return [(m.issue.tolist(), m.cycles.tolist()) for m in moves if m is not None and m.role == role]
