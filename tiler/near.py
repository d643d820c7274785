"""Addresses in L1: tensors that stay, at one place over their lives, and between them the buffers of each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiler.buffers import layout
from tiler.choice import CallLayout
from tiler.cost import align16
from tiler.liveness import Life
from tiler.near_units import Places, Unit, place_apart, place_early, units_of
from tiler.options import Picked
from tiler.rolls import roll_layout
from tiler.stays import Stays

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


@dataclass(frozen=True, slots=True)
class _Network:
    picked: Sequence[Picked]
    stays: Stays
    l1: int
    cores: int


@dataclass(frozen=True, slots=True)
class _Run:
    """Units one after the other, what stays among them, and the places of both."""

    units: Sequence[Unit]
    lives: Sequence[Life]
    places: Places


def place_near(picked: Sequence[Picked], stays: Stays, l1: int, cores: int) -> NearPlan:
    """Places for everything, calls joined by a tensor that stays or by a rolled group together."""
    network = _Network(picked, stays, l1, cores)
    early = [(i - 1, i) for i, tiling in stays.tilings.items() if tiling.early]
    found = runs(stays.lives, len(picked), (*stays.spans, *early))
    return _plan(network, [r for first, last in found for r in _placed(network, first, last)])


def _placed(n: _Network, first: int, last: int) -> list[_Run]:
    """Calls between which something stays or starts early: all together, else without what starts early."""
    units, lives = _here(n, first, last)
    places = place_early(units, lives, n.l1) if len(units) <= TOGETHER else None
    if places is not None:
        return [_Run(units, lives, places)]
    apart = [r for r in runs(n.stays.lives, len(n.picked), n.stays.spans) if first <= r[0] <= last]
    return [_Run(u, v, place_apart(u, v, n.l1)) for u, v in (_here(n, a, b) for a, b in apart)]


def _here(n: _Network, first: int, last: int) -> tuple[list[Unit], list[Life]]:
    """The units of some calls, and what stays during them."""
    units = units_of(n.picked, n.stays, n.cores, first, last)
    return units, [v for v in n.stays.lives if first <= v.first <= last]


def _plan(n: _Network, found: Sequence[_Run]) -> NearPlan:
    at = {root: offset for r in found for root, offset in r.places.stays.items()}
    placed = [(r, u, q) for r in found for u, q in zip(r.units, r.places.buffers, strict=True)]
    laid = [_laid_out(n, u, q) for _, u, q in placed]
    calls = [(r, u, q, i) for r, u, q in placed for i in range(u.first, u.last + 1)]
    return NearPlan(
        at,
        {root: offset for rings, _ in laid for root, offset in rings.items()},
        tuple(x for _, layouts in laid for x in layouts),
        tuple(_end(u, q, r, i) for r, u, q, i in calls),
        tuple(sum(u.sizes) for _, u, _, _ in calls),
        tuple(max(0, r.places.peak - n.l1) for r, _, _, _ in calls),
        frozenset(u.first for _, u, _ in placed if u.trail is not None and u.trail.downwards(at)),
    )


def _laid_out(n: _Network, unit: Unit, buffers: Sequence[int]) -> tuple[Mapping[str, int], Sequence[CallLayout]]:
    """The places of a unit's rings by root, and the layouts of its calls."""
    roll = n.stays.rolls.get(unit.first)
    if roll is None:
        p = n.picked[unit.first]
        return {}, [layout(p.bound, p.choice, buffers)]
    rings, layouts = roll_layout(roll, buffers[0])
    return {r.root: at for r, at in zip(roll.rings, rings, strict=True)}, layouts


def _end(unit: Unit, buffers: Sequence[int], run: _Run, call: int) -> int:
    ends = [at + size for at, size in zip(buffers, unit.sizes, strict=True) if size]
    alive = [run.places.stays[v.root] + v.bytes for v in run.lives if v.first <= call <= v.last]
    return max([*ends, *alive], default=0)


def runs(lives: Sequence[Life], calls: int, rolls: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int]]:
    """The calls in consecutive runs (first, last) between which nothing stays or rolls on."""
    spans = [*((v.first, v.last) for v in lives), *rolls]
    result, first = [], 0
    for i in range(calls):
        if not any(a <= i < b for a, b in spans):
            result.append((first, i))
            first = i + 1
    return result


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
