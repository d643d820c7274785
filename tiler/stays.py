"""Which activations stay in L1 from the call that makes them to their last reader, copied neither out nor in.

One choice per network, exact: dynamic programming over the calls in their order. A state is the set of tensors that
stay across a call boundary; at each call those born there are kept or not, and the call's tilings compete for what
the tensors alive leave of L1 (its frontier, `CallOptions.key`). Only addresses are left out: sizes must fit, places
are found afterwards (`tiler/near.py`), and where there are none some bytes are set aside and the choice is made anew.
So the first answer's cost is a lower bound of what tilings and staying tensors can reach together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiler.frontier import Frontier
from tiler.liveness import Life
from tiler.objective import PARTS
from tiler.options import CallOptions, Where
from tiler.placement import Block
from tiler.rolling import RollPlan
from tiler.rolls import Rolls

STATES = 4096  # sets of staying tensors kept at a boundary; above, the cheapest, and the answer is not proven

Cost = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Stays:
    """The tensors that stay, and what they leave: `room[i]` bytes of L1 for the tiles of call i.

    `rolls` are the groups that roll, by their first call: their calls have no room, their plans hold all they need.
    `cost` is the sum of the calls' keys; `proven` says that nothing in the space costs less.
    """

    lives: tuple[Life, ...]
    room: tuple[int, ...]
    rolls: Mapping[int, RollPlan]
    cost: Cost
    proven: bool

    @property
    def inner(self) -> frozenset[str]:
        """Roots that only ever exist by rows."""
        return frozenset(r for plan in self.rolls.values() for r in plan.inner)

    @property
    def roots(self) -> frozenset[str]:
        return frozenset(v.root for v in self.lives)


@dataclass(frozen=True, slots=True)
class _State:
    """The cheapest way to a set of tensors alive in L1 (bits of the candidates): all that were kept so far."""

    cost: Cost
    kept: int
    rolled: tuple[tuple[int, int, int], ...] = ()  # (first call, last call, number of the plan)


def choose_stays(
    options: Sequence[CallOptions],
    candidates: Sequence[Life],
    l1: int,
    aside: Sequence[int],
    staged: frozenset[str] = frozenset(),
    rolls: Rolls | None = None,
) -> Stays | None:
    """The cheapest choice, `aside[i]` bytes of L1 unused where tensors stay during call i; `staged` buffers are in L3
    where they do not stay; with `rolls`, groups may roll. None where some call fits no L1 at all."""
    return _Choice(options, candidates, l1, aside, staged, rolls).run()


class _Choice:
    def __init__(
        self,
        options: Sequence[CallOptions],
        candidates: Sequence[Life],
        l1: int,
        aside: Sequence[int],
        staged: frozenset[str],
        rolls: Rolls | None,
    ) -> None:
        self.options, self.l1, self.aside, self.staged, self.rolls = options, l1, aside, staged, rolls
        self.lives = [v for v in candidates if Block(v.root, v.bytes, 0, 0).size <= l1]
        self.sizes = [Block(v.root, v.bytes, 0, 0).size for v in self.lives]
        self.used = [self._used(o) for o in options]
        self.frontiers: dict[tuple[int, int], Frontier] = {}

    def _used(self, o: CallOptions) -> int:
        """Candidates that a call reads or writes."""
        roots = {x.root for b in o.bound for x in b.operands}
        return sum(1 << i for i, v in enumerate(self.lives) if v.root in roots)

    def run(self) -> Stays | None:
        behind: list[dict[int, _State]] = [{} for _ in range(len(self.options) + 1)]
        behind[0][0] = _State((0.0,) * PARTS, 0)
        proven = True
        for i in range(len(self.options)):
            if len(behind[i]) > STATES:
                proven = False
                behind[i] = dict(sorted(behind[i].items(), key=lambda s: (s[1].cost, s[0]))[:STATES])
            self._step(i, behind[i], behind[i + 1])
            for last in [] if self.rolls is None else self.rolls.lasts.get(i, []):
                self._roll(i, last, behind[i], behind[last + 1])
        return self._stays(behind[-1][0], proven) if 0 in behind[-1] else None

    def _stays(self, best: _State, proven: bool) -> Stays:
        kept = [i for i in range(len(self.lives)) if best.kept >> i & 1]
        room = tuple(self._room(c, self._alive(c, best.kept)) for c in range(len(self.options)))
        rolls = {first: self._plan(first, last, best.kept, n) for first, last, n in best.rolled}
        spans = [(first, last) for first, last, _ in best.rolled]
        return Stays(tuple(widened(self.lives[i], spans) for i in kept), room, rolls, best.cost, proven)

    def _step(self, call: int, states: dict[int, _State], result: dict[int, _State]) -> None:
        """Adds the states behind a call."""
        born = [i for i, v in enumerate(self.lives) if v.first == call]
        last = sum(1 << i for i, v in enumerate(self.lives) if v.last == call)
        for before, state in states.items():
            for chosen in range(1 << len(born)):
                new = sum(1 << b for j, b in enumerate(born) if chosen >> j & 1)
                cost = self._cost(call, before | new)
                if cost is not None:
                    _add(result, (before | new) & ~last, state, cost, new, ())

    def _roll(self, first: int, last: int, states: dict[int, _State], result: dict[int, _State]) -> None:
        """Adds the states behind a rolled group: of what is made in it only the result of its last call may stay."""
        assert self.rolls is not None
        root = self.rolls.out(last)
        out = sum(1 << i for i, v in enumerate(self.lives) if v.root == root and v.first == last)
        ended = sum(1 << i for i, v in enumerate(self.lives) if first <= v.last <= last)
        for before, state in states.items():
            for new in (0, out) if out else (0,):
                alive = before | new
                taken = sum(s for i, s in enumerate(self.sizes) if alive >> i & 1)
                found = self.rolls.frontier(first, last, self._roots(alive, first, last))
                at = found.at(self.l1 - taken - max(self.aside[first : last + 1]))
                if at is not None:
                    cost = tuple(found.keys[at].tolist())
                    _add(result, alive & ~ended, state, cost, new, ((first, last, int(found.ids[at, -1])),))

    def _roots(self, alive: int, first: int, last: int) -> frozenset[str]:
        """Of some candidates the roots that calls first..last use."""
        used = 0
        for call in range(first, last + 1):
            used |= self.used[call]
        return frozenset(v.root for i, v in enumerate(self.lives) if (alive & used) >> i & 1)

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
        taken = sum(s for i, s in enumerate(self.sizes) if alive >> i & 1)
        return self.l1 - taken - (self.aside[call] if alive else 0)

    def _cost(self, call: int, alive: int) -> Cost | None:
        room = self._room(call, alive)
        here = alive & self.used[call]
        if room < 0:
            return None
        if (call, here) not in self.frontiers:
            stays = frozenset(v.root for i, v in enumerate(self.lives) if here >> i & 1)
            self.frontiers[call, here] = self.options[call].frontier(Where(self.staged, stays), None)
        found = self.frontiers[call, here]
        at = found.at(room)
        return None if at is None else tuple(found.keys[at].tolist())


def _add(
    result: dict[int, _State],
    behind: int,
    state: _State,
    cost: Cost,
    new: int,
    rolled: tuple[tuple[int, int, int], ...],
) -> None:
    """Keeps the cheapest way to a state."""
    total = tuple(a + b for a, b in zip(state.cost, cost, strict=True))
    if behind not in result or total < result[behind].cost:
        result[behind] = _State(total, state.kept | new, (*state.rolled, *rolled))


def widened(life: Life, spans: Sequence[tuple[int, int]]) -> Life:
    """A life that begins or ends inside a rolled group lasts for the whole of it."""
    first = min([life.first, *(a for a, b in spans if a <= life.first <= b)])
    last = max([life.last, *(b for a, b in spans if a <= life.last <= b)])
    return Life(life.root, life.bytes, first, last)
