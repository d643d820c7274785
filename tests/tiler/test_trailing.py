"""A result that trails its input: how far they must lie apart, against a walk over every tile."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.expr import names
from tests.tiler import walk
from tests.tiler.calls import TARGET, bound_call, calls, operand
from tiler.bound import BoundAxis, BoundCall
from tiler.levelled import levelled
from tiler.schedule import BoundOperand
from tiler.space import Space

Step = tuple[set[int], set[int]]  # bytes read and bytes written


def _bytes(o: BoundOperand, start: dict[str, int], length: dict[str, int]) -> set[int]:
    box = walk.tile_box(o, start, length)
    at = [
        sum(i * s for i, s in zip(place, o.far_strides, strict=True)) * o.itemsize
        for place in product(*(range(r.start, r.start + r.count) for r in box))
    ]
    return {a + b for a in at for b in range(o.itemsize)}


def _steps(call: BoundCall, loops: walk.Loops, down: bool) -> list[Step]:
    """What each tile reads and writes, in the sequence of the loops."""
    x, y = call.operands[0], call.operands[-1]
    sizes = [list(range(0, call.extents[a], t)) for a, t in loops]
    if down:
        sizes[0].reverse()
    result = []
    for starts in product(*sizes):
        start = dict.fromkeys(call.extents, 0) | {a: s for (a, _), s in zip(loops, starts, strict=True)}
        length = call.extents | {a: min(t, call.extents[a] - start[a]) for a, t in loops}
        result.append((_bytes(x, start, length), _bytes(y, start, length)))
    return result


def _is_safe(steps: list[Step], s: int) -> bool:
    """Whether no tile writes what it or a later one reads, the result beginning `s` bytes above the input."""
    return all(
        not any({w + s for w in written} & read for read, _ in steps[i:]) for i, (_, written) in enumerate(steps)
    )


def _levels(call: BoundCall) -> tuple[str, ...]:
    return tuple("ends" if i in (0, len(call.operands) - 1) else "l2" for i in range(len(call.operands)))


@given(calls(), st.data())
def test_no_tile_overwrites_what_is_still_read(call: BoundCall, data: st.DataObject) -> None:
    space, levels = Space(call, TARGET), _levels(call)
    order = data.draw(st.sampled_from(space.orders))
    at = data.draw(st.integers(0, len(space.tiles) - 1))
    loops, tables = [(a, t) for a, t in space.loops(at, order)], levelled(space, levels)
    trail = tables.trail(order, at)
    sizes = [-(-o.itemsize * _count(o) // 16) * 16 for o in (call.operands[0], call.operands[-1])]
    if trail is None:
        assert tables.ends_bytes(order, np.array([at]))[0] == sum(sizes)
        return
    assert not trail.in_place  # nothing says `reuse`
    up, down = _steps(call, loops, False), _steps(call, loops, True)
    for beyond in (0, 1, 17):
        assert _is_safe(up, -trail.below - beyond)
        assert _is_safe(down, trail.above + beyond)
    if loops and loops[0][0] in {n for i in call.operands[-1].index if i is not None for n in names(i)}:
        assert trail.below == _nearest(call, loops, False)
        assert trail.above == _nearest(call, loops, True)
    spans = [max(sizes[0], s + sizes[1]) - min(0, s) for s in (-trail.below, trail.above)]
    assert tables.ends_bytes(order, np.array([at]))[0] == min(*spans, sum(sizes))


def _count(o: BoundOperand) -> int:
    total = 1
    for e in o.extent:
        total *= e
    return total


def _nearest(call: BoundCall, loops: walk.Loops, down: bool) -> int:
    """How far the two must lie apart so that every tile of the outermost loop writes only on one side of what it or
    a later one reads."""
    steps = _steps(call, loops[:1], down)
    least = -(2**40)
    for i, (_, written) in enumerate(steps):
        read = set().union(*(r for r, _ in steps[i:]))
        if read and written:
            least = max(least, max(read) + 1 - min(written) if down else max(written) + 1 - min(read))
    return -(-least // 16) * 16


def test_rows_of_a_window_keep_their_halo() -> None:
    x, y = operand("x[p + r - 1, q]", (12, 16), (0, 1)), operand("y[p, q]", (12, 16), (0, 1), "out")
    axes = [BoundAxis("p", 12), BoundAxis("q", 16, whole=True), BoundAxis("r", 3, whole=True)]
    space = Space(bound_call(axes, [x, y], "p*q"), TARGET)
    at = int(next(i for i, t in enumerate(space.grid.tiles[0]) if t == 4))
    tables = levelled(space, ("ends", "ends"))
    trail = tables.trail(("p",), at)
    assert trail is not None
    assert (trail.below, trail.above) == (5 * 16, 5 * 16)  # four rows and the one above them
    assert tables.ends_bytes(("p",), np.array([at]))[0] == 17 * 16
