"""Schedules of small networks: budgets hold, nothing overlaps, figures add up, a memory too small names what does."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, product, takewhile
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import FusedGraph
from tests.tiler import walk
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder, networks
from tiler import schedule
from tiler.checking import l2_faults
from tiler.moves import HopLimits, count_box
from tiler.schedule import CallPlan, L2Tile, OperandPlan, Schedule
from tiler.schedule_json import schedule_from_json, schedule_to_json

SIZES = st.sampled_from([400, 1000, 3000, 9000, 38000])
DEEP = st.sampled_from([600, 2000, 6000, 20000, 400000])


def planned(graph: FusedGraph, l1: int, l2: int) -> Schedule | None:
    """The schedule, or None where a memory is too small."""
    try:
        return schedule(graph, KERNELS, TARGET, l1, l2)
    except GapFuseError as e:
        if "too small" not in str(e):
            raise
        return None


def nothing_overlaps_and_budgets_hold(graph: FusedGraph, s: Schedule, l1: int, l2: int) -> None:
    assert l2_faults(s) == ()
    assert s.peaks["l1"] <= l1
    assert s.peaks["l2"] + s.tables.bytes <= l2
    rolled = {i for r in s.rolls for i in range(r.first, r.last + 1)}  # tests/emit/test_rolls.py looks at those
    for i, c in enumerate(s.calls):
        if i in rolled:
            continue
        early = [(o.l1[0], o.tile_bytes) for n in s.calls[i + 1 : i + 2] for o in n.operands if o.ahead]
        alive = {v.root: (v.offset, v.bytes) for v in s.stays if v.first <= i <= v.last}
        _check_l1(c, alive, early)
    cold = [(c.cold, c.bytes) for c in s.constants]
    homes = [(at, graph.buffer[r].nbytes) for r, at in s.l3_homes.items()]
    for (a, an), (b, bn) in combinations(cold, 2):
        assert a + an <= b or b + bn <= a
    assert all(a + an <= h or h + hn <= a for a, an in cold for h, hn in homes)


def _check_l1(c: CallPlan, alive: dict[str, tuple[int, int]], early: list[tuple[int, int]]) -> None:
    stays = dict(alive)
    if c.trailing is not None:
        x, y = (next(o for o in c.operands if o.operand.name == n) for n in (c.trailing.input, c.trailing.result))
        _check_trailing(c, x, y)
        (a, an), (b, bn) = stays.pop(x.operand.root), stays.pop(y.operand.root)
        assert min(a + an, b + bn) - max(a, b) == c.trailing.bytes > 0
        stays["both"] = min(a, b), max(a + an, b + bn) - min(a, b)
    buffers = [*stays.values(), *early] + [(at, o.tile_bytes) for o in c.operands for at in o.l1]
    buffers += [(at, size * TARGET.cores) for at, size in c.scratch.values()]
    buffers += [c.accumulator] if c.accumulator else []
    for (a, an), (b, bn) in combinations(buffers, 2):
        assert a + an <= b or b + bn <= a
    assert max(a + n for a, n in buffers) <= c.l1_bytes
    assert all(a % 16 == 0 for a, _ in buffers)


def _check_trailing(c: CallPlan, x: OperandPlan, y: OperandPlan) -> None:
    """No tile writes what a later one reads, nor what it reads itself unless element lies on element."""
    assert x.level == y.level == "l1"
    loops = [(v.axis, v.tile) for v in c.loops]
    tiles = list(_iterations(c, loops))
    tiles.sort(key=lambda t: [-t[0][v.axis] if v.down else t[0][v.axis] for v in c.loops])
    reads = [set(_addresses(x, *t)) for t in tiles]
    later: set[int] = set()
    for i in reversed(range(len(tiles))):
        written = _addresses(y, *tiles[i])
        assert not later & set(written)
        assert not reads[i] & set(written) or (x.far == y.far and written == _addresses(x, *tiles[i]))
        later |= reads[i]


def _addresses(o: OperandPlan, start: dict[str, int], length: dict[str, int]) -> list[int]:
    """Bytes of L1 that a tile touches of int8 that stay, in the order of its box."""
    box = walk.tile_box(o.operand, start, length)
    places = product(*(range(r.start, r.start + r.count) for r in box))
    strides = o.operand.far_strides
    return [o.far + o.operand.far_offset + sum(i * s for i, s in zip(p, strides, strict=True)) for p in places]


def bytes_and_transfers_are_those_of_a_walk(s: Schedule) -> None:
    rolled = {i for r in s.rolls for i in range(r.first, r.last + 1)}
    for i, c in enumerate(s.calls):
        for o in c.operands:
            assert i in rolled or o.span or o.joined or (o.bytes, o.transfers) == _walked(c, o)
        _check_joined(c)
    for hop in ("l2_l1", "l3_l2"):
        whole = [t for t in s.transfers if t.start >= 0] if hop == "l3_l2" else []
        assert s.bytes[hop] == sum(o.bytes.get(hop, 0) for c in s.calls for o in c.operands) + sum(
            t.bytes for t in whole
        )
    for c in s.calls:
        assert sum(o.bytes["l2_l1"] for o in c.operands) >= c.bound_bytes["l2_l1"]
    assert s.bounds.compute_cycles <= s.compute_cycles <= s.total_cycles


def _check_joined(c: CallPlan) -> None:
    """One copy brings the bytes from its own operand's to the end of the last joined, the same on both sides."""
    for k, first in enumerate(c.operands):
        if not first.span:
            continue
        if first.shares is not None:
            _check_shares(c, first)
            continue
        behind = list(takewhile(lambda o: o.joined, c.operands[k + 1 :]))
        assert behind
        assert first.span == behind[-1].far + behind[-1].tile_bytes - first.far
        assert first.bytes == {"l2_l1": first.span}
        assert first.transfers == {"l2_l1": -(-first.span // TARGET.hops["l2_l1"].max_bytes)}
        assert all(o.l1[0] - first.l1[0] == o.far - first.far and not sum(o.bytes.values()) for o in behind)
        assert first.span - sum(o.tile_bytes for o in (first, *behind)) < 16 * len(behind)


def _check_shares(c: CallPlan, first: OperandPlan) -> None:
    """One copy brings a tile's share of several constants, as far apart in L1, in each buffer, as in L2; nothing lies
    between them but what aligns them or fills up a ragged tile."""
    assert first.shares is not None
    together = _together(c, first)
    assert [o.lead for o in together] == ["", *[first.operand.name] * (len(together) - 1)]
    assert all(o.depth == first.depth and len(o.l1) == len(first.l1) for o in together)
    assert not any(sum(o.bytes.values()) or sum(o.transfers.values()) for o in together[1:])
    for o, offset in zip(together, first.shares.offsets, strict=True):
        assert o.far - first.far == offset == sum(-(-x.tile_bytes // 16) * 16 for x in together[: together.index(o)])
        assert [a - b for a, b in zip(o.l1, first.l1, strict=True)] == [offset] * len(o.l1)
    sizes = [size for _, size in _shares(c, first, [(x.axis, x.tile) for x in c.loops[: first.depth]])]
    assert first.bytes == {"l2_l1": sum(sizes)}
    assert first.span == max(sizes)
    assert first.transfers == {"l2_l1": sum(-(-n // TARGET.hops["l2_l1"].max_bytes) for n in sizes)}


def _together(c: CallPlan, first: OperandPlan) -> list[OperandPlan]:
    assert first.shares is not None
    return [next(o for o in c.operands if o.operand.name == name) for name in first.shares.operands]


def _shares(c: CallPlan, first: OperandPlan, loops: list[tuple[str, int]]) -> list[tuple[int, int]]:
    """Of each copy, where in the constants its share begins and how long it is."""
    assert first.shares is not None
    return [_share(c, first, start, length) for start, length in _iterations(c, loops)]


def _share(c: CallPlan, first: OperandPlan, start: dict[str, int], length: dict[str, int]) -> tuple[int, int]:
    assert first.shares is not None
    last, number = _together(c, first)[-1], 0
    for loop in (x for x in c.loops if x.axis in first.shares.axes):
        number = number * loop.trips + start[loop.axis] // loop.tile
    box = walk.tile_box(last.operand, start, length)
    size = first.shares.offsets[-1] + prod(r.count for r in box) * last.operand.itemsize
    return number * first.shares.pitch, size


def _walked(c: CallPlan, o: OperandPlan) -> tuple[dict[str, int], dict[str, int]]:
    if o.level == "l1":
        return {"l2_l1": 0}, {"l2_l1": 0}
    loops = [(x.axis, x.tile) for x in c.loops]
    pitch = [t * o.operand.itemsize for t in o.operand.far_strides]
    bytes_, transfers = {"l2_l1": 0}, {"l2_l1": 0}
    if o.level == "l3":
        bytes_["l3_l2"], transfers["l3_l2"] = _blocks_walked(c, o, pitch)
    for start, length in _iterations(c, loops[: o.depth]):
        box = [r.count for r in walk.tile_box(o.operand, start, length)]
        size, commands = count_box(box, _around(c, o, start) or pitch, o.operand.itemsize, _limits("l2_l1"))
        bytes_["l2_l1"] += size
        transfers["l2_l1"] += commands
    return bytes_, transfers


def _limits(hop: str) -> HopLimits:
    return HopLimits(TARGET.hops[hop].max_bytes, TARGET.hops[hop].max_stride)


def _blocks(c: CallPlan, tile: L2Tile) -> list[tuple[str, int]]:
    """The loops around what a stage holds, as if that were the tile."""
    loops = [(x.axis, x.tile) for x in c.loops[: tile.depth]]
    return [*loops[:-1], (loops[-1][0], loops[-1][1] * tile.block)] if loops else []


def _blocks_walked(c: CallPlan, o: OperandPlan, pitch: list[int]) -> tuple[int, int]:
    """(bytes, commands) of every block between L3 and its stage."""
    assert o.l2_tile is not None
    total = [0, 0]
    for start, length in _iterations(c, _blocks(c, o.l2_tile)):
        box = [r.count for r in walk.tile_box(o.operand, start, length)]
        assert prod(box) * o.operand.itemsize <= o.l2_tile.bytes
        found = count_box(box, pitch, o.operand.itemsize, _limits("l3_l2"))
        total = [a + b for a, b in zip(total, found, strict=True)]
    return total[0], total[1]


def _around(c: CallPlan, o: OperandPlan, start: dict[str, int]) -> list[int] | None:
    """The pitches within the stage of the tile that begins there; None without a stage."""
    if o.l2_tile is None:
        return None
    first, length = dict.fromkeys(c.axes, 0), dict(c.axes)
    for axis, step in _blocks(c, o.l2_tile):
        first[axis] = start[axis] - start[axis] % step
        length[axis] = min(step, c.axes[axis] - first[axis])
    box = [r.count for r in walk.tile_box(o.operand, first, length)]
    return [o.operand.itemsize * prod(box[d + 1 :]) for d in range(len(box))]


def _iterations(c: CallPlan, loops: list[tuple[str, int]]):  # type: ignore[no-untyped-def]
    for starts in product(*(range(0, c.axes[a], t) for a, t in loops)):
        start = dict.fromkeys(c.axes, 0) | {a: x for (a, _), x in zip(loops, starts, strict=True)}
        yield start, dict(c.axes) | {a: min(t, c.axes[a] - start[a]) for a, t in loops}


def every_buffer_is_where_its_calls_look(s: Schedule) -> None:
    constants = {c.name: c for c in s.constants}
    group = {i: r.first for r in s.rolls for i in range(r.first, r.last + 1)}  # its steps are its first call's
    for i, c in enumerate(s.calls):
        for o in c.operands:
            root = o.operand.root
            if o.level == "ring":
                assert any(v.root == root and v.offset == o.far for r in s.rolls for v in r.rings)
                continue
            if o.level == "l1":
                assert any(v.root == root and v.offset == o.far and v.first <= i <= v.last for v in s.stays)
                continue
            if o.level == "l3":
                assert o.far == (constants[root].cold if root in constants else s.l3_homes[root])
                continue
            far = o.far - _offset(c, o)
            here = {i, group.get(i, i)}
            found = [r for r in s.residencies if r.root == root and r.offset == far]
            assert any(r.first <= at <= r.last for r in found for at in here)
            if root in constants:
                assert any(root in t.roots and t.wait <= i for t in s.transfers)
    for t in s.transfers:
        begin = constants[t.roots[0]].cold
        assert begin <= t.l3 < begin + constants[t.roots[0]].bytes
        assert (t.start, t.start_step) <= (t.wait, t.wait_step)


def _offset(c: CallPlan, o: OperandPlan) -> int:
    """Bytes of a share before an operand's part."""
    shares = next((x.shares for x in c.operands if x.operand.name == o.lead), None)
    return 0 if shares is None else shares.offsets[shares.operands.index(o.operand.name)]


@settings(max_examples=10)
@given(networks(), SIZES, DEEP)
def test_the_same_network_gives_the_same_text_and_the_text_the_same_schedule(
    graph: FusedGraph, l1: int, l2: int
) -> None:
    s = planned(graph, l1, l2)
    if s is None:
        return
    text = schedule_to_json(s)
    assert schedule_to_json(schedule(graph, KERNELS, TARGET, l1, l2)) == text
    assert schedule_from_json(text) == s


@given(networks())
def test_the_smallest_l1_named_does(graph: FusedGraph) -> None:
    with pytest.raises(GapFuseError, match=r"L1 is too small: call .* \(kernel ") as caught:
        schedule(graph, KERNELS, TARGET, l1=16)
    least = _size_in(caught.value, "--l1")
    schedule(graph, KERNELS, TARGET, l1=least)
    with pytest.raises(GapFuseError, match="L1 is too small"):
        schedule(graph, KERNELS, TARGET, l1=least - 1)


@settings(max_examples=6)
@given(networks())
def test_the_smallest_l2_named_does(graph: FusedGraph) -> None:
    with pytest.raises(GapFuseError, match=r"L2 is too small: call .* \(kernel ") as caught:
        schedule(graph, KERNELS, TARGET, l1=30000, l2=1)
    least = _size_in(caught.value, "--l2")
    assert schedule(graph, KERNELS, TARGET, l1=30000, l2=least).peaks["l2"] <= least
    with pytest.raises(GapFuseError, match="L2 is too small"):
        schedule(graph, KERNELS, TARGET, l1=30000, l2=least - 1)


def test_the_smallest_l2_holds_a_tile_of_what_the_largest_call_reads_and_writes() -> None:
    """And any size above it has a plan. Steps towards L3 one by one ended early, at twelve times as much for an
    autoencoder: tables of what was fetched took the room of tiles."""
    graph = _four_convolutions()
    with pytest.raises(GapFuseError, match="L2 is too small") as caught:
        schedule(graph, KERNELS, TARGET, l2=1)
    least = _size_in(caught.value, "--l2")
    tight = schedule(graph, KERNELS, TARGET, l2=least)
    assert tight.peaks["l2"] == least
    assert {o.level for c in tight.calls for o in c.operands} <= {"l1", "l3"}
    for size in (least + 48, 2 * least, 3 * least):
        assert schedule(graph, KERNELS, TARGET, l2=size).peaks["l2"] <= size


def _four_convolutions() -> FusedGraph:
    b = Builder()
    x = y = b.tensor(16, 8, 8)
    for _ in range(4):
        y = b.conv(y, 16)
    return b.graph([x], [y])


def _size_in(error: GapFuseError, option: str) -> int:
    found = re.search(rf"{option} (\d+)", str(error))
    assert found is not None
    return int(found[1])


@given(networks(), st.integers(400, 4000), st.integers(0, 30000))
def test_more_l1_is_never_slower(graph: FusedGraph, l1: int, more: int) -> None:
    small, large = planned(graph, l1, 400000), planned(graph, l1 + more, 400000)
    if small is not None:
        assert large is not None
        assert large.total_cycles <= small.total_cycles


def test_activations_reach_the_live_bound() -> None:
    b = Builder()
    x = b.tensor(8, 16, 16)
    y = b.pool(b.add(b.conv(x, 8), b.conv(x, 8)))
    s = schedule(b.graph([x], [y]), KERNELS, TARGET, l1=2000)  # none of them fits
    constants = sum(-(-c.bytes // 16) * 16 for c in s.constants)
    assert s.peaks["l2"] == constants + s.bounds.live_bytes == constants + 3 * 2048


def test_a_concatenation_is_written_in_place() -> None:
    b = Builder()
    x = b.tensor(4, 8, 8)
    y = b.concat(b.conv(x, 3), b.conv(x, 5))
    graph = b.graph([x], [y])
    s = schedule(graph, KERNELS, TARGET)
    out = [o for c in s.calls for o in c.operands if o.operand.role == "out"]
    assert [o.operand.root for o in out] == [y, y]
    assert [o.operand.far_offset for o in out] == [0, 3]
    assert next(r for r in s.residencies if r.root == y).first == 0


def test_constants_are_fetched_where_l2_does_not_hold_all() -> None:
    graph = _four_convolutions()
    s = schedule(graph, KERNELS, TARGET, l2=9000)
    fetched = [t for t in s.transfers if t.start >= 0]
    assert fetched
    assert s.bytes["l3_l2"] == sum(t.bytes for t in fetched)
    assert not s.l3_homes
    assert any("fetched from L3" in n for n in s.notes)


def test_activations_spill_where_l2_is_too_small_for_them() -> None:
    b = Builder()
    x = b.tensor(8, 20, 20)
    s = schedule(b.graph([x], [b.pool(b.conv(x, 8))]), KERNELS, TARGET, l1=3000, l2=3000)
    assert s.l3_homes
    assert s.bytes["l3_l2"] > 0
    assert s.peaks["l2"] <= 3000
    assert any("they lie in L3" in n for n in s.notes)


def test_l3_too_small_names_the_size() -> None:
    b = Builder()
    x = b.tensor(8, 8, 8)
    graph = b.graph([x], [b.conv(x, 64)])
    with pytest.raises(GapFuseError, match="L3 is too small"):
        schedule(graph, KERNELS, TARGET, l3=2000)


def test_a_call_nobody_takes_says_why() -> None:
    b = Builder()
    x = b.tensor(8, 8, 8)
    b.pool(x)
    graph = b.graph([x], [b.buffers[-1].name])
    plain = replace(graph, buffers=tuple(replace(v, order=None) for v in graph.buffers))
    with pytest.raises(GapFuseError, match="x is not stored in the order n h w c"):
        schedule(plain, KERNELS, TARGET)
