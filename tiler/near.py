"""Addresses in L1: tensors that stay, at one place over their lives, and between them the buffers of each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiler.bound import BoundCall
from tiler.choice import CallLayout, Choice
from tiler.cost import align16
from tiler.liveness import Life
from tiler.options import Picked
from tiler.placement import Block, Placement, Spacing, place
from tiler.rolls import roll_layout
from tiler.stays import Stays
from tiler.trailing import Trail

TOGETHER = 64  # calls, or groups that roll, that are placed together with what starts early


@dataclass(frozen=True, slots=True)
class NearPlan:
    """Where everything lies in L1. `stays` and `rings` by root; `ends[i]` is the end of the highest byte in use during
    call i. `downwards`: calls whose outermost loop runs downwards, since their result trails an input from above.

    `sizes[i]` are the bytes of its buffers, `lacking[i]` what it lacks: all zero where everything fits.
    """

    stays: Mapping[str, int]
    rings: Mapping[str, int]
    layouts: tuple[CallLayout, ...]
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    lacking: tuple[int, ...]
    downwards: frozenset[int]


def pieces(bound: BoundCall, choice: Choice, cores: int) -> tuple[int, ...]:
    """Bytes of each buffer of a call, in the order of `layout`; what comes together has one."""
    buffers = [align16(n) for i, n in enumerate(_buffer_bytes(choice)) for _ in range(1 + choice.double[i]) if n >= 0]
    scratch = [choice.scratch[s.name] * (cores if s.per == "core" else 1) for s in bound.scratch]
    return (*buffers, *scratch, align16(choice.accumulator))


def layout(bound: BoundCall, choice: Choice, places: Sequence[int]) -> CallLayout:
    """A call's buffers at the places given per piece."""
    left = iter(places)
    found = [
        tuple(next(left) for _ in range(1 + choice.double[i])) if n >= 0 else ()
        for i, n in enumerate(_buffer_bytes(choice))
    ]
    for b in choice.bundles:
        for i, offset in zip(b.operands[1:], b.offsets[1:], strict=True):
            found[i] = tuple(at + offset for at in found[b.lead])
    buffers = tuple(found)
    scratch = {s.name: (next(left), choice.scratch[s.name]) for s in bound.scratch}
    end = next(left)
    return CallLayout(buffers, scratch, (end, choice.accumulator) if bound.accumulate is not None else None)


def _buffer_bytes(choice: Choice) -> list[int]:
    """Per operand; the first of those that come together has the bytes of all, the others -1: they lie in it."""
    sizes = list(choice.tile_bytes)
    for b in choice.bundles:
        sizes[b.lead] = b.pitch
        for i in b.operands[1:]:
            sizes[i] = -1
    return sizes


def place_near(picked: Sequence[Picked], stays: Stays, l1: int, cores: int) -> NearPlan:
    """Places for everything, calls joined by a tensor that stays or by a rolled group together."""
    plan = _Places({}, {}, [], [], [], [], set())
    early = [(i - 1, i) for i, tiling in stays.tilings.items() if tiling.early]
    for first, last in runs(stays.lives, len(picked), (*stays.spans, *early)):
        if not _place_together(plan, picked, stays, l1, cores, first, last):
            for a, b in runs(stays.lives, len(picked), stays.spans):
                if first <= a <= last:
                    units, here = _here(picked, stays, cores, a, b)
                    _settle(plan, picked, stays, units, here, _place_run(units, here, l1), l1)
    return NearPlan(
        plan.stays,
        plan.rings,
        tuple(plan.layouts),
        tuple(plan.ends),
        tuple(plan.sizes),
        tuple(plan.lacking),
        frozenset(plan.downwards),
    )


def _here(picked: Sequence[Picked], stays: Stays, cores: int, first: int, last: int) -> tuple[list[_Unit], list[Life]]:
    """The units of some calls, and what stays during them."""
    return _units(picked, stays, cores, first, last), [v for v in stays.lives if first <= v.first <= last]


def _place_together(
    plan: _Places, picked: Sequence[Picked], stays: Stays, l1: int, cores: int, first: int, last: int
) -> bool:
    """Places for a run of calls with what starts early among them, if there are some."""
    units, here = _here(picked, stays, cores, first, last)
    if len(units) > TOGETHER:
        return False
    placed = _place_early(units, *_staying(units, here), l1)
    if placed is not None:
        _settle(plan, picked, stays, units, here, placed, l1)
    return placed is not None


