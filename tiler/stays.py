"""What was chosen to stay in L1 or to roll, and what it leaves the calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiler.first_copies import Tiling
from tiler.liveness import Life
from tiler.options import CallOptions, Picked
from tiler.roll_plans import RollPlan
from tiler.where import Where

Cost = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Stays:
    """The tensors that stay, and what they leave: `room[i]` bytes of L1 for the tiles of call i, and for the tensors of
    `ends[i]`, inputs that it reads for the last time and a result that may overlap them.

    `rolls` are the groups that roll, by their first call: their calls have no room, their plans hold all they need.
    `cost` is the sum of the calls' keys; nothing in the space has a lower objective than `least`, and `proven` says
    that no set was dropped: nothing costs less. `left` are the bytes of activations that lie in L2 at the fullest call.
    """

    lives: tuple[Life, ...]
    room: tuple[int, ...]
    ends: tuple[frozenset[str], ...]
    rolls: Mapping[int, RollPlan]
    tilings: Mapping[int, Tiling]
    cost: Cost
    least: float
    proven: bool
    left: int

    @property
    def inner(self) -> frozenset[str]:
        """Roots that only ever exist by rows."""
        return frozenset(r for plan in self.rolls.values() for r in plan.steps.inner)

    @property
    def roots(self) -> frozenset[str]:
        return frozenset(v.root for v in self.lives)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """First and last call of each group that rolls."""
        return tuple((first, first + len(plan.calls) - 1) for first, plan in self.rolls.items())

    def where(self, call: int, staged: frozenset[str]) -> Where:
        """Where the operands of a call are, `staged` ones in L3."""
        return Where(staged, self.roots, self.ends[call])

    def pick(self, call: int, options: CallOptions, staged: frozenset[str]) -> Picked:
        """The tiling that was chosen for a call."""
        return options.picked(self.tilings[call], self.room[call], self.where(call, staged))


def widened(life: Life, spans: Sequence[tuple[int, int]]) -> Life:
    """A life that begins or ends inside a rolled group lasts for the whole of it."""
    first = min([life.first, *(a for a, b in spans if a <= life.first <= b)])
    last = max([life.last, *(b for a, b in spans if a <= life.last <= b)])
    return Life(life.root, life.bytes, first, last)
