"""Cuts a cover problem into independent pieces at values that every solution needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fusion_engine.covering.items import Item

NEAREST = 48  # how many needed values are remembered per value: more only finds further cuts


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
    """The items all of whose operands can be made in the end, by counting what each still waits for."""
    makers = makers_of(items)
    readers: dict[int, list[Item]] = {}
    waits = {item.index: len(item.consumes) for item in items}
    for item in items:
        for v in item.consumes:
            readers.setdefault(v, []).append(item)
    ready = [item for item in items if not item.consumes]
    made: set[int] = set()
    good: set[int] = set()
    while ready:
        item = ready.pop()
        good.add(item.index)
        for v in item.produces:
            if v in made:
                continue
            made.add(v)
            for reader in readers.get(v, ()):
                waits[reader.index] -= 1
                if waits[reader.index] == 0:
                    ready.append(reader)
    assert all(v in makers for v in made)
    return [item for item in items if item.index in good]


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
    """Values that every solution makes (some of them: the nearest ones are followed).

    must(v) = v and what all makers of v need: the union of must over their operands.
    """
    makers = makers_of(items)
    must: dict[int, frozenset[int]] = {}
    for v in sorted(makers):
        must[v] = _must(v, makers, must)
    needed: set[int] = set()
    todo = list(roots)
    while todo:
        v = todo.pop()
        if v not in needed:
            needed.add(v)
            todo.extend(must[v] - needed)
    return frozenset(needed)


def _must(v: int, makers: Mapping[int, list[Item]], must: Mapping[int, frozenset[int]]) -> frozenset[int]:
    common: frozenset[int] | None = None
    for item in makers[v]:
        # an operand may come later than v only for an item of several outputs; then it counts alone
        mine = frozenset().union(*(must.get(c, frozenset((c,))) for c in item.consumes))
        common = mine if common is None else common & mine
    nearest = sorted(common or (), reverse=True)[:NEAREST]
    return frozenset((v, *nearest))


def split(items: Sequence[Item], needed: frozenset[int]) -> list[Piece]:
    """Pieces that share no undecided value, in the order of their last value."""
    leader: dict[int, int] = {}

    def find(v: int) -> int:
        while leader.setdefault(v, v) != v:
            leader[v] = leader[leader[v]]
            v = leader[v]
        return v

    for item in items:
        first = find(item.produces[0])
        for v in (*item.produces, *(c for c in item.consumes if c not in needed)):
            other = find(v)
            leader[max(first, other)] = first = min(first, other)
    grouped: dict[int, list[Item]] = {}
    for item in items:
        grouped.setdefault(find(item.produces[0]), []).append(item)
    pieces = []
    for members in grouped.values():
        made = {v for item in members for v in item.produces}
        wanted = tuple(sorted(made & needed))
        if wanted:
            pieces.append(Piece(tuple(members), wanted))
    return sorted(pieces, key=lambda p: p.needed[-1])
