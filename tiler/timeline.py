"""When constants arrive from L3: one engine, copies in the order of their starts, calls that wait for theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiler.target import Hop


@dataclass(frozen=True, slots=True)
class Fetch:
    """A constant in L2 over calls start..last, its copy from L3 started before call `start`, complete before call
    `wait`."""

    root: str
    bytes: int
    start: int
    wait: int
    last: int

    @property
    def order(self) -> tuple[int, int, str]:
        """The sequence in which copies are started."""
        return self.start, self.wait, self.root


def commands_of(size: int, hop: Hop) -> int:
    """Commands of one contiguous copy."""
    return -(-size // hop.max_bytes)


def stall_cycles(cycles: Sequence[int], deep_bytes: Sequence[int], fetches: Sequence[Fetch], hop: Hop) -> int:
    """Cycles beyond those of the calls themselves: issuing the copies, and waiting for them.

    `deep_bytes` are what each call itself streams from or to L3: behind the fetches that are still under way.
    """
    now, engine = 0.0, 0.0
    waiting = sorted(fetches, key=lambda f: f.order)
    ready: dict[int, float] = {}
    for i, (call, streamed) in enumerate(zip(cycles, deep_bytes, strict=True)):
        while waiting and waiting[0].start == i:
            f = waiting.pop(0)
            now += commands_of(f.bytes, hop) * hop.start
            engine = max(engine, now) + hop.latency + f.bytes / hop.bytes_per_cycle
            ready[f.wait] = max(ready.get(f.wait, 0.0), engine)
        now = max(now, ready.get(i, 0.0))
        if streamed:
            engine = max(engine, now) + streamed / hop.bytes_per_cycle
        now = max(now + call, engine if streamed else 0.0)
    return round(now) - sum(cycles)
