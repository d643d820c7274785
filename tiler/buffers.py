"""The buffers of one call in L1: the bytes of each, and the call laid out at the places they are given."""

from __future__ import annotations

from collections.abc import Sequence

from tiler.bound import BoundCall
from tiler.choice import CallLayout, Choice
from tiler.cost import align16
from tiler.options import Picked


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


def _buffer_bytes(choice: Choice) -> list[int]:
    """Per operand; the first of those that come together has the bytes of all, the others -1: they lie in it."""
    sizes = list(choice.tile_bytes)
    for b in choice.bundles:
        sizes[b.lead] = b.pitch
        for i in b.operands[1:]:
            sizes[i] = -1
    return sizes
