"""Copies into L1 that start while the call before computes: constants, and inputs that lie in L2 by then.

Chosen when tilings and addresses stand: the first copy of an operand may start one call early where the bytes it goes
to are free over both calls, at its own address or another. What it takes then runs beside that call's computing. No
byte, no command and no cycle is added, so what the choice of tilings proved holds for what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tiler.buffers import pieces
from tiler.choice import CallLayout, Choice
from tiler.cost import align16
from tiler.joining import Join, first, saved
from tiler.memory import Memory
from tiler.options import Picked
from tiler.target import Target
from tiler.timeline import Fetch, timeline

Span = tuple[int, int]  # bytes of L1: first, end


@dataclass(frozen=True, slots=True)
class Ahead:
    """`started[i]`: the operands of call i, by position, whose first copy call i - 1 starts. With it what comes from L3
    (some of it is waited for a call earlier), the buffers' places, the ends of what is in use and the cycles of every
    call."""

    started: tuple[frozenset[int], ...]
    fetches: tuple[Fetch, ...]
    layouts: tuple[CallLayout, ...]
    ends: tuple[int, ...]
    cycles: tuple[int, ...]


def start_ahead(
    memory: Memory, joined: Sequence[Sequence[Join]], given: frozenset[str], target: Target, wanted: bool = True
) -> Ahead:
    """What starts early; `joined` says per call what comes together, `given` are the roots of the graph's inputs.
    Nothing starts early unless `wanted`."""
    plan = _Plan(memory, joined, given, target)
    for i in range(1, len(memory.homes.picked) if wanted else 0):
        plan.start(i)
    return Ahead(tuple(plan.started), plan.fetches(), tuple(plan.layouts), tuple(plan.ends), tuple(plan.cycles()))


@dataclass(frozen=True, slots=True)
class _Item:
    """What one copy brings: operands by position, bytes of L1 from the first one's on, cycles of waiting for it."""

    operands: tuple[int, ...]
    bytes: int
    cycles: float


