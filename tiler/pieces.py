"""What a run reads of its constants, step by step: the pieces that may come from L3 one after the other.

A constant is one piece, or, where a call's outermost loop goes through it once from end to end, one piece per
iteration. A piece must be there when its step begins (a step earlier where its tile is copied one ahead), and its
place is free when the step behind its last reader begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiler.boxes import tile_box
from tiler.choice import Bundle
from tiler.options import Picked
from tiler.placement import ALIGNMENT
from tiler.timeline import Stretch

SMALL = 1024  # bytes of a constant that is not worth cutting up


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes [begin, begin + bytes) of a constant; `bytes` of the last one go up to the next aligned address. It must
    have arrived before step `need`; nothing reads it from step `free` on."""

    root: str
    begin: int
    bytes: int
    need: int
    free: int
    last: bool  # of its root


def stretches_of(picked: Sequence[Picked], rolls: Mapping[int, tuple[int, int]]) -> tuple[Stretch, ...]:
    """The calls as they run; `rolls` are the rolled groups by their first call: the last call, and how many steps."""
    result: list[Stretch] = []
    first = begin = 0
    while first < len(picked):
        loops = picked[first].choice.loops
        alone = -(-picked[first].bound.extents[loops[0][0]] // loops[0][1]) if loops else 1
        last, steps = rolls.get(first, (first, alone))
        here = [p.choice for p in picked[first : last + 1]]
        result.append(
            Stretch(first, last, begin, steps, sum(c.total_cycles for c in here), sum(c.deep_bytes for c in here))
        )
        first, begin = last + 1, begin + steps
    return tuple(result)


def pieces_of(
    picked: Sequence[Picked], stretches: Sequence[Stretch], sizes: Mapping[str, int], where: Sequence[str]
) -> list[Piece]:
    """The pieces of the constants `where`, each `sizes` bytes long, in the order of their needs."""
    readers: dict[str, list[tuple[Stretch, int, int]]] = {root: [] for root in where}
    for s in stretches:
        for call in range(s.first, s.last + 1):
            for i, o in enumerate(picked[call].bound.operands):
                b = picked[call].choice.bundle(i)
                if o.root in readers and o.role == "const" and (b is None or b.lead == i):
                    readers[o.root].append((s, call, i))
    found = [p for root, r in readers.items() for p in _pieces(picked, root, sizes[root], r)]
    small = {root: size <= SMALL for root, size in sizes.items()}
    place = {root: i for i, root in enumerate(where)}
    return sorted(found, key=lambda p: (p.need, not small[p.root], place[p.root], p.begin))


def roots_in_l3(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """The constants that pass through L2, as they lie in L3 one behind the other: by their first pieces."""
    return tuple(dict.fromkeys(p.root for p in pieces))


def _pieces(picked: Sequence[Picked], root: str, size: int, readers: Sequence[tuple[Stretch, int, int]]) -> list[Piece]:
    if not readers:
        return []
    (first, _, _), (last, call, operand) = readers[0], readers[-1]
    cut = [size] if size <= SMALL or len(readers) > 1 else _ends(picked[call], operand, size)
    end = -(-size // ALIGNMENT) * ALIGNMENT
    if len(cut) == 1 or last.first != last.last:
        free = last.begin + 1 if _read_at_once(picked, last, call, operand) else last.end
        return [Piece(root, 0, end, first.begin, free, True)]
    choice = picked[call].choice
    ahead = int(choice.double[operand] and choice.depth[operand] == 1)
    begins = [0, *cut[:-1]]
    cut[-1] = end
    return [
        Piece(root, a, b - a, last.begin + max(0, j - ahead), last.begin + j + 1, b == end)
        for j, (a, b) in enumerate(zip(begins, cut, strict=True))
    ]


def _read_at_once(picked: Sequence[Picked], s: Stretch, call: int, operand: int) -> bool:
    """In L1 when the first step is over, and not copied again: a rolled group's may still be on their way then."""
    return s.first == s.last and picked[call].choice.depth[operand] == 0


def _ends(p: Picked, operand: int, size: int) -> list[int]:
    """Where each iteration's bytes end, if the outermost loop goes through the constant once; else only its size. So,
    too, where a result trails an input: its address, found later, may have the loop run downwards."""
    o, loops = p.bound.operands[operand], p.choice.loops
    if not loops or p.choice.depth[operand] == 0 or p.choice.trail is not None:
        return [size]
    axis, tile = loops[0]
    b = p.choice.bundle(operand)
    if b is not None:
        return _shares_end(b, axis, -(-p.bound.extents[axis] // tile), size)
    whole = dict(p.bound.extents)
    ends, outer = [0], next((d for d, e in enumerate(o.extent) if e > 1), 0)
    row = o.far_strides[outer] * o.itemsize
    for at in range(0, whole[axis], tile):
        box = tile_box(o, dict.fromkeys(whole, 0) | {axis: at}, whole | {axis: min(tile, whole[axis] - at)})
        through = all(r.count == e for d, (r, e) in enumerate(zip(box, o.extent, strict=True)) if d != outer)
        if not through or box[outer].start * row != ends[-1] or not box[outer].count:
            return [size]
        ends.append((box[outer].start + box[outer].count) * row)
    return ends[1:] if ends[-1] == size else [size]


def _shares_end(b: Bundle, axis: str, trips: int, size: int) -> list[int]:
    """Where the shares of each iteration of the outermost loop end, if that goes through them."""
    if b.axes[0][0] != axis:
        return [size]
    step = b.count // trips * b.pitch
    return [*range(step, trips * step, step), size]
