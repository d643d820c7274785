"""The L2 tiles of a call whose L1 tiling is chosen: of every operand in L3 its own, at the least cost, within what L2
has free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from tiler.bound import BoundCall
from tiler.choice import Choice
from tiler.cost import align16
from tiler.l2_tiles import Legs, legs, shapes
from tiler.objective import Objective
from tiler.schedule import BoundOperand, L2Tile
from tiler.target import Hop, Target

MOST = 16  # ways of an operand that are weighed in every combination with those of the others


@dataclass(frozen=True, slots=True)
class _Tiled:
    """What the choice depends on: the operands in L3 of a tiling in L1, the depth of their copies and whether they have
    two halves; cycles of the call, of computing, and of other copies beside that. `hops`: L2 and L1, L3 and L2."""

    operands: tuple[BoundOperand, ...]
    depths: tuple[int, ...]
    halved: tuple[bool, ...]
    axes: tuple[tuple[str, int], ...]
    loops: tuple[tuple[str, int], ...]
    cycles: int
    computing: int
    beside: float
    hops: tuple[Hop, Hop]


@dataclass(frozen=True, slots=True)
class _Way:
    """An operand's L2 tile, in one or in two halves: bytes of L2, cycles that are waited for and that run beside
    computing, and what moves."""

    tile: L2Tile
    halved: bool
    size: int
    waited: float
    beside: float
    legs: Legs

    @property
    def key(self) -> tuple[float, ...]:
        """A way that is no better in any of these is not weighed."""
        commands = self.legs.deep.commands + self.legs.near.commands
        return self.size, self.waited, self.waited + self.beside, self.legs.deep.bytes, commands


def widened(bound: BoundCall, choice: Choice, limit: int, target: Target, objective: Objective) -> Choice:
    """The choice with L2 tiles of `limit` bytes together, at most, in place of one L1 tile each."""
    staged = [i for i, t in enumerate(choice.l2_tiles) if t is not None]
    if choice.stage_bytes > limit or not any(choice.depth[i] for i in staged):
        return choice
    tiled = _Tiled(
        operands=tuple(bound.operands[i] for i in staged),
        depths=tuple(choice.depth[i] for i in staged),
        halved=tuple(choice.halved[i] for i in staged),
        axes=tuple(bound.extents.items()),
        loops=choice.loops,
        cycles=choice.total_cycles,
        computing=choice.compute_cycles,
        beside=choice.beside,
        hops=(target.hops["l2_l1"], target.hops["l3_l2"]),
    )
    best = _best(tiled, limit, objective)
    return choice if best is None else _with(choice, tiled, dict(zip(staged, best, strict=True)))


@lru_cache(maxsize=1 << 12)
def _best(tiled: _Tiled, limit: int, objective: Objective) -> tuple[_Way, ...] | None:
    """A way for each operand; None where one L1 tile each is best."""
    now = _now(tiled)
    ways = [_ways(tiled, i, limit) for i in range(len(tiled.operands))]
    best = min(_together(ways, limit), key=lambda found: _cost(tiled, now, found, objective), default=now)
    return best if _cost(tiled, now, best, objective) < _cost(tiled, now, now, objective) else None


def _now(tiled: _Tiled) -> tuple[_Way, ...]:
    """One L1 tile each."""
    depths, halved = tiled.depths, tiled.halved
    return tuple(_way(tiled, i, (d, 1), h) for i, (d, h) in enumerate(zip(depths, halved, strict=True)))


def _ways(tiled: _Tiled, i: int, limit: int) -> list[_Way]:
    """Those that fit and that no other replaces, the smallest first."""
    found = shapes(tiled.operands[i], dict(tiled.axes), tiled.loops, tiled.depths[i])
    every = [_way(tiled, i, shape, halved) for shape in found for halved in (False, True)]
    fitting = sorted((w for w in every if w.size <= limit), key=lambda w: w.key)
    kept: list[_Way] = []
    for w in fitting:
        if not any(all(a <= b for a, b in zip(k.key, w.key, strict=True)) for k in kept):
            kept.append(w)
    return kept[:: -(-len(kept) // MOST) or 1]


def _way(tiled: _Tiled, i: int, shape: tuple[int, int], halved: bool) -> _Way:
    near, deep = tiled.hops
    moved = legs(tiled.operands[i], tiled.axes, tiled.loops, tiled.depths[i], shape, tiled.hops)
    engine = moved.deep.moved(deep)
    alone = shape == (tiled.depths[i], 1)  # as the search counts
    following = 1 - 1 / max(moved.deep.copies, 1) if alone else moved.following
    held = min(1.0, deep.in_flight * moved.deep.copies / max(moved.deep.commands, 1))
    beside = engine * held * following if halved else 0.0
    issued = moved.near.commands * near.start + moved.deep.commands * deep.start
    waited = issued + moved.near.moved(near) + engine - beside
    return _Way(L2Tile(*shape, moved.most), halved, align16(moved.most) * (1 + halved), waited, beside, moved)


def _together(ways: Sequence[Sequence[_Way]], limit: int) -> list[tuple[_Way, ...]]:
    """The combinations that fit."""
    found: list[tuple[_Way, ...]] = [()]
    for some in ways:
        found = [(*f, w) for f in found for w in some if sum(x.size for x in f) + w.size <= limit]
    return found


def _cost(tiled: _Tiled, now: Sequence[_Way], ways: Sequence[_Way], o: Objective) -> tuple[float, ...]:
    """The key of the search: the objective, cycles, bytes, commands; then bytes of L2."""
    cycles = _cycles(tiled, now, ways)
    near, deep = sum(w.legs.near.bytes for w in ways), sum(w.legs.deep.bytes for w in ways)
    commands = sum(w.legs.deep.commands + w.legs.near.commands for w in ways)
    return o.cycles * cycles + o.near * near + o.deep * deep, cycles, deep, commands, sum(w.size for w in ways)


def _cycles(tiled: _Tiled, now: Sequence[_Way], ways: Sequence[_Way]) -> int:
    """The call's with other L2 tiles than now."""
    return ceil(round(tiled.cycles + _exposed(tiled, ways) - _exposed(tiled, now), 6))


