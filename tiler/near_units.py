"""Units: calls whose buffers are in L1 together. A run of them gets places, with the tensors that stay among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tiler.buffers import first_pieces, pieces
from tiler.liveness import Life
from tiler.options import Picked
from tiler.placement import Block, Placement, Spacing, place
from tiler.stays import Stays
from tiler.trailing import Trail


@dataclass(frozen=True, slots=True)
class Trailing:
    """The roots of an input and a result that may overlap."""

    input: str
    result: str
    how: Trail

    def downwards(self, stays: Mapping[str, int]) -> bool:
        return self.how.downwards(stays[self.result] - stays[self.input])


@dataclass(frozen=True, slots=True)
class Unit:
    """Calls first..last, and the bytes of each of their buffers: one call, or a rolled group with one block. Those
    numbered in `early` should be free during the unit before, too."""

    first: int
    last: int
    sizes: tuple[int, ...]
    trail: Trailing | None = None
    early: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Places:
    """Byte offsets in L1: of what `stays` by root, per unit of its `buffers`; the `peak` is the end of the highest."""

    stays: Mapping[str, int]
    buffers: Sequence[tuple[int, ...]]
    peak: int


def units_of(picked: Sequence[Picked], stays: Stays, cores: int, first: int, last: int) -> list[Unit]:
    """The units of calls first..last."""
    units, i = [], first
    while i <= last:
        units.append(_unit(picked[i], stays, cores, i, i > first))
        i = units[-1].last + 1
    return units


def _unit(p: Picked, stays: Stays, cores: int, number: int, follows: bool) -> Unit:
    roll = stays.rolls.get(number)
    if roll is not None:
        return Unit(number, number + len(roll.calls) - 1, (roll.l1_bytes,))
    early = first_pieces(p) if follows and stays.tilings[number].early else ()
    return Unit(number, number, pieces(p.bound, p.choice, cores), _trailing(p), early)


def _trailing(p: Picked) -> Trailing | None:
    trail = p.choice.trail
    if trail is None:
        return None
    return Trailing(p.bound.operands[trail.input].root, p.bound.operands[trail.result].root, trail)


def place_apart(units: Sequence[Unit], lives: Sequence[Life], l1: int) -> Places:
    """Each unit's buffers side by side; where that finds no place, each by itself."""
    staying, spacings = _staying(units, lives)
    whole = [Block(f"{u.first}", sum(u.sizes), i, i) for i, u in enumerate(units)]
    placed = place([*staying, *whole], len(units), l1, spacings)
    if placed.peak <= l1:
        starts = placed.offsets[len(staying) :]
        stacked = [_stacked(at, u.sizes) for at, u in zip(starts, units, strict=True)]
        return Places(_offsets(staying, placed), stacked, placed.peak)
    parts = [Block(f"{u.first} {j}", n, i, i) for i, u in enumerate(units) for j, n in enumerate(u.sizes)]
    placed = place([*staying, *parts], len(units), l1, spacings)
    rest = iter(placed.offsets[len(staying) :])
    return Places(_offsets(staying, placed), [tuple(next(rest) for _ in u.sizes) for u in units], placed.peak)


def _staying(units: Sequence[Unit], lives: Sequence[Life]) -> tuple[list[Block], list[Spacing]]:
    """What stays, by units, and which of it may overlap."""
    number = {call: i for i, u in enumerate(units) for call in range(u.first, u.last + 1)}
    staying = [Block(v.root, v.bytes, number[v.first], number[v.last]) for v in lives]
    place_of = {b.name: i for i, b in enumerate(staying)}
    spacings = [
        Spacing(place_of[t.input], place_of[t.result], t.how.below, t.how.above, t.how.in_place)
        for u in units
        if (t := u.trail) is not None
    ]
    return staying, spacings


_Early = Sequence[tuple[int, ...]]  # per unit, the buffers that should be free during the unit before


def place_early(units: Sequence[Unit], lives: Sequence[Life], l1: int) -> Places | None:
    """Each unit's buffers side by side, and those that should be free during the unit before; of these not all where
    they find no place. None where there are none left."""
    staying, spacings = _staying(units, lives)
    early: _Early = [u.early for u in units]
    while any(early):
        parts = _parts(units, early)
        blocks = [*staying, *(_block(units, part, k % 2 == 0) for k, part in enumerate(parts))]
        placed = place(blocks, len(units), l1, spacings)
        if placed.peak <= l1:
            buffers = _assembled(units, parts, placed.offsets[len(staying) :])
            return Places(_offsets(staying, placed), buffers, placed.peak)
        dropped = _dropped(early, _over(blocks, placed, l1))
        if not dropped:
            return None
        early = [() if i in dropped else e for i, e in enumerate(early)]
    return None


_Part = tuple[int, tuple[int, ...]]  # a unit, and some of its buffers


def _parts(units: Sequence[Unit], early: _Early) -> list[_Part]:
    """Of each unit what should be free before, then the rest."""
    return [
        (i, tuple(n for n in range(len(u.sizes)) if (n in e) == first))
        for i, (u, e) in enumerate(zip(units, early, strict=True))
        for first in (True, False)
    ]


def _block(units: Sequence[Unit], part: _Part, early: bool) -> Block:
    i, chosen = part
    if not chosen:
        return Block("", 0, i, i)
    return Block(f"{units[i].first} {len(chosen)}", sum(units[i].sizes[n] for n in chosen), i - early, i)


def _over(blocks: Sequence[Block], placed: Placement, l1: int) -> set[int]:
    """Units during which something lies above L1."""
    high = [b for b, at in zip(blocks, placed.offsets, strict=True) if at + b.size > l1]
    return {i for b in high for i in range(b.first, b.last + 1)}


def _dropped(early: _Early, over: set[int]) -> set[int]:
    """Units that give up being early: those that lie too high, else those behind them."""
    return {i for i in over if early[i]} or {i + 1 for i in over if early[i + 1 : i + 2] and early[i + 1]}


def _assembled(units: Sequence[Unit], parts: Sequence[_Part], starts: Sequence[int]) -> list[tuple[int, ...]]:
    """Each unit's places, from those of its parts."""
    places = [[0] * len(u.sizes) for u in units]
    for (i, chosen), start in zip(parts, starts, strict=True):
        for n, at in zip(chosen, _stacked(start, [units[i].sizes[n] for n in chosen]), strict=True):
            places[i][n] = at
    return [tuple(p) for p in places]


def _offsets(staying: Sequence[Block], placed: Placement) -> dict[str, int]:
    return {b.name: o for b, o in zip(staying, placed.offsets, strict=False)}


def _stacked(start: int, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(accumulate(sizes[:-1], initial=start)) if sizes else ()
