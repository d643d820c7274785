"""Constants of one call that come with one command a tile: cut by the same loops, they lie tile by tile side by side
in L2 and in L1.

A *share* is what one tile reads of them. In it each operand begins at a multiple of 16 bytes, at the same distance
from the share's beginning in both memories, and the last one ends it: what a ragged tile leaves of it is neither
copied nor, behind the last share, stored. The last is the operand that saves most that way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiler.bound import BoundCall, Packing
from tiler.boxes import DimRange, tile_box
from tiler.choice import Bundle, Choice
from tiler.grid import Grid, Ints
from tiler.schedule import BoundOperand
from tiler.traffic import OperandTraffic

APART, TOGETHER, EXACTLY = range(3)  # ways of a tiling: nothing bundled, all that can be, all that needs no byte more
WAYS = 3


@dataclass(frozen=True, slots=True)
class Shares:
    """One bundle at each of some grid positions (`rows`): its operands, by position, and the last of them; how many
    shares, the bytes and commands of copying each once, the greatest one's bytes of L1."""

    rows: Ints
    members: NDArray[np.bool_]
    last: Ints
    count: Ints
    bytes: Ints
    commands: Ints
    size: Ints

    @property
    def first(self) -> Ints:
        """The first of the operands at each position."""
        return np.asarray(self.members.argmax(axis=1))


@dataclass(frozen=True, slots=True)
class Tables:
    """What bundles are made of, at the grid positions `rows`: per operand the loops that cut it (bits), the aligned
    bytes of its greatest tile, the bytes of all tiles, and where it may be bundled at all."""

    cut: Ints
    slots: Ints
    total: Ints
    count: Ints
    able: NDArray[np.bool_]


