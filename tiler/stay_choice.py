"""Which activations stay in L1 from the call that makes them to their last reader, copied neither out nor in.

One choice per network, exact: dynamic programming over the calls in their order. A state is the set of tensors that
stay across a call boundary; at each call those born there are kept or not, and the call's tilings compete for what
the tensors alive leave of L1 (its frontier, `CallOptions.key`). Only addresses are left out: sizes must fit, places
are found afterwards (`tiler/near.py`), and where there are none some bytes are set aside and the choice is made anew.
So the first answer's cost is a lower bound of what tilings and staying tensors can reach together. Where a boundary
has more than `STATES` sets, the cheapest go on, and the bound is what the cheapest of the dropped could still have
reached: its cost, and behind it every call at its best whatever else is in L1 (`_remainders`).

The greatest bytes of activations left in L2 can be minimised first, as exactly: one pass finds the least that some
choice reaches at its fullest call, a second the cheapest choice that never exceeds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

from tiler.first_copies import Points, plain_points
from tiler.liveness import Life
from tiler.objective import PARTS
from tiler.options import CallOptions
from tiler.placement import Block
from tiler.roll_plans import RollPlan
from tiler.rolls import Rolls
from tiler.stays import Stays, widened
from tiler.tails import Early, FirstCopies, Move, Tail, best, least, onwards, relaxed
from tiler.trailing import whole
from tiler.where import Where

STATES = 4096  # sets of staying tensors kept at a boundary; above, the cheapest
SUBSETS = 8  # of at most so many tensors every set is tried where a call's least cost is bounded

_T = TypeVar("_T")


def choose_stays(
    options: Sequence[CallOptions],
    lives: Sequence[Life],
    candidates: Sequence[Life],
    l1: int,
    aside: Sequence[int],
    staged: frozenset[str] = frozenset(),
    rolls: Rolls | None = None,
    least_left: bool = False,
    early: Early = Early.MOST,
) -> Stays | None:
    """The cheapest choice among `candidates` of `lives`, `aside[i]` bytes of L1 unused where tensors stay during call
    i; `staged` buffers are in L3 where they do not stay; with `rolls`, groups may roll; with `least_left` it is the
    cheapest of those that leave the least activations in L2 at once; `early` says what may be counted on of
    first copies that the call before starts. None where some call fits no L1 at all."""
    choice = _Choice(options, lives, candidates, l1, aside, staged, rolls, early)
    return choice.run(choice.least_left() if least_left else None) or choice.run(None)


class _Choice:
    def __init__(
        self,
        options: Sequence[CallOptions],
        lives: Sequence[Life],
        candidates: Sequence[Life],
        l1: int,
        aside: Sequence[int],
        staged: frozenset[str],
        rolls: Rolls | None,
        early: Early,
    ) -> None:
        self.options, self.l1, self.aside, self.staged, self.rolls = options, l1, aside, staged, rolls
        self.elsewhere = [v for v in lives if v.root not in staged]
        self.lives = [v for v in candidates if _size(v) <= l1]
        self.sizes = [_size(v) for v in self.lives]
        self.far = [0 if v.root in staged else v.bytes for v in self.lives]
        self.used = [self._used(o) for o in options]
        self.ending = [self._ending(i, o) for i, o in enumerate(options)]
        self.first = FirstCopies(options, l1, early)
        self.points: dict[tuple[int, int], Points] = {}
        self.proven = True
        self.level = [self._meeting(i, i) for i in range(len(options))]

    def _used(self, o: CallOptions) -> int:
        """Candidates that a call reads or writes."""
        roots = {x.root for b in o.bound for x in b.operands}
        return sum(1 << i for i, v in enumerate(self.lives) if v.root in roots)

    def _meeting(self, first: int, last: int, without: frozenset[str] = frozenset()) -> int:
        """Bytes of all that lives during some of the calls, were nothing in L1."""
        return sum(v.bytes for v in self.elsewhere if v.first <= last and first <= v.last and v.root not in without)

    def _ending(self, call: int, o: CallOptions) -> tuple[int, int]:
        """Candidates that a call is the last to read, and those it makes, of those that it uses whole and once."""
        dying = sum(1 << i for i, v in enumerate(self.lives) if v.last == call and _once_whole(o, v, "in"))
        born = sum(1 << i for i, v in enumerate(self.lives) if v.first == call and _once_whole(o, v, "out"))
        return dying, born

    def _ends(self, call: int, alive: int) -> int:
        """Of the tensors alive during a call those that may overlap: there must be both, and one result."""
        dying, born = (alive & e for e in self.ending[call])
        return dying | born if dying and born.bit_count() == 1 else 0

    # ---- the two passes ----

    def run(self, most_left: int | None) -> Stays | None:
        """The cheapest way through, never more than `most_left` bytes of activations in L2."""
        behind: list[dict[int, list[Tail]]] = [{} for _ in range(len(self.options) + 1)]
        behind[0][0] = [Tail((0.0,) * PARTS)]
        dropped = float("inf")
        for i in range(len(self.options)):
            if sum(map(len, behind[i].values())) > STATES:
                behind[i] = {mask: [relaxed(tails)] for mask, tails in behind[i].items()}
            behind[i], others = self._narrowed(behind[i], lambda tails: tails[0].cost)
            if others:
                dropped = min(dropped, others[0][0].cost[0] + self._remainders[i])
            for before, tails in behind[i].items():
                for move in self._moves(i, before):
                    if most_left is None or move.left <= most_left:
                        found = behind[move.last + 1]
                        found[move.behind] = best([*found.get(move.behind, []), *onwards(self.first, i, tails, move)])
        return self._stays(behind[-1][0][0], dropped) if 0 in behind[-1] else None

    def least_left(self) -> int | None:
        """The least bytes of activations in L2 at the fullest call, over all ways through."""
        behind: list[dict[int, int]] = [{} for _ in range(len(self.options) + 1)]
        behind[0][0] = 0
        for i in range(len(self.options)):
            behind[i], _ = self._narrowed(behind[i], lambda most: most)
            for before, most in behind[i].items():
                for move in self._moves(i, before):
                    found, left = behind[move.last + 1], max(most, move.left)
                    found[move.behind] = min(left, found.get(move.behind, left))
        return behind[-1].get(0)

    def _narrowed(self, states: dict[int, _T], key: Callable[[_T], Any]) -> tuple[dict[int, _T], list[_T]]:
        """All states, or nothing staying (from there every call still fits) and the best so many; and the others, best
        first."""
        if len(states) <= STATES:
            return states, []
        self.proven = False
        ranked = sorted(states.items(), key=lambda s: (s[0] != 0, key(s[1]), s[0]))
        return dict(ranked[:STATES]), [s for _, s in ranked[STATES:]]

    @cached_property
    def _remainders(self) -> list[float]:
        """From each call on, an objective that nothing gets below: each call at its best, whatever else is in L1."""
        result = [0.0] * (len(self.options) + 1)
        for i in reversed(range(len(self.options))):
            ways = [self._least(i) + result[i + 1]]
            for last in [] if self.rolls is None else self.rolls.lasts.get(i, []):
                ways.append(self._least_rolled(i, last) + result[last + 1])
            result[i] = min(ways)
        return result

    def _least(self, call: int) -> float:
        """Over every set of its tensors that may stay."""
        used = [i for i in range(len(self.lives)) if self.used[call] >> i & 1]
        if len(used) > SUBSETS:
            return 0.0
        sets = (sum(1 << i for j, i in enumerate(used) if chosen >> j & 1) for chosen in range(1 << len(used)))
        return min((least(p, room, self.first.weight) for s in sets for p, room in self._fitting(call, s)), default=0.0)

    def _least_rolled(self, first: int, last: int) -> float:
        """With all of L1, and all around it there, which costs no bytes of it."""
        assert self.rolls is not None
        around = self.rolls.walked(first, last) - self.rolls.inner(first, last)
        found = self.rolls.frontier(first, last, around & {v.root for v in self.lives})
        at = found.at(self.l1)
        return float("inf") if at is None else float(found.keys[at, 0])

    def _stays(self, best: Tail, dropped: float) -> Stays:
        kept = [i for i in range(len(self.lives)) if best.kept >> i & 1]
        alive = [self._alive(c, best.kept) for c in range(len(self.options))]
        room = tuple(self._room(c, a) for c, a in enumerate(alive))
        ends = tuple(self._names(self._ends(c, a)) for c, a in enumerate(alive))
        legs = best.legs()
        rolls = {g.first: self._plan(g.first, g.last, best.kept, g.tiling.ids[0]) for g in legs if g.rolled}
        spans = [(g.first, g.last) for g in legs if g.rolled]
        lives = tuple(widened(self.lives[i], spans) for i in kept)
        tilings = {g.first: g.tiling for g in legs}
        return Stays(lives, room, ends, rolls, tilings, best.cost, min(best.cost[0], dropped), self.proven, best.left)

    def _names(self, chosen: int) -> frozenset[str]:
        return frozenset(v.root for i, v in enumerate(self.lives) if chosen >> i & 1)

    # ---- ways on ----

    def _moves(self, call: int, before: int) -> Iterator[Move]:
        """Over the call by itself, or over each rolled group that begins with it."""
        yield from self._single(call, before)
        for last in [] if self.rolls is None else self.rolls.lasts.get(call, []):
            yield from self._rolled(call, last, before)

    def _single(self, call: int, before: int) -> Iterator[Move]:
        born = [i for i, v in enumerate(self.lives) if v.first == call]
        ended = sum(1 << i for i, v in enumerate(self.lives) if v.last == call)
        for chosen in range(1 << len(born)):
            new = sum(1 << b for j, b in enumerate(born) if chosen >> j & 1)
            alive = before | new
            for points, room in self._fitting(call, alive):
                left = self.level[call] - self._bytes(self.far, alive)
                yield Move(call, alive & ~ended, new, left, points, room)

    def _rolled(self, first: int, last: int, before: int) -> Iterator[Move]:
        """Of what is made in a rolled group only the result of its last call may stay."""
        assert self.rolls is not None
        root = self.rolls.out(last)
        out = sum(1 << i for i, v in enumerate(self.lives) if v.root == root and v.first == last)
        ended = sum(1 << i for i, v in enumerate(self.lives) if first <= v.last <= last)
        for new in (0, out) if out else (0,):
            alive = before | new
            found = self.rolls.frontier(first, last, self._roots(alive, first, last))
            room = self.l1 - self._bytes(self.sizes, alive) - max(self.aside[first : last + 1])
            if found.at(room) is not None:
                left = self._meeting(first, last, self.rolls.inner(first, last)) - self._bytes(self.far, alive)
                yield Move(last, alive & ~ended, new, left, plain_points(found, self.first.weight), room, rolled=True)

    @staticmethod
    def _bytes(sizes: Sequence[int], alive: int) -> int:
        total = 0
        while alive:
            last = alive & -alive
            total += sizes[last.bit_length() - 1]
            alive ^= last
        return total

    def _roots(self, alive: int, first: int, last: int) -> frozenset[str]:
        """Of some candidates the roots that calls first..last use."""
        used = 0
        for call in range(first, last + 1):
            used |= self.used[call]
        return self._names(alive & used)

    def _plan(self, first: int, last: int, kept: int, number: int) -> RollPlan:
        assert self.rolls is not None
        alive = sum(
            1 << i
            for i, v in enumerate(self.lives)
            if kept >> i & 1 and (v.first < first <= v.last or (v.first == last and v.root == self.rolls.out(last)))
        )
        return self.rolls.plan(first, last, self._roots(alive, first, last), number)

    def _alive(self, call: int, kept: int) -> int:
        return sum(1 << i for i, v in enumerate(self.lives) if kept >> i & 1 and v.first <= call <= v.last)

    def _room(self, call: int, alive: int) -> int:
        taken = self._bytes(self.sizes, alive & ~self._ends(call, alive))
        return self.l1 - taken - (self.aside[call] if alive else 0)

    def _fitting(self, call: int, alive: int) -> Iterator[tuple[Points, int]]:
        """The call's tilings and what some tensors leave them; nothing where none fits."""
        room = self._room(call, alive)
        here = alive & self.used[call]
        if room < 0:
            return
        if (call, here) not in self.points:
            where = Where(self.staged, self._names(here), self._names(self._ends(call, here)))
            self.points[call, here] = self.options[call].points(where, self.first.able[call], self.first.cap)
        found = self.points[call, here]
        if len(found) and found.l1[0] <= room:
            yield found, room


def _size(life: Life) -> int:
    return Block(life.root, life.bytes, 0, 0).size


def _once_whole(o: CallOptions, life: Life, role: str) -> bool:
    """Whether every implementation of a call uses a tensor in one operand, as a whole."""
    for b in o.bound:
        used = [x for x in b.operands if x.root == life.root]
        if len(used) != 1 or used[0].role != role or not whole(used[0], life.bytes):
            return False
    return True
