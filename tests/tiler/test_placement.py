"""Placements: nothing that lives together overlaps, and the peak is the bound where one exists."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tiler.placement import _SEQUENCES, Block, Spacing, _first_fit, _peak, live_bytes, place

CALLS = 9


@st.composite
def blocks(draw: st.DrawFn) -> list[Block]:
    result = []
    for i in range(draw(st.integers(1, 10))):
        first = draw(st.integers(0, CALLS - 1))
        result.append(Block(f"b{i}", draw(st.integers(1, 200)), first, draw(st.integers(first, CALLS - 1))))
    return result


@given(blocks())
def test_blocks_that_live_together_do_not_overlap(found: list[Block]) -> None:
    placement = place(found, CALLS)
    for (a, at), (b, bt) in combinations(zip(found, placement.offsets, strict=True), 2):
        apart = at + a.size <= bt or bt + b.size <= at
        assert apart or a.last < b.first or b.last < a.first
    assert all(o >= 0 and o % 16 == 0 for o in placement.offsets)
    assert placement.peak == max(o + b.size for o, b in zip(placement.offsets, found, strict=True)) >= placement.bound


@given(blocks())
def test_the_bound_is_the_most_live_at_once(found: list[Block]) -> None:
    each = [sum(b.size for b in found if b.first <= i <= b.last) for i in range(CALLS)]
    assert live_bytes(found, CALLS) == each
    assert place(found, CALLS).bound == max(each)


@given(blocks())
def test_placing_is_deterministic(found: list[Block]) -> None:
    assert place(found, CALLS) == place(list(found), CALLS)


def test_the_solver_reaches_the_bound_where_first_fit_does_not() -> None:
    lives = [
        (4, 3, 3), (3, 0, 3), (1, 2, 6), (2, 5, 8), (3, 2, 4), (3, 5, 8),
        (3, 5, 8), (5, 6, 8), (5, 1, 1), (4, 4, 5), (5, 3, 4), (4, 0, 2),
    ]  # fmt: skip
    found = [Block(f"b{i}", 16 * s, f, e) for i, (s, f, e) in enumerate(lives)]
    placement = place(found, CALLS)
    assert placement.peak == placement.bound == 256
    for key in _SEQUENCES:
        sequence = sorted(range(len(found)), key=lambda i: (key(found[i]), found[i].name, i))
        assert _peak(found, _first_fit(found, sequence)) > placement.peak


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Block], list[Spacing]]:
    """Blocks of which some follow one another, a result that may trail its input in each such call."""
    found, spacings = draw(blocks()), []
    for call in sorted(draw(st.sets(st.integers(0, CALLS - 1), max_size=3))):
        first = next((i for i, b in enumerate(found) if b.last == call and b.first < call), None)
        second = next((i for i, b in enumerate(found) if b.first == call and b.last > call), None)
        if first is not None and second is not None:
            below = 16 * draw(st.integers(0, found[second].size // 16))
            above = 16 * draw(st.integers(-2, found[first].size // 16))
            spacings.append(Spacing(first, second, below, above, draw(st.booleans())))
    return found, spacings


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[Block], list[Spacing]]:
    """Tensors that follow one another, each a result that may trail the one before, and a buffer in some calls."""
    count = draw(st.integers(2, CALLS - 1))
    found = [Block(f"t{i}", 16 * draw(st.integers(1, 12)), i, i + 1) for i in range(count)]
    spacings = []
    for i in range(count - 1):
        below = 16 * draw(st.integers(0, found[i + 1].size // 16))
        above = 16 * draw(st.integers(0, found[i].size // 16))
        spacings.append(Spacing(i, i + 1, below, above, draw(st.booleans())))
    calls = draw(st.sets(st.integers(0, count), max_size=4))
    return [*found, *(Block(f"b{c}", 16 * draw(st.integers(1, 12)), c, c) for c in sorted(calls))], spacings


@given(st.one_of(pairs(), chains()))
def test_pairs_overlap_only_at_their_distances(drawn: tuple[list[Block], list[Spacing]]) -> None:
    found, spacings = drawn
    placement = place(found, CALLS, None, spacings)
    by_pair = {(s.first, s.second): s for s in spacings}
    for (i, (a, at)), (j, (b, bt)) in combinations(enumerate(zip(found, placement.offsets, strict=True)), 2):
        apart = at + a.size <= bt or bt + b.size <= at or a.last < b.first or b.last < a.first
        s = by_pair.get((i, j)) or by_pair.get((j, i))
        if s is not None:
            distance = placement.offsets[s.second] - placement.offsets[s.first]
            apart = apart or distance <= -s.below or distance >= s.above or (s.same and distance == 0)
        assert apart
    assert placement.peak >= placement.bound
    assert placement.peak <= max(place(found, CALLS).peak, placement.bound)
    assert place(found, CALLS, None, spacings) == placement


def test_a_block_upon_its_partner_keeps_its_distance_from_another() -> None:
    """Once the middle of a chain was put upon the first block, and the last, which may not begin there, upon both."""
    found = [Block("a", 480, 0, 1), Block("b", 480, 1, 2), Block("c", 2256, 2, 3)]
    spacings = [Spacing(0, 1, 480, 480, True), Spacing(1, 2, 2256, 112, False)]
    _, b, c = place(found, 4, None, spacings).offsets
    assert c - b <= -2256 or c - b >= 112


def test_a_chain_of_pairs_goes_up_and_down() -> None:
    """Four tensors of 10 blocks each 3 apart need 13, whichever way first fit goes."""
    found = [Block(f"b{i}", 160, i, i + 1) for i in range(4)]
    spacings = [Spacing(i, i + 1, 48, 48, False) for i in range(3)]
    placement = place(found, 5, None, spacings)
    assert placement.peak == placement.bound == 208


def test_nothing_to_place() -> None:
    assert place([], 3).peak == 0
