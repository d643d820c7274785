"""Which bytes come from L3 when, and where in L2 they lie: every constant that does not stay passes through the room
that the rest leaves, as through a ring.

Pieces are fetched in the order of their needs, from the first step of the run on, each as soon as its place is free:
behind the piece before it, where that is free, else at the next place above it, else at the lowest. Neighbours are
fetched together where none is late for it. The steps are walked one by one with the clock of `tiler/timeline.py`, so
what is planned is what the timeline says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf

from tiler.pieces import Piece, roots_in_l3
from tiler.placement import ALIGNMENT
from tiler.target import Hop
from tiler.timeline import Clock, Fetch, Stretch

SURELY = 1 + 1e-9  # times a number of cycles: more than sums of fractions are off


@dataclass(frozen=True, slots=True)
class Policy:
    """Neighbours are fetched together up to `merge` bytes even where one is later for it. Less than `batch` bytes wait
    for more room as long as nothing is late for that."""

    merge: int
    batch: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Bytes [low, high) of L2 that other things have over the steps first..last (inclusive)."""

    low: int
    high: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Load:
    """Pieces first..last (inclusive), neighbours in L3 and in L2, as one copy to `l2`."""

    first: int
    last: int
    l2: int
    fetch: Fetch


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """`places[i]` is where piece i lies in L2 from step `since[i]` on; `cycles` of the whole run; `top` is the end of
    the highest piece."""

    pieces: tuple[Piece, ...]
    loads: tuple[Load, ...]
    places: tuple[int, ...]
    since: tuple[int, ...]
    cycles: float
    top: int


NOTHING = FetchPlan((), (), (), (), 0.0, 0)


