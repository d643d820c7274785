"""When things happen in a run: calls in steps, one engine that copies from L3, calls that wait for what they read.

A step is an iteration of a call's outermost loop, or a step of a rolled group: between two steps core 0 may start
copies and wait for them. The engine holds `in_flight` commands and takes them in the order of their starts; core 0
that starts one more waits for a place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiler.target import Hop


@dataclass(frozen=True, slots=True)
class Stretch:
    """Calls first..last (inclusive) that run as one, a call or a rolled group: `cycles` in `steps` equal steps from
    step `begin` of the run on. `streamed` bytes are what its tiles move from or to L3 themselves."""

    first: int
    last: int
    begin: int
    steps: int
    cycles: int
    streamed: int

    @property
    def end(self) -> int:
        """The first step that is not its own."""
        return self.begin + self.steps


@dataclass(frozen=True, slots=True)
class Fetch:
    """A copy of `bytes` from L3: started before step `start`, complete before step `wait`."""

    bytes: int
    start: int
    wait: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """In cycles of one run: each stretch's start and end, and each copy from L3, fetches first, then what the
    stretches stream themselves. `waited[i]` cycles pass before and in stretch i beyond its own: starting copies, and
    waiting for them."""

    stretches: tuple[tuple[float, float], ...]
    fetches: tuple[tuple[float, float], ...]
    streams: tuple[tuple[float, float], ...]
    waited: tuple[float, ...]

    @property
    def end(self) -> float:
        return self.stretches[-1][1] if self.stretches else 0.0


def commands_of(size: int, hop: Hop) -> int:
    """Commands of one contiguous copy."""
    return -(-size // hop.max_bytes)


class Clock:
    """Core 0 and the engine of a hop, both in cycles since the run began."""

    def __init__(self, hop: Hop) -> None:
        self.hop, self.now, self.engine = hop, 0.0, 0.0
        self._ends: list[float] = []

    @property
    def free(self) -> float:
        """From when on the engine has a place for one more command."""
        return self._ends[-self.hop.in_flight] if len(self._ends) >= self.hop.in_flight else 0.0

    def start(self, size: int) -> tuple[float, float]:
        """Starts a copy: when its first byte moves, when its last has arrived."""
        begun = None
        for at in range(0, size, self.hop.max_bytes):
            self.now = max(self.now, self.free) + self.hop.start
            first = max(self.engine, self.now)
            begun = first if begun is None else begun
            part = min(self.hop.max_bytes, size - at)
            self.engine = first + self.hop.latency + part / self.hop.bytes_per_cycle
            self._ends.append(self.engine)
        return self.engine if begun is None else begun, self.engine

    def wait(self, until: float) -> None:
        self.now = max(self.now, until)

    def work(self, cycles: float, streamed: float) -> tuple[float, float] | None:
        """A step: what its own tiles stream is behind the copies under way. When that moves, if anything does."""
        if not streamed:
            self.now += cycles
            return None
        begun = max(self.engine, self.now)
        self.engine = begun + streamed / self.hop.bytes_per_cycle
        self.now = max(self.now + cycles, self.engine)
        return begun, self.engine


def timeline(stretches: Sequence[Stretch], fetches: Sequence[Fetch], hop: Hop) -> Timeline:
    """Stretches one after the other, waiting for what they need from L3. `fetches` in the order of their starts,
    which is also that of their waits."""
    clock, spans, waited = Clock(hop), [], []
    copies: list[tuple[float, float]] = []
    streams: list[tuple[float, float]] = []
    arrived = 0
    for s in stretches:
        begun, first = clock.now, None
        for step in range(s.begin, s.end):
            while len(copies) < len(fetches) and fetches[len(copies)].start <= step:
                copies.append(clock.start(fetches[len(copies)].bytes))
            while arrived < len(copies) and fetches[arrived].wait <= step:
                clock.wait(copies[arrived][1])
                arrived += 1
            first = clock.now if first is None else first
            moved = clock.work(s.cycles / s.steps, s.streamed / s.steps)
            streams += [] if moved is None else [moved]
        spans.append((begun if first is None else first, clock.now))
        waited.append(clock.now - begun - s.cycles)
    return Timeline(tuple(spans), tuple(copies), tuple(streams), tuple(waited))
