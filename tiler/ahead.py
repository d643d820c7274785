"""Copies into L1 that start while the call before computes: constants, and inputs that lie in L2 by then.

Chosen when tilings and addresses stand: the first copy of an operand may start one call early where the bytes it goes
to are free over both calls, at its own address or another. What it takes then runs beside that call's computing. No
byte, no command and no cycle is added, so what the choice of tilings proved holds for what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tiler.choice import CallLayout
from tiler.cost import align16
from tiler.homes import Homes
from tiler.near import NearPlan, pieces
from tiler.options import Picked
from tiler.stays import Stays
from tiler.target import Target

Span = tuple[int, int]  # bytes of L1: first, end


@dataclass(frozen=True, slots=True)
class Ahead:
    """`started[i]`: the operands of call i, by position, whose first copy call i - 1 starts. With it the buffers'
    places, the ends of what is in use and the cycles of every call."""

    started: tuple[frozenset[int], ...]
    layouts: tuple[CallLayout, ...]
    ends: tuple[int, ...]
    cycles: tuple[int, ...]


def start_ahead(
    homes: Homes, near: NearPlan, stays: Stays, given: frozenset[str], target: Target, wanted: bool = True
) -> Ahead:
    """What starts early; `given` are the roots of the graph's inputs, nothing does unless `wanted`."""
    plan = _Plan(homes, near, stays, given, target)
    for i in range(1, len(homes.picked) if wanted else 0):
        plan.start(i)
    return Ahead(tuple(plan.started), tuple(plan.layouts), tuple(plan.ends), tuple(plan.cycles()))


class _Plan:
    def __init__(self, homes: Homes, near: NearPlan, stays: Stays, given: frozenset[str], target: Target) -> None:
        self.homes, self.near, self.stays, self.target = homes, near, stays, target
        self.picked, self.layouts, self.ends = homes.picked, list(near.layouts), list(near.ends)
        self.started: list[frozenset[int]] = [frozenset() for _ in homes.picked]
        self.written: dict[str, int] = {**dict.fromkeys(given, -1), **_last_writers(homes.picked)}
        self.rolled = {first + i for first, roll in stays.rolls.items() for i in range(len(roll.calls))}
        self.beside = [p.choice.beside for p in homes.picked]
        self.saved = [0.0] * len(homes.picked)

    def start(self, call: int) -> None:
        """The operands of a call, the longest copies first, while the call before has cycles that hide them."""
        before = call - 1
        if {before, call} & self.rolled or not _streams_only(self.picked[before]):
            return
        p = self.picked[call]
        for k in sorted(self._able(call), key=lambda k: (-p.choice.first[k], k)):
            left = self.picked[before].choice.compute_cycles - self.beside[before]
            place = self._place(call, k) if left > 0 else None
            if place is not None:
                self._take(call, k, place)

    def _able(self, call: int) -> Iterator[int]:
        """Operands that are copied from L2 before the call's loops, complete there before the call before."""
        p = self.picked[call]
        for k, o in enumerate(p.bound.operands):
            first = p.choice.depth[k] == 0 or (p.choice.depth[k] == 1 and p.choice.double[k])
            if o.role == "out" or not first or not p.choice.tile_bytes[k] or o.name in self.homes.stages[call]:
                continue
            if self._arrived(o.root) < call - 1:
                yield k

    def _arrived(self, root: str) -> int:
        """The call behind which a root is whole in L2."""
        fetched = self.homes.fetched.get(root)
        return self.written.get(root, -1) if fetched is None else fetched[0].wait - 1

    def _place(self, call: int, k: int) -> int | None:
        """Where the operand's first tile lies if it comes early: where it is, or the first free bytes."""
        size = align16(self.picked[call].choice.tile_bytes[k])
        own = self.layouts[call].buffers[k][0]
        taken = [*self._taken(call - 1), *(s for s in self._taken(call) if s != (own, own + size))]
        if all(end <= own or own + size <= at for at, end in taken):
            return own
        return _free(taken, size, self.target.budget("l1"))

    def _taken(self, call: int) -> list[Span]:
        """Bytes in use during a call, what comes early for it left out."""
        alive = [v for v in self.stays.lives if v.first <= call <= v.last]
        spans = [(self.near.stays[v.root], self.near.stays[v.root] + align16(v.bytes)) for v in alive]
        return [*spans, *_buffers(self.picked[call], self.layouts[call], self.target.cores)]

    def _take(self, call: int, k: int, place: int) -> None:
        p, layout = self.picked[call], self.layouts[call]
        buffers = list(layout.buffers)
        buffers[k] = (place, *buffers[k][1:])
        self.layouts[call] = replace(layout, buffers=tuple(buffers))
        self.started[call] |= {k}
        end = place + align16(p.choice.tile_bytes[k])
        self.ends[call - 1], self.ends[call] = max(self.ends[call - 1], end), max(self.ends[call], end)
        self.beside[call - 1] += p.choice.first[k]
        self.saved[call] += p.choice.first[k]

    def cycles(self) -> Iterator[int]:
        """Of each call: what it no longer waits for off, what no longer hides behind its computing on."""
        for p, beside, saved in zip(self.picked, self.beside, self.saved, strict=True):
            compute, total = p.choice.compute_cycles, p.choice.total_cycles
            longer = max(compute, beside) - max(compute, p.choice.beside)
            yield ceil(round(total + longer - saved, 6))


def _last_writers(picked: Sequence[Picked]) -> Mapping[str, int]:
    return {o.root: i for i, p in enumerate(picked) for o in p.bound.operands if o.role == "out"}


def _streams_only(p: Picked) -> bool:
    """Whether no copy inside the loops is waited for: a copy of the next call's would stand before it."""
    c = p.choice
    return all(
        not size or not depth or double for size, depth, double in zip(c.tile_bytes, c.depth, c.double, strict=True)
    )


def _buffers(p: Picked, layout: CallLayout, cores: int) -> list[Span]:
    scratch = [at for at, _ in layout.scratch.values()]
    accumulator = [] if layout.accumulator is None else [layout.accumulator[0]]
    places = [*(at for buffer in layout.buffers for at in buffer), *scratch, *accumulator]
    return [(at, at + n) for at, n in zip(places, pieces(p.bound, p.choice, cores), strict=False) if n]


def _free(taken: Sequence[Span], size: int, l1: int) -> int | None:
    """The first byte of the lowest free bytes."""
    at = 0
    for first, end in sorted(taken):
        if at + size <= first:
            return at
        at = max(at, end)
    return at if at + size <= l1 else None
