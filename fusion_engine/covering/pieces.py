"""Cuts a cover problem into independent pieces at values that every solution needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fusion_engine.covering.items import Item

NEAREST = 512  # how far back the values that a value needs are remembered: farther only finds further cuts
NEAR = (1 << NEAREST) - 1


@dataclass(frozen=True, slots=True)
class Piece:
    """Items that compete with each other; `needed` are the values in it that must be made."""

    items: tuple[Item, ...]
    needed: tuple[int, ...]


def makers_of(items: Iterable[Item]) -> dict[int, list[Item]]:
    """For each value the items that make it."""
    makers: dict[int, list[Item]] = {}
    for item in items:
        for v in item.produces:
            makers.setdefault(v, []).append(item)
    return makers


def viable(items: Sequence[Item]) -> list[Item]:
    """The items all of whose operands can be made in the end."""
    made: set[int] = set()
    left = sorted(items, key=lambda item: item.produces[0])  # makers first, but for some items of several results
    waiting = len(left) + 1
    while len(left) < waiting:
        waiting, again = len(left), []
        for item in left:
            if made.issuperset(item.consumes):
                made.update(item.produces)
            else:
                again.append(item)
        left = again
    return [item for item in items if made.issuperset(item.consumes)] if left else list(items)


def undominated(items: Sequence[Item]) -> list[Item]:
    """Drop items that another one replaces: same values made and demanded, no more cost, calls or later key."""
    best: dict[tuple[tuple[int, ...], tuple[int, ...]], Item] = {}
    for item in items:
        rival = best.get((item.produces, item.consumes))
        if rival is None or _rank(item) < _rank(rival):
            best[item.produces, item.consumes] = item
    return [i for i in items if best[i.produces, i.consumes] is i]


def _rank(item: Item) -> tuple[object, ...]:
    return (item.cost, item.calls, item.key, item.index)


def needed_values(items: Sequence[Item], roots: Iterable[int]) -> frozenset[int]:
    """Values that every solution makes (some of them: the nearest ones are followed), from the last to the first.

    An operand of all makers of such a value is one, however far away it is.
    """
    makers = makers_of(items)
    must = _must(makers)
    needed = set(roots)
    passed = 0  # bit k: the value k before this one
    for v in range(max(needed, default=-1), -1, -1):
        if passed & 1 or v in needed:
            needed.add(v)
            passed |= must.get(v, 0)
            needed.update(_far_operands(v, makers.get(v, ())))
        passed >>= 1
    return frozenset(needed)


def _must(makers: Mapping[int, Sequence[Item]]) -> dict[int, int]:
    """For each value those that must be made with it, itself among them: bit k is the value k before it.

    must(v) = v and what all makers of v need: the union of must over their operands.
    """
    must: dict[int, int] = {}
    for v in sorted(makers):
        common = NEAR
        for item in makers[v]:
            mine = 0
            for c in item.consumes:
                if 0 < v - c < NEAREST:
                    mine |= must.get(c, 1) << (v - c)
            common &= mine
        must[v] = common | 1
    return must


def _far_operands(v: int, makers: Sequence[Item]) -> list[int]:
    """Operands of all makers that are too far before `v` to have a bit."""
    first = makers[0].consumes if makers else ()
    return [c for c in first if v - c >= NEAREST and all(c in item.consumes for item in makers)]


def split(items: Sequence[Item], needed: frozenset[int]) -> list[Piece]:
    """Pieces that share no undecided value, in the order of their last value."""
    leader: dict[int, int] = {}

    def find(v: int) -> int:
        while leader.setdefault(v, v) != v:
            leader[v] = leader[leader[v]]
            v = leader[v]
        return v

    for item in items:
        others = [c for c in item.consumes if c not in needed]
        others += item.produces[1:]
        for v in others:
            first, other = find(item.produces[0]), find(v)
            leader[max(first, other)] = min(first, other)
    groups = {v: find(v) for v in list(leader)}
    grouped: dict[int, list[Item]] = {}
    for item in items:
        v = item.produces[0]
        grouped.setdefault(groups.get(v, v), []).append(item)
    pieces = []
    for members in grouped.values():
        made = {v for item in members for v in item.produces}
        wanted = tuple(sorted(made & needed))
        if wanted:
            pieces.append(Piece(tuple(members), wanted))
    return sorted(pieces, key=lambda p: p.needed[-1])
