"""Ways through a network up to a call, as far as what follows can tell them apart: cost, and what the last call leaves
the next one's first copies, bytes of L1 and cycles to hide behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tiler.cost import Floats
from tiler.first_copies import Points, Tiling, most_bytes, most_gain, overhead
from tiler.grid import Ints
from tiler.options import CallOptions
from tiler.schedule import BoundOperand
from tiler.weighing import whole_cycles


@dataclass(frozen=True, slots=True)
class Leg:
    """Calls first..last with their tiling, one call or a `rolled` group, behind the legs before."""

    before: Leg | None
    first: int
    last: int
    tiling: Tiling
    rolled: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """A way: the candidates that were `kept` on it (bits), the bytes of activations `left` in L2 at the fullest call;
    during the last call `free` bytes of L1, and `hide` cycles of computing beside which nothing is copied."""

    cost: tuple[float, ...]
    free: int = 0
    hide: float = 0.0
    kept: int = 0
    left: int = 0
    end: Leg | None = None

    def legs(self) -> list[Leg]:
        """From the first."""
        result, leg = [], self.end
        while leg is not None:
            result.append(leg)
            leg = leg.before
        return result[::-1]


@dataclass(frozen=True, slots=True)
class Move:
    """One way on from a set of tensors alive: over calls first..last, `new` candidates kept, `left` bytes of
    activations in L2 meanwhile, by one of some `points` within `room` bytes of L1; `rolled`: they are plans of a
    group."""

    last: int
    behind: int
    new: int
    left: int
    points: Points
    room: int
    rolled: bool = False


class Early(Enum):
    """What a choice counts on that the call before starts of a call's first copies: the most that there could be, so
    that nothing is better; all of them where they fit together; nothing."""

    MOST = "most"
    ALL = "all"
    NONE = "none"


class FirstCopies:
    """Per call: roots whose first copies the call before can start (`able`), the most that there can be of them in
    bytes and cycles, and `overhead`, their cycles beside those of bytes.
    `cap`: no call's first copies take more cycles."""

    def __init__(self, options: Sequence[CallOptions], l1: int, early: Early) -> None:
        self.weight = options[0].objective.cycles if options else 0.0
        self.early = early if self.weight > 0 else Early.NONE
        hop = options[0].target.hops["l2_l1"] if options else None
        self.per_byte = 1 / hop.bytes_per_cycle if hop and early is Early.MOST else 0.0
        uses = [[x for b in o.bound for x in b.operands] for o in options]
        written = {x.root: i for i, operands in enumerate(uses) for x in operands if x.role == "out"}
        self.able = [
            frozenset(x.root for x in operands if i and self.weight and _there(x, i, written))
            for i, operands in enumerate(uses)
        ]
        inputs = [[[x for x in b.operands if x.role != "out"] for b in o.bound] for o in options]
        able = [[[x for x in b if x.root in a] for b in bs] for bs, a in zip(inputs, self.able, strict=True)]
        self.bytes = [max(map(most_bytes, bs)) for bs in able]
        self.cycles = [max(most_gain(b, l1, hop) for b in bs) for bs in able] if hop else []
        self.overhead = [max(overhead(b, hop) for b in bs) if hop and early is Early.MOST else 0.0 for bs in able]
        self.cap = max((most_gain(b, l1, hop) for bs in inputs for b in bs if hop and self.weight), default=0.0)


def _there(x: BoundOperand, call: int, written: dict[str, int]) -> bool:
    """Whether an operand is in L2 before the call before begins."""
    return x.role == "const" or (x.role == "in" and written.get(x.root, -1) < call - 1)


def onwards(first: FirstCopies, call: int, tails: Sequence[Tail], move: Move) -> list[Tail]:
    """The ways over a move that begins with a call, by each of its points that fit."""
    n = int(np.searchsorted(move.points.l1, move.room, side="right"))
    table = move.points.take(slice(n))
    free, hide = _left_behind(first, table, move)
    counted, rest = table.column("cycles"), table.column("rest")
    costs = []
    for t in tails:
        early = table.early(t.free, t.hide, first.per_byte, first.overhead[call])
        cycles = whole_cycles(counted - early)
        moved = table.column("moved"), table.column("transfers")
        cost = np.stack([first.weight * cycles + rest, cycles, *moved], axis=1)
        costs.append(cost + np.array(t.cost))
    cost = np.concatenate(costs)
    result = []
    for k in _unbeaten(cost, np.tile(free, len(tails)), np.tile(hide, len(tails))):
        t, p = tails[k // n], k % n
        cycles = float(cost[k, 1] - t.cost[1])
        tiling = Tiling(tuple(table.ids[p].tolist()), int(counted[p]), cycles, bool(cycles < counted[p]))
        leg = Leg(t.end, call, move.last, tiling, move.rolled)
        kept, left = t.kept | move.new, max(t.left, move.left)
        result.append(Tail(tuple(cost[k].tolist()), int(free[p]), float(hide[p]), kept, left, leg))
    return result


def _left_behind(first: FirstCopies, table: Points, move: Move) -> tuple[Ints, Floats]:
    """Of each point the bytes and the cycles that the call behind the move may use."""
    following = move.last + 1
    idle = following == len(first.able) or first.early is Early.NONE
    most_free, most_hide = (0, 0.0) if idle else (first.bytes[following], first.cycles[following])
    return np.minimum(move.room - table.l1, most_free), np.minimum(table.column("hide"), most_hide)


def _unbeaten(cost: Floats, free: Floats, hide: Floats) -> list[int]:
    """By cost, those that leave more than all cheaper ones."""
    left = np.lexsort([-hide, -free, *cost.T[::-1]])
    kept = []
    while len(left):
        p = left[0]
        kept.append(int(p))
        left = left[(free[left] > free[p]) | (hide[left] > hide[p])]
    return kept


def best(tails: Sequence[Tail]) -> list[Tail]:
    """By cost, those that leave more than all cheaper ones."""
    result: list[Tail] = []
    for t in sorted(tails, key=lambda t: (t.cost, -t.free, -t.hide)):
        if all(t.free > r.free or t.hide > r.hide for r in result):
            result.append(t)
    return result


def relaxed(tails: Sequence[Tail]) -> Tail:
    """One way that is no worse than any: the cheapest, which leaves what any of them does."""
    t = tails[0]
    return Tail(t.cost, max(x.free for x in tails), max(x.hide for x in tails), t.kept, t.left, t.end)


def least(points: Points, room: int, weight: float) -> float:
    """The least cost within `room`, all that can be hidden."""
    return float(points.best(weight)[: int(np.searchsorted(points.l1, room, side="right"))].min())
