"""The time of a rolled group: computing call after call and step after step, its copies beside it.

Constants and the rows of the first step are asked for at the start, in the order of the calls; the rows of the next
step as soon as a call is through with those it has, while the calls behind it run; results leave the same way, and
must have left before the next are written. Core 0 issues the commands (never hidden), the engine serves them in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiler.choice import Bundle
from tiler.grid import Ints
from tiler.schedule import BoundOperand
from tiler.target import Hop
from tiler.traffic import box_commands, hop_limits


@dataclass(frozen=True, slots=True)
class Moves:
    """Copies of an operand: by step the cycles of issuing them and of moving, 0 where none is; `tile` bytes at most in
    one step, `total` bytes and commands in all."""

    role: str
    issue: list[int]
    cycles: list[float]
    tile: int
    total: int
    all_commands: int


def moves_of(o: BoundOperand, boxes: Sequence[Ints], hop: Hop) -> Moves:
    """The copies of boxes, an array of extents a dim."""
    pitch = [s * o.itemsize for s in o.far_strides]
    commands, lines = box_commands(boxes, pitch, o.itemsize, hop_limits(hop))
    size = np.prod(boxes, axis=0) * o.itemsize
    cycles = np.where(size > 0, hop.latency + lines * hop.per_run + size / hop.bytes_per_cycle, 0)
    issue = (commands * hop.start).tolist()
    return Moves(o.role, issue, cycles.tolist(), int(size.max()), int(size.sum()), int(commands.sum()))


def bundle_moves(b: Bundle, hop: Hop) -> Moves:
    """The one copy of a call's constants that come together."""
    cycles = hop.latency + b.moved / hop.bytes_per_cycle
    return Moves("const", [b.commands * hop.start], [cycles], b.pitch, b.moved, b.commands)


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
        self.constants = [_of(of, "const") for of in moves]
        self.inputs = [_of(of, "in") for of in moves]
        self.outputs = [_of(of, "out") for of in moves]

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

    def _start(self, call: int, moves: list[Moves], step: int, done: list[float]) -> None:
        for m in moves:
            if m.cycles[step]:
                self.now += m.issue[step]
                self.exposed[call] += m.issue[step]
                self.engine = max(self.engine, self.now) + m.cycles[step]
                done[call] = self.engine

    def _wait(self, call: int, until: float) -> None:
        if until > self.now:
            self.exposed[call] += until - self.now
            self.now = until


def _of(moves: Sequence[Moves | None], role: str) -> list[Moves]:
    return [m for m in moves if m is not None and m.role == role]