class _Plan:
    def __init__(self, memory: Memory, joined: Sequence[Sequence[Join]], given: frozenset[str], target: Target) -> None:
        homes, near, stays = memory.homes, memory.near, memory.stays
        self.homes, self.near, self.stays, self.joined, self.target = homes, near, stays, joined, target
        self.picked, self.layouts, self.ends = homes.picked, list(near.layouts), list(near.ends)
        self.started: list[frozenset[int]] = [frozenset() for _ in homes.picked]
        self.written: dict[str, int] = {**dict.fromkeys(given, -1), **_last_writers(homes.picked)}
        self.rolled = {i for first, last in stays.spans for i in range(first, last + 1)}
        self.beside = [p.choice.beside for p in homes.picked]
        self.saved = [0.0] * len(homes.picked)
        self.waits = [x.fetch.wait for x in homes.passing.loads]
        times = timeline(homes.stretches, [x.fetch for x in homes.passing.loads], target.hops["l3_l2"])
        self.arrivals = [end for _, end in times.fetches]
        self.begins = {s.first: (s.begin, span[0]) for s, span in zip(homes.stretches, times.stretches, strict=True)}

    def start(self, call: int) -> None:
        """The copies of a call, the longest first, while the call before has cycles that hide them."""
        before = call - 1
        if {before, call} & self.rolled or not _streams_only(self.picked[before]):
            return
        able = [item for item in self._items(call) if all(self._arrived(call, k) for k in item.operands)]
        for item in sorted(able, key=lambda item: (-item.cycles, item.operands)):
            left = self.picked[before].choice.compute_cycles - self.beside[before]
            place = self._place(call, item) if left > 0 else None
            if place is not None:
                self._take(call, item, place)

    def _items(self, call: int) -> Iterator[_Item]:
        """What is copied from L2 before the call's loops."""
        p, together = self.picked[call], {k for join in self.joined[call] for k in join.operands}
        hop = self.target.hops["l2_l1"]
        yield from (_Item(join.operands, align16(join.bytes), first(join, hop)) for join in self.joined[call])
        for b in p.choice.bundles:
            together |= set(b.operands)
            if _once(p.choice, b.lead):
                yield _Item(b.operands, b.pitch, p.choice.first[b.lead])
        for k, o in enumerate(p.bound.operands):
            copied = o.role != "out" and p.choice.tile_bytes[k] and o.name not in self.homes.stages[call]
            if _once(p.choice, k) and copied and k not in together:
                yield _Item((k,), align16(p.choice.tile_bytes[k]), p.choice.first[k])

    def _arrived(self, call: int, k: int) -> bool:
        """Whether an operand's root, or its first piece, is in L2 before the call before begins."""
        root = self.picked[call].bound.operands[k].root
        load = self._load(root)
        if load is None:
            return self.written.get(root, -1) < call - 1
        return self.arrivals[load] <= self.begins[call - 1][1]

    def _load(self, root: str) -> int | None:
        """The fetch that brings a root, or its first piece."""
        passing = self.homes.passing
        piece = next((i for i, p in enumerate(passing.pieces) if p.root == root), None)
        return None if piece is None else next(n for n, x in enumerate(passing.loads) if x.first <= piece <= x.last)

    def _place(self, call: int, item: _Item) -> int | None:
        """Where an early copy goes: where it would go in time, or the first free bytes."""
        own = self._at(call, item)
        others = [(at, end) for at, end in self._taken(call) if end <= own or at >= own + item.bytes]
        taken = [*self._taken(call - 1), *others]
        if all(end <= own or own + item.bytes <= at for at, end in taken):
            return own
        return _free(taken, item.bytes, self.target.budget("l1"))

    def _at(self, call: int, item: _Item) -> int:
        return self.layouts[call].buffers[item.operands[0]][0]

    def _taken(self, call: int) -> list[Span]:
        """Bytes in use during a call, what comes early for it left out."""
        alive = [v for v in self.stays.lives if v.first <= call <= v.last]
        spans = [(self.near.stays[v.root], self.near.stays[v.root] + align16(v.bytes)) for v in alive]
        return [*spans, *_buffers(self.picked[call], self.layouts[call], self.target.cores)]

    def _take(self, call: int, item: _Item, place: int) -> None:
        layout, moved = self.layouts[call], place - self._at(call, item)
        buffers = list(layout.buffers)
        for k in item.operands:
            buffers[k] = (buffers[k][0] + moved, *buffers[k][1:])
        self.layouts[call] = replace(layout, buffers=tuple(buffers))
        self.started[call] |= set(item.operands)
        for k in item.operands:
            self._wait_early(call, self._load(self.picked[call].bound.operands[k].root))
        end = place + item.bytes
        self.ends[call - 1], self.ends[call] = max(self.ends[call - 1], end), max(self.ends[call], end)
        hidden = min(item.cycles, self.picked[call - 1].choice.compute_cycles - self.beside[call - 1])
        self.beside[call - 1] += hidden
        self.saved[call] += hidden

    def _wait_early(self, call: int, load: int | None) -> None:
        """A fetch is waited for before the call before; what was started before it has arrived before it."""
        if load is not None:
            step = self.begins[call - 1][0]
            self.waits[: load + 1] = [min(w, step) for w in self.waits[: load + 1]]

    def fetches(self) -> tuple[Fetch, ...]:
        """With the waits of what is read early."""
        return tuple(replace(x.fetch, wait=w) for x, w in zip(self.homes.passing.loads, self.waits, strict=True))

    def cycles(self) -> Iterator[int]:
        """Of each call, without what is no longer waited for."""
        hop = self.target.hops["l2_l1"]
        for i, (p, joined) in enumerate(zip(self.picked, self.joined, strict=True)):
            less = self.saved[i] + sum(saved(join, p.choice, hop, i not in self.rolled) for join in joined)
            yield ceil(round(p.choice.total_cycles - less, 6))


def _last_writers(picked: Sequence[Picked]) -> Mapping[str, int]:
    return {o.root: i for i, p in enumerate(picked) for o in p.bound.operands if o.role == "out"}


def _once(choice: Choice, operand: int) -> bool:
    """Whether its first copy starts before the loops."""
    return choice.depth[operand] == 0 or (choice.depth[operand] == 1 and choice.double[operand])


def _streams_only(p: Picked) -> bool:
    """Whether no copy inside the loops is waited for: a copy of the next call's would stand before it."""
    c = p.choice
    return all(
        not size or not depth or double for size, depth, double in zip(c.tile_bytes, c.depth, c.double, strict=True)
    )


def _buffers(p: Picked, layout: CallLayout, cores: int) -> list[Span]:
    scratch = [at for at, _ in layout.scratch.values()]
    accumulator = [] if layout.accumulator is None else [layout.accumulator[0]]
    inside = {i for b in p.choice.bundles for i in b.operands[1:]}
    own = [at for i, buffer in enumerate(layout.buffers) if i not in inside for at in buffer]
    places = [*own, *scratch, *accumulator]
    return [(at, at + n) for at, n in zip(places, pieces(p.bound, p.choice, cores), strict=False) if n]


def _free(taken: Sequence[Span], size: int, l1: int) -> int | None:
    """The first byte of the lowest free bytes."""
    at = 0
    for begin, end in sorted(taken):
        if at + size <= begin:
            return at
        at = max(at, end)
    return at if at + size <= l1 else None
