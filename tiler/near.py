"""Addresses in L1: tensors that stay, at one place over their lives, and between them the buffers of each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiler.bound import BoundCall
from tiler.choice import Choice
from tiler.cost import align16
from tiler.liveness import Life
from tiler.options import Picked
from tiler.placement import Block, Placement, place
from tiler.stays import Stays


@dataclass(frozen=True, slots=True)
class CallLayout:
    """L1 offsets of one call: operands' buffers, scratch (offset, bytes of one piece), the accumulator (offset,
    bytes)."""

    buffers: tuple[tuple[int, ...], ...]
    scratch: Mapping[str, tuple[int, int]]
    accumulator: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class NearPlan:
    """Where everything lies in L1. `stays` by root; `ends[i]` is the end of the highest byte in use during call i.

    `sizes[i]` are the bytes of its buffers, `lacking[i]` what it lacks: all zero where everything fits.
    """

    stays: Mapping[str, int]
    layouts: tuple[CallLayout, ...]
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    lacking: tuple[int, ...]


def pieces(bound: BoundCall, choice: Choice, cores: int) -> tuple[int, ...]:
    """Bytes of each buffer of a call, in the order of `layout`."""
    buffers = [
        align16(n) for n, double in zip(choice.tile_bytes, choice.double, strict=True) for _ in range(1 + double)
    ]
    scratch = [choice.scratch[s.name] * (cores if s.per == "core" else 1) for s in bound.scratch]
    return (*buffers, *scratch, align16(choice.accumulator))


def layout(bound: BoundCall, choice: Choice, places: Sequence[int]) -> CallLayout:
    """A call's buffers at the places given per piece."""
    left = iter(places)
    buffers = tuple(tuple(next(left) for _ in range(1 + double)) for double in choice.double)
    scratch = {s.name: (next(left), choice.scratch[s.name]) for s in bound.scratch}
    end = next(left)
    return CallLayout(buffers, scratch, (end, choice.accumulator) if bound.accumulate is not None else None)


def place_near(picked: Sequence[Picked], lives: Sequence[Life], l1: int, cores: int) -> NearPlan:
    """Places for everything, calls joined by a tensor that stays together."""
    stays: dict[str, int] = {}
    layouts: list[CallLayout] = []
    ends: list[int] = []
    taken: list[int] = []
    lacking: list[int] = []
    for first, last in runs(lives, len(picked)):
        here = [v for v in lives if first <= v.first <= last]
        sizes = [pieces(p.bound, p.choice, cores) for p in picked[first : last + 1]]
        at, places, peak = _place_run(sizes, here, first, l1)
        stays.update(at)
        layouts.extend(layout(p.bound, p.choice, q) for p, q in zip(picked[first : last + 1], places, strict=True))
        ends.extend(_end(sizes[i - first], places[i - first], here, at, i) for i in range(first, last + 1))
        taken.extend(sum(s) for s in sizes)
        lacking.extend([max(0, peak - l1)] * (last - first + 1))
    return NearPlan(stays, tuple(layouts), tuple(ends), tuple(taken), tuple(lacking))


def runs(lives: Sequence[Life], calls: int) -> list[tuple[int, int]]:
    """The calls in consecutive runs (first, last) between which nothing stays."""
    result, first = [], 0
    for i in range(calls):
        if not any(v.first <= i < v.last for v in lives):
            result.append((first, i))
            first = i + 1
    return result


def _place_run(
    sizes: Sequence[tuple[int, ...]], lives: Sequence[Life], first: int, l1: int
) -> tuple[dict[str, int], list[tuple[int, ...]], int]:
    """Each call's buffers side by side; where that finds no place, each by itself."""
    staying = [Block(v.root, v.bytes, v.first - first, v.last - first) for v in lives]
    whole = [Block(f"{i}", sum(s), i, i) for i, s in enumerate(sizes)]
    placed = place([*staying, *whole], len(sizes), l1)
    if placed.peak <= l1:
        starts = placed.offsets[len(staying) :]
        return _offsets(staying, placed), [_stacked(at, s) for at, s in zip(starts, sizes, strict=True)], placed.peak
    parts = [Block(f"{i} {j}", n, i, i) for i, s in enumerate(sizes) for j, n in enumerate(s)]
    placed = place([*staying, *parts], len(sizes), l1)
    rest = iter(placed.offsets[len(staying) :])
    return _offsets(staying, placed), [tuple(next(rest) for _ in s) for s in sizes], placed.peak


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
    for them where they are spread over several."""
    return tuple(
        max(_widest([(near.stays[v.root], v) for v in stays.lives if v.first <= i <= v.last], l1), size)
        for i, size in enumerate(near.sizes)
    )


def _widest(alive: Sequence[tuple[int, Life]], l1: int) -> int:
    widest = end = 0
    for at, v in sorted(alive, key=lambda a: a[0]):
        widest, end = max(widest, at - end), at + align16(v.bytes)
    return max(widest, l1 - end)