class NoPlaceError(Exception):
    """A piece that step `step` needs has no place in L2."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


def plan_fetches(
    pieces: Sequence[Piece],
    stretches: Sequence[Stretch],
    taken: Sequence[Taken],
    room: tuple[int, int],
    hop: Hop,
    policy: Policy,
    within: float = inf,
) -> FetchPlan | None:
    """The plan for pieces in the order of their needs, within bytes [low, high) of L2; None as soon as it surely takes
    more than `within` cycles. Raises NoPlaceError."""
    return _Walk(pieces, stretches, taken, room, hop, policy).run(within * SURELY)


class _Walk:
    def __init__(
        self,
        pieces: Sequence[Piece],
        stretches: Sequence[Stretch],
        taken: Sequence[Taken],
        room: tuple[int, int],
        hop: Hop,
        policy: Policy,
    ) -> None:
        self.pieces, self.taken, self.policy, self.hop = pieces, taken, policy, hop
        self.low, self.high = room
        self.clock = Clock(hop)
        self.work = [(s.cycles / s.steps, s.streamed / s.steps) for s in stretches for _ in range(s.steps)]
        self.ideal = [0.0, *accumulate(w for w, _ in self.work)]  # when each step would begin without any waiting
        self.latest = self._latest()
        self.behind = dict(pairwise(roots_in_l3(pieces)))  # of each constant the next one in L3
        self.opens = {p.free for p in pieces} | {t.last + 1 for t in taken}  # steps at which places become free
        self.places: list[int] = []
        self.since: list[int] = []
        self.live: list[int] = []  # pieces whose places are taken
        self.loads: list[Load] = []
        self.arrivals: list[float] = []  # of each piece
        self.waited = 0  # pieces that steps up to now have needed
        self.found: int | None = None  # the place of the next piece, where nothing changed since it was looked for
        self.known = False

    def _latest(self) -> list[float]:
        """Until when, in ideal time, the engine may rest before each piece if none is to be late."""
        result, last = [], self.ideal[-1]
        for p in reversed(self.pieces):
            last = min(last, self.ideal[p.need]) - p.bytes / self.hop.bytes_per_cycle
            result.append(last)
        return result[::-1]

    def run(self, within: float) -> FetchPlan | None:
        blocked = False
        for step, (cycles, streamed) in enumerate(self.work):
            if step in self.opens:
                self.live = [i for i in self.live if self.pieces[i].free > step]
                blocked = self.known = False
            if self._at_least(step) > within:
                return None
            needed = len(self.places) < len(self.pieces) and self.pieces[len(self.places)].need <= step
            if needed or not blocked:
                blocked = self._start(step)
            self.clock.wait(self._awaited(step))
            self.clock.work(cycles, streamed)
        top = max((a + p.bytes for a, p in zip(self.places, self.pieces, strict=True)), default=0)
        return FetchPlan(
            tuple(self.pieces), tuple(self.loads), tuple(self.places), tuple(self.since), self.clock.now, top
        )

    def _at_least(self, step: int) -> float:
        """Cycles of the whole run, nothing waiting from here on but for the engine."""
        at, end = len(self.places), self.ideal[-1]
        least = self.clock.now + end - self.ideal[step]
        return least if at == len(self.pieces) else max(least, end + self.clock.engine - self.latest[at])

    def _start(self, step: int) -> bool:
        """Starts what can be; whether it is a place that the next piece lacks."""
        while len(self.places) < len(self.pieces):
            at = len(self.places)
            needed = self.pieces[at].need <= step
            place = self._place(step) if not self.known else self.found
            self.found, self.known = place, True
            if place is None:
                if needed:
                    raise NoPlaceError(step)
                return True
            if not needed and self.clock.free > max(self.clock.now, self._awaited(step)):
                return False  # core 0 would wait for the engine alone
            end, size = self._together(step, place)
            if not needed and not self._pressing(step, size):
                return False
            self._load(step, end, place, size)
        return False

    def _awaited(self, step: int) -> float:
        """When the last of what the step needs arrives, of what is started."""
        while self.waited < len(self.places) and self.pieces[self.waited].need <= step:
            self.waited += 1
        return self.arrivals[self.waited - 1] if self.waited else 0.0

    # ---- places ----

    def _place(self, step: int) -> int | None:
        """Where the next piece may lie from `step` on."""
        at = len(self.places)
        piece = self.pieces[at]
        barred = self._barred(step, piece.free)
        if at and self._neighbours(at):
            behind = self.places[-1] + self.pieces[at - 1].bytes
            if behind + piece.bytes <= self.high and _is_clear(barred, behind, behind + piece.bytes):
                return behind
        lead = piece.begin % ALIGNMENT
        found = _gap(barred, lead + piece.bytes, self.low, self.high, self.places[-1] if at else self.low)
        return None if found is None else found + lead

    def _barred(self, step: int, free: int) -> list[tuple[int, int]]:
        """What is taken at some time in the steps [step, free)."""
        return self._others(step, free) + [(self.places[i], self.places[i] + self.pieces[i].bytes) for i in self.live]

    def _others(self, step: int, free: int) -> list[tuple[int, int]]:
        return [(t.low, t.high) for t in self.taken if t.first < free and t.last >= step]

    def _neighbours(self, at: int) -> bool:
        """Whether a piece lies behind the one before it in L3."""
        a, b = self.pieces[at - 1], self.pieces[at]
        if a.root == b.root:
            return a.begin + a.bytes == b.begin
        return a.last and b.begin == 0 and self.behind.get(a.root) == b.root

    # ---- loads ----

    def _together(self, step: int, place: int) -> tuple[int, int]:
        """The last of the pieces that are fetched with the next one, and their bytes."""
        at = end = len(self.places)
        size = self.pieces[at].bytes
        ceiling = min((a for i in self.live if (a := self.places[i]) >= place + size), default=self.high)
        begun = max(self.clock.engine, self.clock.now + self.hop.start) + self.hop.latency
        need = self.clock.now + self.ideal[self.pieces[at].need] - self.ideal[step]
        while end + 1 < len(self.pieces) and self._neighbours(end + 1):
            more = self.pieces[end + 1]
            total = size + more.bytes
            if total > self.hop.max_bytes or place + total > ceiling:
                break
            if total > self.policy.merge and begun + total / self.hop.bytes_per_cycle > need:
                break
            if not _is_clear(self._others(step, more.free), place + size, place + total):
                break
            end, size = end + 1, total
        return end, size

    def _pressing(self, step: int, size: int) -> bool:
        """Whether these bytes should not wait for the next step."""
        if size >= self.policy.batch:
            return True
        if self.clock.engine > self.clock.now + self.work[step][0]:
            return False  # the engine is busy until then
        return step + 1 >= len(self.work) or self.ideal[step + 1] > self.latest[len(self.places)]

    def _load(self, step: int, end: int, place: int, size: int) -> None:
        at, self.known = len(self.places), False
        _, arrival = self.clock.start(size)
        self.loads.append(Load(at, end, place, Fetch(size, step, self.pieces[at].need)))
        for i in range(at, end + 1):
            self.places.append(place)
            self.since.append(step)
            self.arrivals.append(arrival)
            self.live.append(i)
            place += self.pieces[i].bytes


def _is_clear(barred: Sequence[tuple[int, int]], low: int, high: int) -> bool:
    return all(b <= low or high <= a for a, b in barred)


def _gap(barred: Sequence[tuple[int, int]], size: int, low: int, high: int, above: int) -> int | None:
    """The lowest aligned address from `above` on with so many clear bytes, else the lowest of all."""
    lowest, at = None, low
    for a, b in [*sorted(barred), (high, high)]:
        if a - at >= size:
            lowest = at if lowest is None else lowest
            higher = max(at, -(-above // ALIGNMENT) * ALIGNMENT)
            if min(a, high) - higher >= size:
                return higher
        at = max(at, -(-b // ALIGNMENT) * ALIGNMENT)
    return lowest
