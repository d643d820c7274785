"""Boxes against the coordinates that a tile's points really read."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.expr import evaluate
from tests.tiler.calls import calls
from tiler.bound import BoundCall
from tiler.boxes import clip_range, tile_box


@given(calls(), st.data())
def test_a_box_is_the_range_of_the_coordinates_read(call: BoundCall, data: st.DataObject) -> None:
    start, length = {}, {}
    for a in call.axes:
        start[a.name] = data.draw(st.integers(0, a.extent - 1))
        length[a.name] = data.draw(st.integers(1, a.extent - start[a.name]))
    ranges = [range(start[a], start[a] + length[a]) for a in start]
    points = [dict(zip(start, p, strict=True)) for p in product(*ranges)]
    for o in call.operands:
        for index, extent, box in zip(o.index, o.extent, tile_box(o, start, length), strict=True):
            assert index is not None
            read = [int(evaluate(index, p)) for p in points]
            inside = [v for v in range(min(read), max(read) + 1) if 0 <= v < extent]
            assert (box.before, box.after) == (max(-min(read), 0), max(max(read) + 1 - extent, 0))
            assert list(range(box.start, box.start + box.count)) == inside
            assert set(read) & set(range(extent)) <= set(inside)


@given(st.integers(-9, 12), st.integers(0, 9), st.integers(1, 8))
def test_clipping_keeps_the_coordinates_inside(low: int, span: int, extent: int) -> None:
    r = clip_range(low, low + span, extent)
    assert list(range(r.start, r.start + r.count)) == [c for c in range(low, low + span + 1) if 0 <= c < extent]
    assert r.start - r.before <= low or r.count == 0


@given(calls(), st.data())
def test_tiles_cover_every_output_element_exactly_once(call: BoundCall, data: st.DataObject) -> None:
    from tests.tiler.walk import ranges

    over = call.accumulate.over if call.accumulate else ()
    split = [a for a in call.axes if not a.whole and a.name not in over]
    loops = [
        (a.name, data.draw(st.integers(1, min(a.limit or a.extent, a.extent))))
        for a in data.draw(st.permutations(split))
    ]
    written: dict[tuple[int, ...], int] = {}
    out = call.operands[-1]
    for start, length in ranges(call, loops):
        for c in product(*(range(r.start, r.start + r.count) for r in tile_box(out, start, length))):
            written[c] = written.get(c, 0) + 1
    assert set(written) == set(product(*(range(e) for e in out.extent)))
    assert set(written.values()) == {1}
