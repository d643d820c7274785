"""Which activations stay in L1 from the call that makes them to their last reader, copied neither out nor in.

One choice per network, exact: dynamic programming over the calls in their order. A state is the set of tensors that
stay across a call boundary; at each call those born there are kept or not, and the call's tilings compete for what
the tensors alive leave of L1 (its frontier, `CallOptions.key`). Only addresses are left out: sizes must fit, places
are found afterwards (`tiler/near.py`), and where there are none some bytes are set aside and the choice is made anew.
So the first answer's cost is a lower bound of what tilings and staying tensors can reach together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiler.frontier import Frontier
from tiler.liveness import Life
from tiler.objective import PARTS
from tiler.options import CallOptions, Where
from tiler.placement import Block

STATES = 4096  # sets of staying tensors kept at a boundary; above, the cheapest, and the answer is not proven

Cost = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Stays:
    """The tensors that stay, and what they leave: `room[i]` bytes of L1 for the tiles of call i.

    `cost` is the sum of the calls' keys; `proven` says that nothing in the space costs less.
    """

    lives: tuple[Life, ...]
    room: tuple[int, ...]
    cost: Cost
    proven: bool

    @property
    def roots(self) -> frozenset[str]:
        return frozenset(v.root for v in self.lives)


@dataclass(frozen=True, slots=True)
class _State:
    """The cheapest way to a set of tensors alive in L1 (bits of the candidates): all that were kept so far."""

    cost: Cost
    kept: int


def choose_stays(
    options: Sequence[CallOptions],
    candidates: Sequence[Life],
    l1: int,
    aside: Sequence[int],
    staged: frozenset[str] = frozenset(),
) -> Stays | None:
    """The cheapest choice, `aside[i]` bytes of L1 unused where tensors stay during call i; `staged` buffers are in L3
    where they do not stay. None where some call fits no L1 at all."""
    return _Choice(options, candidates, l1, aside, staged).run()


class _Choice:
    def __init__(
        self,
        options: Sequence[CallOptions],
        candidates: Sequence[Life],
        l1: int,
        aside: Sequence[int],
        staged: frozenset[str],
    ) -> None:
        self.options, self.l1, self.aside, self.staged = options, l1, aside, staged
        self.lives = [v for v in candidates if Block(v.root, v.bytes, 0, 0).size <= l1]
        self.sizes = [Block(v.root, v.bytes, 0, 0).size for v in self.lives]
        self.used = [self._used(o) for o in options]
        self.frontiers: dict[tuple[int, int], Frontier] = {}

    def _used(self, o: CallOptions) -> int:
        """Candidates that a call reads or writes."""
        roots = {x.root for b in o.bound for x in b.operands}
        return sum(1 << i for i, v in enumerate(self.lives) if v.root in roots)

    def run(self) -> Stays | None:
        states, proven = {0: _State((0.0,) * PARTS, 0)}, True
        for i in range(len(self.options)):
            states = self._step(i, states)
            if not states:
                return None
            if len(states) > STATES:
                proven = False
                cheapest = sorted(states.items(), key=lambda s: (s[1].cost, s[0]))[:STATES]
                states = dict(cheapest)
        best = states[0]
        kept = [i for i in range(len(self.lives)) if best.kept >> i & 1]
        room = tuple(self._room(c, self._alive(c, best.kept)) for c in range(len(self.options)))
        return Stays(tuple(self.lives[i] for i in kept), room, best.cost, proven)

    def _step(self, call: int, states: dict[int, _State]) -> dict[int, _State]:
        """The states behind a call."""
        born = [i for i, v in enumerate(self.lives) if v.first == call]
        last = sum(1 << i for i, v in enumerate(self.lives) if v.last == call)
        result: dict[int, _State] = {}
        for before, state in states.items():
            for chosen in range(1 << len(born)):
                new = sum(1 << b for j, b in enumerate(born) if chosen >> j & 1)
                cost = self._cost(call, before | new)
                if cost is None:
                    continue
                total = tuple(a + b for a, b in zip(state.cost, cost, strict=True))
                behind = (before | new) & ~last
                if behind not in result or total < result[behind].cost:
                    result[behind] = _State(total, state.kept | new)
        return result

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
