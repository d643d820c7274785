"""L2 tiles of operands in L3: what moves, against walks over all blocks and tiles; and the choice among them."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from tests.tiler import walk
from tests.tiler.calls import TARGET, calls, convolutions, tight_target
from tiler.bound import BoundCall
from tiler.choice import Choice
from tiler.l2_tiles import dense_pitches, held, legs, shapes
from tiler.moves import HopLimits, count_box
from tiler.objective import CYCLES
from tiler.schedule import BoundOperand, L2Tile
from tiler.search import search
from tiler.space import Space
from tiler.target import Hop
from tiler.widening import widened


def _staged(call: BoundCall, l1: int, stage: int | None = None) -> Choice | None:
    """The best tiling with all operands in L3, a stage holding one L1 tile."""
    found = search(Space(call, TARGET), l1, ("l3",) * len(call.operands), stage).best
    return found if isinstance(found, Choice) else None


def _limits(hop: Hop) -> HopLimits:
    return HopLimits(hop.max_bytes, hop.max_stride)


@given(calls(), st.integers(16, 900), st.booleans(), st.data())
def test_what_moves_is_what_a_walk_over_blocks_and_tiles_moves(
    call: BoundCall, l1: int, tight: bool, data: st.DataObject
) -> None:
    found, target = _staged(call, l1), tight_target() if tight else TARGET
    if found is None:
        return
    hops = target.hops["l2_l1"], target.hops["l3_l2"]
    for o, depth in zip(call.operands, found.depth, strict=True):
        shape = data.draw(st.sampled_from(list(shapes(o, call.extents, found.loops, depth)) or [(0, 1)]))
        moved = legs(o, tuple(call.extents.items()), found.loops, depth, shape, hops)
        blocks = list(_blocks(call, o, found.loops, L2Tile(*shape, 0)))
        assert moved.most == max(prod(box) for box in blocks) * o.itemsize
        far = [s * o.itemsize for s in o.far_strides]
        counts = [count_box(box, far, o.itemsize, _limits(hops[1])) for box in blocks]
        assert (moved.deep.bytes, moved.deep.commands) == tuple(map(sum, zip(*counts, strict=True)))
        counts = [count_box(*box, o.itemsize, _limits(hops[0])) for box in _tiles(call, o, found.loops, depth, shape)]
        assert (moved.near.bytes, moved.near.commands) == tuple(map(sum, zip(*counts, strict=True)))


def _blocks(call: BoundCall, o: BoundOperand, loops: walk.Loops, tile: L2Tile):  # type: ignore[no-untyped-def]
    """The extents of each block that a stage holds, in order: a loop over blocks is one with larger tiles."""
    outer = [(a, t * (tile.block if i == tile.depth - 1 else 1)) for i, (a, t) in enumerate(loops[: tile.depth])]
    for start, length in walk.ranges(call, outer):
        yield [r.count for r in walk.tile_box(o, start, length)]


def _tiles(call: BoundCall, o: BoundOperand, loops: walk.Loops, depth: int, shape: tuple[int, int]):  # type: ignore[no-untyped-def]
    """The extents of each tile and its pitches in its stage."""
    for start, length in walk.ranges(call, loops, depth):
        around = held(call.extents, loops, L2Tile(*shape, 0), start)
        block = walk.tile_box(o, {a: s for a, (s, _) in around.items()}, {a: n for a, (_, n) in around.items()})
        inside = walk.tile_box(o, start, length)
        for part, whole in zip(inside, block, strict=True):
            assert not part.count or whole.start <= part.start <= part.start + part.count <= whole.start + whole.count
        yield [r.count for r in inside], dense_pitches([r.count for r in block], o.itemsize)


@given(calls(), st.integers(16, 900))
def test_the_first_shape_is_a_stage_of_one_tile(call: BoundCall, l1: int) -> None:
    found = _staged(call, l1)
    if found is None:
        return
    hops = TARGET.hops["l2_l1"], TARGET.hops["l3_l2"]
    for i, o in enumerate(call.operands):
        shape = found.depth[i], 1
        assert next(iter(shapes(o, call.extents, found.loops, found.depth[i])), shape) == shape
        moved = legs(o, tuple(call.extents.items()), found.loops, found.depth[i], shape, hops)
        assert found.l2_tiles[i] == L2Tile(*shape, moved.most)
        assert found.bytes[i] == {"l2_l1": moved.near.bytes, "l3_l2": moved.deep.bytes}
        assert found.transfers[i] == {"l2_l1": moved.near.commands, "l3_l2": moved.deep.commands}


@given(convolutions(), st.integers(100, 900), st.integers(32, 900), st.integers(0, 600))
def test_larger_l2_tiles_are_never_worse(call: BoundCall, l1: int, stage: int, more: int) -> None:
    found = _staged(call, l1, stage)
    if found is None:
        return
    small, large = (widened(call, found, limit, TARGET, CYCLES) for limit in (stage, stage + more))
    assert large.total_cycles <= small.total_cycles <= found.total_cycles
    for choice, limit in ((small, stage), (large, stage + more)):
        assert choice.stage_bytes <= limit
        tiles = zip(choice.l2_tiles, choice.halved, strict=True)
        assert choice.stage_bytes == sum(walk.align(t.bytes) * (1 + h) for t, h in tiles if t is not None)
        assert [b["l2_l1"] for b in choice.bytes] == [b["l2_l1"] for b in found.bytes]
