"""Which constants stay in L2 from opening on, and which pass through it in every run.

What stays costs no time in a run and takes room from what passes. Sets of constants are weighed by planning the
fetches of all others to the cycle (`tiler/fetching.py`): every set where there are few constants, else beginnings of
several sequences and then single changes. No set of more than the room can stay, so the engine's time for the rest,
and the calls' own cycles, are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations
from math import inf

from tiler.fetching import FetchPlan, NoPlaceError, Policy, Taken, plan_fetches
from tiler.pieces import Piece
from tiler.target import Hop
from tiler.timeline import Stretch

FEW = 6  # constants of which every set is weighed
TRIES = 30  # sets weighed where there are more
CLOSE = 1.0005  # times the bound: good enough to stop at
POLICIES = tuple(Policy(merge, batch) for merge in (1 << 16, 8192, 2048) for batch in (0, 4096, 16384))
FIRST = (POLICIES[0], POLICIES[4], POLICIES[8])  # of them those that a search begins with


@dataclass(frozen=True, slots=True)
class Division:
    """Which constants stay, in the order of their first use, and the plan for the others. `bound`: cycles that no
    division gets below, these tilings given."""

    stay: tuple[str, ...]
    plan: FetchPlan
    bound: float

    @property
    def key(self) -> tuple[float, int, int]:
        """What is minimised: cycles, then bytes, then copies."""
        return self.plan.cycles, sum(x.fetch.bytes for x in self.plan.loads), len(self.plan.loads)


@dataclass(frozen=True, slots=True)
class NoPlace:
    """A piece that step `step` needs has no place in L2, whatever stays."""

    step: int


@dataclass(frozen=True)
class Passage:
    """The constants' sizes (aligned) in the order of their first use, and what else lies in L2, from offset 0: the
    constants that stay lie below it, all that moves in `l2` bytes around it."""

    pieces: tuple[Piece, ...]  # of every constant, were it to pass
    stretches: tuple[Stretch, ...]
    constants: tuple[tuple[str, int], ...]
    taken: tuple[Taken, ...]
    l2: int
    hop: Hop

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        return dict(self.constants)

    @property
    def spare(self) -> int:
        """Bytes that can stay at most."""
        return self.l2 - max((t.high for t in self.taken), default=0)

    def bound(self) -> float:
        """The calls' cycles and the fewest starts, or the engine's time."""
        passing = max(0, sum(self.sizes.values()) - max(self.spare, 0))
        starts = -(-passing // self.hop.max_bytes) * self.hop.start
        streamed = sum(s.streamed for s in self.stretches)
        cycles = sum(s.cycles for s in self.stretches) + starts
        return max(cycles, (passing + streamed) / self.hop.bytes_per_cycle)

    def plan(self, stay: frozenset[str], policy: Policy, within: float) -> FetchPlan | None:
        """None where it takes more than `within` cycles. Raises NoPlaceError."""
        base = sum(self.sizes[r] for r in stay)
        pieces = [p for p in self.pieces if p.root not in stay]
        taken = [Taken(t.low + base, t.high + base, t.first, t.last) for t in self.taken]
        return plan_fetches(pieces, self.stretches, taken, (base, self.l2), self.hop, policy, within)


@lru_cache(maxsize=256)  # many drafts differ in what constants do not see
def divide(passage: Passage) -> Division | NoPlace:
    """The best division found, or at which step not even all constants together can pass."""
    try:
        return _divide(passage)
    except NoPlaceError as e:
        return NoPlace(e.step)


def _divide(passage: Passage) -> Division:
    search = _Search(passage, passage.bound())
    best = search.first()
    if len(passage.sizes) <= FEW:
        return search.policies(search.best_of(best, _every(passage.sizes)))
    best = search.best_of(best, _beginnings(passage))
    best = search.changes(best)
    return search.policies(best)


class _Search:
    def __init__(self, passage: Passage, bound: float) -> None:
        self.passage, self.bound, self.policy, self.tries = passage, bound, POLICIES[0], 0
        self.seen: set[frozenset[str]] = set()

    def first(self) -> Division:
        """Nothing stays; the policy that does best then is that of the search."""
        empty: frozenset[str] = frozenset()
        found = [(self._whole(empty, p), p) for p in FIRST]
        best, self.policy = min(found, key=lambda x: x[0].key)
        self.seen.add(empty)
        return best

    def policies(self, best: Division) -> Division:
        if self._close(best):
            return best
        found = [self._whole(frozenset(best.stay), p) for p in POLICIES if p != self.policy]
        return min([best, *found], key=lambda d: d.key)

    def best_of(self, best: Division, sets: Iterable[frozenset[str]]) -> Division:
        for stay in sets:
            if self._close(best):
                break
            found = self._try(stay, best)
            best = min(best, found, key=lambda d: d.key) if found else best
        return best

    def changes(self, best: Division) -> Division:
        """One constant more or less, as long as that helps."""
        improved = True
        while improved and self.tries < TRIES and not self._close(best):
            improved = False
            stay = frozenset(best.stay)
            for root in sorted(self.passage.sizes, key=lambda r: (-self.passage.sizes[r], r)):
                found = self._try(stay ^ {root}, best)
                if found is not None and found.key < best.key:
                    best, improved = found, True
                    break
                if self.tries >= TRIES:
                    break
        return best

    def _close(self, best: Division) -> bool:
        return best.plan.cycles <= CLOSE * self.bound

    def _try(self, stay: frozenset[str], best: Division) -> Division | None:
        """None, too, where it surely is not better than the best."""
        if stay in self.seen or sum(self.passage.sizes[r] for r in stay) > self.passage.spare:
            return None
        self.seen.add(stay)
        self.tries += 1
        try:
            return self._weigh(stay, self.policy, best.plan.cycles)
        except NoPlaceError:
            return None

    def _whole(self, stay: frozenset[str], policy: Policy) -> Division:
        found = self._weigh(stay, policy, inf)
        assert found is not None, "nothing takes more than all cycles"
        return found

    def _weigh(self, stay: frozenset[str], policy: Policy, within: float) -> Division | None:
        plan = self.passage.plan(stay, policy, within)
        kept = tuple(r for r in self.passage.sizes if r in stay)
        return None if plan is None else Division(kept, plan, self.bound)


def _every(sizes: Mapping[str, int]) -> Iterator[frozenset[str]]:
    roots = list(sizes)
    return (frozenset(s) for n in range(1, len(roots) + 1) for s in combinations(roots, n))


def _beginnings(passage: Passage) -> Iterator[frozenset[str]]:
    """What is used first, used last, smallest or largest, up to some parts of the room."""
    sizes = passage.sizes
    used = list(sizes)
    sequences = (used, used[::-1], sorted(used, key=lambda r: sizes[r]), sorted(used, key=lambda r: -sizes[r]))
    return chain.from_iterable(_parts(s, sizes, passage.spare) for s in sequences)


def _parts(sequence: Sequence[str], sizes: Mapping[str, int], room: int) -> Iterator[frozenset[str]]:
    for sixteenths in (4, 8, 12, 14, 16):
        stay, left = [], room * sixteenths // 16
        for root in sequence:
            if sizes[root] <= left:
                stay.append(root)
                left -= sizes[root]
        yield frozenset(stay)