_Placed = tuple[dict[str, int], list[tuple[int, ...]], int]  # what stays, each unit's pieces, the peak


def _settle(
    plan: _Places,
    picked: Sequence[Picked],
    stays: Stays,
    units: Sequence[_Unit],
    here: Sequence[Life],
    placed: _Placed,
    l1: int,
) -> None:
    at, places, peak = placed
    plan.stays.update(at)
    for unit, q in zip(units, places, strict=True):
        _lay_out(plan, picked, stays, unit, q)
        if unit.trail is not None and unit.trail.downwards(at):
            plan.downwards.add(unit.first)
        for i in range(unit.first, unit.last + 1):
            plan.ends.append(_end(unit.sizes, q, here, at, i))
            plan.sizes.append(sum(unit.sizes))
            plan.lacking.append(max(0, peak - l1))


@dataclass
class _Places:
    stays: dict[str, int]
    rings: dict[str, int]
    layouts: list[CallLayout]
    ends: list[int]
    sizes: list[int]
    lacking: list[int]
    downwards: set[int]


@dataclass(frozen=True, slots=True)
class _Trailing:
    """The roots of an input and a result that may overlap."""

    input: str
    result: str
    how: Trail

    def downwards(self, stays: Mapping[str, int]) -> bool:
        return self.how.downwards(stays[self.result] - stays[self.input])


@dataclass(frozen=True, slots=True)
class _Unit:
    """Calls whose buffers are there together, and the bytes of each: one call, or a rolled group with one block. Those
    numbered in `early` should be free during the unit before, too."""

    first: int
    last: int
    sizes: tuple[int, ...]
    trail: _Trailing | None = None
    early: tuple[int, ...] = ()


def _units(picked: Sequence[Picked], stays: Stays, cores: int, first: int, last: int) -> list[_Unit]:
    units, i = [], first
    while i <= last:
        roll = stays.rolls.get(i)
        p = picked[i]
        end = i if roll is None else i + len(roll.calls) - 1
        sizes = pieces(p.bound, p.choice, cores) if roll is None else (roll.l1_bytes,)
        early = first_pieces(p) if roll is None and i > first and stays.tilings[i].early else ()
        units.append(_Unit(i, end, sizes, _trailing(p) if roll is None else None, early))
        i = end + 1
    return units


def first_pieces(p: Picked) -> tuple[int, ...]:
    """The numbers, among a call's pieces, of buffers that are filled before its loops."""
    result, number, c = [], 0, p.choice
    for i, size in enumerate(_buffer_bytes(c)):
        if size < 0:
            continue
        if p.bound.operands[i].role != "out" and size and (c.depth[i] == 0 or (c.depth[i] == 1 and c.double[i])):
            result.append(number)
        number += 1 + c.double[i]
    return tuple(result)


def _trailing(p: Picked) -> _Trailing | None:
    trail = p.choice.trail
    if trail is None:
        return None
    return _Trailing(p.bound.operands[trail.input].root, p.bound.operands[trail.result].root, trail)


def _lay_out(plan: _Places, picked: Sequence[Picked], stays: Stays, unit: _Unit, places: Sequence[int]) -> None:
    roll = stays.rolls.get(unit.first)
    if roll is None:
        p = picked[unit.first]
        plan.layouts.append(layout(p.bound, p.choice, places))
        return
    rings, layouts = roll_layout(roll, places[0])
    plan.rings.update({r.root: at for r, at in zip(roll.rings, rings, strict=True)})
    plan.layouts.extend(layouts)


def runs(lives: Sequence[Life], calls: int, rolls: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int]]:
    """The calls in consecutive runs (first, last) between which nothing stays or rolls on."""
    spans = [*((v.first, v.last) for v in lives), *rolls]
    result, first = [], 0
    for i in range(calls):
        if not any(a <= i < b for a, b in spans):
            result.append((first, i))
            first = i + 1
    return result