def _exposed(tiled: _Tiled, ways: Sequence[_Way]) -> float:
    beside = sum(w.beside for w in ways)
    return sum(w.waited for w in ways) + max(tiled.computing, tiled.beside, beside)


def _with(choice: Choice, tiled: _Tiled, ways: dict[int, _Way]) -> Choice:
    now, deep = _now(tiled), tiled.hops[1]
    cycles = [sum(ceil(w.waited + w.beside) for w in some) for some in (now, ways.values())]
    of = range(len(choice.depth))
    return replace(
        choice,
        halved=tuple(ways[i].halved if i in ways else choice.halved[i] for i in of),
        l2_tiles=tuple(ways[i].tile if i in ways else None for i in of),
        bytes=tuple(_bytes(ways[i].legs) if i in ways else choice.bytes[i] for i in of),
        transfers=tuple(_commands(ways[i].legs) if i in ways else choice.transfers[i] for i in of),
        stage_bytes=sum(w.size for w in ways.values()),
        moved_cycles=choice.moved_cycles + cycles[1] - cycles[0],
        total_cycles=_cycles(tiled, now, tuple(ways.values())),
        first=tuple(_first(ways[i].legs, deep) if i in ways else f for i, f in enumerate(choice.first)),
    )


def _bytes(moved: Legs) -> dict[str, int]:
    return {"l2_l1": moved.near.bytes, "l3_l2": moved.deep.bytes}


def _commands(moved: Legs) -> dict[str, int]:
    return {"l2_l1": moved.near.commands, "l3_l2": moved.deep.commands}


def _first(moved: Legs, deep: Hop) -> float:
    return moved.deep.moved(deep) / max(moved.deep.copies, 1)
