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


@dataclass(frozen=True, slots=True)
class Timeline:
    """When things happen, in cycles of one run: each call's start and end, and the copies from L3 (root, start,
    end)."""

    calls: tuple[tuple[float, float], ...]
    copies: tuple[tuple[str, float, float], ...]

    @property
    def end(self) -> float:
        return self.calls[-1][1] if self.calls else 0.0


def timeline(cycles: Sequence[int], deep_bytes: Sequence[int], fetches: Sequence[Fetch], hop: Hop) -> Timeline:
    """Calls one after the other, waiting for what they need from L3.

    `deep_bytes` are what each call itself streams from or to L3: behind the fetches that are still under way.
    """
    now, engine = 0.0, 0.0
    waiting = sorted(fetches, key=lambda f: f.order)
    ready: dict[int, float] = {}
    calls, copies = [], []
    for i, (call, streamed) in enumerate(zip(cycles, deep_bytes, strict=True)):
        while waiting and waiting[0].start == i:
            f = waiting.pop(0)
            now += commands_of(f.bytes, hop) * hop.start
            begun = max(engine, now)
            engine = begun + hop.latency + f.bytes / hop.bytes_per_cycle
            ready[f.wait] = max(ready.get(f.wait, 0.0), engine)
            copies.append((f.root, begun, engine))
        now = begun = max(now, ready.get(i, 0.0))
        if streamed:
            start = max(engine, now)
            engine = start + streamed / hop.bytes_per_cycle
            copies.append(("", start, engine))
        now = max(now + call, engine if streamed else 0.0)
        calls.append((begun, now))
    return Timeline(tuple(calls), tuple(copies))


def stall_cycles(cycles: Sequence[int], deep_bytes: Sequence[int], fetches: Sequence[Fetch], hop: Hop) -> int:
    """Cycles beyond those of the calls themselves: issuing the copies from L3, and waiting for them."""
    return round(timeline(cycles, deep_bytes, fetches, hop).end) - sum(cycles)