def _place_run(units: Sequence[_Unit], lives: Sequence[Life], l1: int) -> _Placed:
    """Each unit's buffers side by side; where that finds no place, each by itself."""
    staying, spacings = _staying(units, lives)
    whole = [Block(f"{u.first}", sum(u.sizes), i, i) for i, u in enumerate(units)]
    placed = place([*staying, *whole], len(units), l1, spacings)
    if placed.peak <= l1:
        starts = placed.offsets[len(staying) :]
        return (
            _offsets(staying, placed),
            [_stacked(at, u.sizes) for at, u in zip(starts, units, strict=True)],
            placed.peak,
        )
    parts = [Block(f"{u.first} {j}", n, i, i) for i, u in enumerate(units) for j, n in enumerate(u.sizes)]
    placed = place([*staying, *parts], len(units), l1, spacings)
    rest = iter(placed.offsets[len(staying) :])
    return _offsets(staying, placed), [tuple(next(rest) for _ in u.sizes) for u in units], placed.peak


def _staying(units: Sequence[_Unit], lives: Sequence[Life]) -> tuple[list[Block], list[Spacing]]:
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


def _place_early(
    units: Sequence[_Unit], staying: Sequence[Block], spacings: Sequence[Spacing], l1: int
) -> _Placed | None:
    """Each unit's buffers side by side, and those that should be free during the unit before; of these not all where
    they find no place. None where there are none left."""
    early = [u.early for u in units]
    while any(early):
        parts = [
            (i, tuple(n for n in range(len(u.sizes)) if (n in e) == first))
            for i, (u, e) in enumerate(zip(units, early, strict=True))
            for first in (True, False)
        ]
        blocks = [
            Block(f"{units[i].first} {len(chosen)}", sum(units[i].sizes[n] for n in chosen), i - (k % 2 == 0), i)
            if chosen
            else Block("", 0, i, i)
            for k, (i, chosen) in enumerate(parts)
        ]
        placed = place([*staying, *blocks], len(units), l1, spacings)
        starts = placed.offsets[len(staying) :]
        if placed.peak <= l1:
            return _offsets(staying, placed), _assembled(units, parts, starts), placed.peak
        over = _over([*staying, *blocks], placed, l1)
        dropped = {i for i in over if early[i]} or {i + 1 for i in over if early[i + 1 : i + 2] and early[i + 1]}
        if not dropped:
            return None
        early = [() if i in dropped else e for i, e in enumerate(early)]
    return None


def _over(blocks: Sequence[Block], placed: Placement, l1: int) -> set[int]:
    """Units during which something lies above L1."""
    high = [b for b, at in zip(blocks, placed.offsets, strict=True) if at + b.size > l1]
    return {i for b in high for i in range(b.first, b.last + 1)}


def _assembled(
    units: Sequence[_Unit], parts: Sequence[tuple[int, tuple[int, ...]]], starts: Sequence[int]
) -> list[tuple[int, ...]]:
    """Each unit's places, from those of its parts."""
    places = [[0] * len(u.sizes) for u in units]
    for (i, chosen), start in zip(parts, starts, strict=True):
        for n, at in zip(chosen, _stacked(start, [units[i].sizes[n] for n in chosen]), strict=True):
            places[i][n] = at
    return [tuple(p) for p in places]


def _offsets(staying: Sequence[Block], placed: Placement) -> dict[str, int]:
    return {b.name: o for b, o in zip(staying, placed.offsets, strict=False)}


def _stacked(start: int, sizes: Sequence[int]) -> tuple[int, ...]:
    places = []
    for n in sizes:
        places.append(start)
        start += n
    return tuple(places)


def _end(
    sizes: Sequence[int], places: Sequence[int], lives: Sequence[Life], stays: Mapping[str, int], call: int
) -> int:
    alive = [stays[v.root] + v.bytes for v in lives if v.first <= call <= v.last]
    return max([p + n for p, n in zip(places, sizes, strict=True) if n] + alive, default=0)


def gaps(near: NearPlan, stays: Stays, l1: int) -> tuple[int, ...]:
    """What each call's tiles may take together: the widest room between the tensors that stay, or what was planned
    for them where they are spread over several; with tensors that end there what was planned."""
    return tuple(
        stays.room[i]
        if stays.ends[i]
        else max(_widest([(near.stays[v.root], v) for v in stays.lives if v.first <= i <= v.last], l1), size)
        for i, size in enumerate(near.sizes)
    )


def _widest(alive: Sequence[tuple[int, Life]], l1: int) -> int:
    widest = end = 0
    for at, v in sorted(alive, key=lambda a: a[0]):
        widest, end = max(widest, at - end), at + align16(v.bytes)
    return max(widest, l1 - end)