def tables(
    grid: Grid, traffic: Sequence[OperandTraffic], reads: Sequence[frozenset[str]], levels: Sequence[str], rows: Ints
) -> Tables:
    """`reads`: the split axes that each operand depends on."""

    def flat(values: Any) -> Ints:
        return np.asarray(np.broadcast_to(values, grid.shape)).ravel()[rows]

    trips = {a: flat(grid.trips(a)) for a in grid.axes}
    cut, count = [], []
    for axes in reads:
        split = [(trips[a] > 1) * (1 << n) for n, a in enumerate(grid.axes) if a in axes]
        cut.append(sum(split, np.zeros(len(rows), np.int64)))
        count.append(prod((trips[a] for a in axes if a in trips), start=np.ones(len(rows), np.int64)))
    operands = grid.call.operands
    total = np.stack([flat(t.bytes) for t in traffic], -1)
    whole = np.array([prod(o.extent) * o.itemsize for o in operands])
    own = np.array([i in grid.call.own and level in ("l2", "stream") for i, level in enumerate(levels)])
    copies, counts = np.stack([flat(t.copies) for t in traffic], -1), np.stack(count, -1)
    slots = -(-np.stack([flat(t.tile_bytes) for t in traffic], -1) // 16) * 16
    return Tables(np.stack(cut, -1), slots, total, counts, own & (copies == counts) & (total == whole))


def shares(t: Tables, exact: bool, max_bytes: int) -> Iterator[Shares]:
    """Every bundle of two operands or more; where `exact` only of those that need no byte more. One of several shares
    is one command each."""
    left = t.able.copy()
    for k in range(t.able.shape[1] - 1):
        alike = left & (t.cut == t.cut[:, k : k + 1]) & left[:, k : k + 1]
        left &= ~alike
        slack = np.where(alike, t.count * t.slots - t.total, -1)
        last = slack.shape[1] - 1 - slack[:, ::-1].argmax(axis=1)
        if exact:
            alike &= (slack == 0) | (np.arange(slack.shape[1]) == last[:, None])
        size, count = np.where(alike, t.slots, 0).sum(-1), t.count[:, k]
        moved = count * size - slack.max(axis=1)
        fits = (alike.sum(-1) > 1) & ((count == 1) | (size <= max_bytes))
        rows = np.flatnonzero(fits)
        if len(rows):
            commands = np.where(count == 1, -(-moved // max_bytes), count)
            yield Shares(rows, alike[rows], last[rows], count[rows], moved[rows], commands[rows], size[rows])


def bundle(bound: BoundCall, s: Shares, slots: Ints, loops: Sequence[tuple[str, int]], reads: frozenset[str]) -> Bundle:
    """The one bundle of `s`, at its one position, under the tiling's loops."""
    last = int(s.last[0])
    operands = [*(int(i) for i in np.flatnonzero(s.members[0]) if i != last), last]
    sizes = [int(slots[i]) for i in operands]
    cut = [(a, tile) for a, tile in loops if a in reads]
    final = {a: (bound.extents[a] - 1) // tile * tile for a, tile in cut}
    return Bundle(
        operands=tuple(operands),
        offsets=tuple(sum(sizes[:i]) for i in range(len(sizes))),
        axes=tuple(cut),
        pitch=sum(sizes),
        count=int(s.count[0]),
        bytes=(int(s.count[0]) - 1) * sum(sizes)
        + sum(sizes[:-1])
        + _bytes(bound.operands[last], box_at(bound, bound.operands[last], cut, final)),
        moved=int(s.bytes[0]),
        commands=int(s.commands[0]),
    )


def whole(bound: BoundCall, exact: bool, max_bytes: int) -> Bundle | None:
    """The bundle of a call's constants, each copied once as a whole."""
    sizes = np.array([[prod(o.extent) * o.itemsize for o in bound.operands]])
    slots = -(-sizes // 16) * 16
    own = np.array([[i in bound.own for i in range(len(bound.operands))]])
    found = shares(Tables(np.zeros_like(sizes), slots, sizes, np.ones_like(sizes), own), exact, max_bytes)
    return next((bundle(bound, s, slots[0], (), frozenset()) for s in found), None)


def box_at(
    bound: BoundCall, operand: BoundOperand, cut: Sequence[tuple[str, int]], at: dict[str, int]
) -> tuple[DimRange, ...]:
    """The box of the tile at which the loops stand at `at`."""
    extents = bound.extents
    length = extents | {a: min(tile, extents[a] - at[a]) for a, tile in cut}
    return tile_box(operand, dict.fromkeys(extents, 0) | at, length)


def tiles_of(
    bound: BoundCall, b: Bundle, operand: BoundOperand, offset: int
) -> tuple[tuple[int, ...], tuple[tuple[tuple[int, int], ...], ...]]:
    """Where an operand's tiles begin in a bundle, and their boxes (first and count per dim)."""
    stands = product(*(range(0, bound.extents[a], tile) for a, tile in b.axes))
    axes = [a for a, _ in b.axes]
    boxes = [box_at(bound, operand, b.axes, dict(zip(axes, at, strict=True))) for at in stands]
    places = tuple(b.pitch * n + offset for n in range(b.count))
    return places, tuple(tuple((int(r.start), int(r.count)) for r in box) for box in boxes)


def _bytes(operand: BoundOperand, box: Sequence[DimRange]) -> int:
    return operand.itemsize * prod(int(r.count) for r in box)


def bundled(bound: BoundCall, choice: Choice) -> BoundCall:
    """The call with one packed constant in place of those that come together."""
    operands, packings = list(bound.operands), list(bound.packings)
    for b in choice.bundles:
        parts = tuple(next(p for p in bound.packings if p.root == bound.operands[i].root) for i in b.operands)
        root = f"{bound.call}: {parts[0].root} and {len(parts) - 1} more"
        large = max(parts, key=lambda p: p.bytes)
        packings[packings.index(parts[0])] = Packing(root, large.buffer, (), (), b.bytes, parts)
        packings = [p for p in packings if p not in parts]
        for i in b.operands:
            operands[i] = replace(operands[i], root=root)
    return replace(bound, operands=tuple(operands), packings=tuple(packings)) if choice.bundles else bound
