"""Constants that pass through L2: present before use, places disjoint while live, the cycles those of a slow
simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.tiler.calls import TARGET
from tiler.fetching import FetchPlan, NoPlaceError, Policy, Taken, plan_fetches
from tiler.pieces import Piece
from tiler.target import Hop
from tiler.timeline import Stretch, timeline

POLICIES = st.builds(Policy, st.sampled_from([1, 64, 300, 1 << 16]), st.sampled_from([0, 100, 1000]))


@st.composite
def hops(draw: st.DrawFn) -> Hop:
    return replace(
        TARGET.hops["l3_l2"],
        bytes_per_cycle=draw(st.sampled_from([0.25, 0.5, 1.0, 4.0])),
        start=draw(st.sampled_from([0, 7, 50])),
        latency=draw(st.sampled_from([0, 11])),
        max_bytes=draw(st.sampled_from([48, 200, 1 << 16])),
        in_flight=draw(st.integers(1, 3)),
    )


@st.composite
def runs(draw: st.DrawFn) -> tuple[tuple[Stretch, ...], list[Piece]]:
    """Calls, some of them cut into steps, and the constants that they read: whole, or a piece at each step."""
    stretches: list[Stretch] = []
    pieces: list[Piece] = []
    for call in range(draw(st.integers(1, 6))):
        begin = stretches[-1].end if stretches else 0
        steps = draw(st.integers(1, 4))
        streamed = draw(st.sampled_from([0, 0, 0, 60]))
        s = Stretch(call, call, begin, steps, draw(st.integers(0, 900)), streamed)
        stretches.append(s)
        for n in range(draw(st.integers(0, 2))):
            pieces.append(Piece(f"{call}.{n}", 0, 16 * draw(st.integers(1, 12)), begin, begin + 1, True))
        for n in range(draw(st.integers(0, 2)) if steps > 1 else 0):
            size, ahead = draw(st.integers(1, 150)), draw(st.integers(0, 1))
            ends = [size * (i + 1) for i in range(steps - 1)] + [-(-size * steps // 16) * 16]
            for i, (a, b) in enumerate(zip([0, *ends], ends, strict=False)):
                pieces.append(Piece(f"{call}.w{n}", a, b - a, begin + max(0, i - ahead), begin + i + 1, b == ends[-1]))
    place = {p.root: i for i, p in reversed(list(enumerate(pieces)))}
    return tuple(stretches), sorted(pieces, key=lambda p: (p.need, place[p.root], p.begin))


@st.composite
def others(draw: st.DrawFn, steps: int, room: int) -> list[Taken]:
    """Activations at the lower end of L2."""
    result = []
    for _ in range(draw(st.integers(0, 3))):
        first = draw(st.integers(0, steps - 1))
        result.append(Taken(0, 16 * draw(st.integers(0, room // 32)), first, draw(st.integers(first, steps - 1))))
    return result


def _planned(data: st.DataObject) -> tuple[FetchPlan, tuple[Stretch, ...], list[Taken], Hop, int]:
    stretches, pieces = data.draw(runs())
    room = data.draw(st.sampled_from([160, 400, 1200]))
    taken, hop = data.draw(others(stretches[-1].end, room)), data.draw(hops())
    try:
        plan = plan_fetches(pieces, stretches, taken, (0, room), hop, data.draw(POLICIES))
    except NoPlaceError as e:
        assume(e.step < 0)
        raise
    return plan, stretches, taken, hop, room


@given(st.data())
def test_pieces_are_there_in_time_and_alone_at_their_places(data: st.DataObject) -> None:
    plan, stretches, taken, _, room = _planned(data)
    spans = [
        (at, at + p.bytes, since, p.free - 1) for p, at, since in zip(plan.pieces, plan.places, plan.since, strict=True)
    ]
    for low, high, since, last in spans:
        assert 0 <= low < high <= room
        assert all(high <= t.low or t.high <= low or last < t.first or t.last < since for t in taken)
    for (a, b, f, g), (c, d, h, k) in combinations(spans, 2):
        assert b <= c or d <= a or g < h or k < f
    assert [i for x in plan.loads for i in range(x.first, x.last + 1)] == list(range(len(plan.pieces)))
    cold = _in_l3(plan.pieces)
    for x in plan.loads:
        here = range(x.first, x.last + 1)
        assert x.fetch.wait == min(plan.pieces[i].need for i in here) >= x.fetch.start
        assert x.fetch.bytes == sum(plan.pieces[i].bytes for i in here)
        assert [plan.places[i] for i in here] == [
            x.l2 + sum(plan.pieces[j].bytes for j in range(x.first, i)) for i in here
        ]
        assert all((plan.places[i] - plan.pieces[i].begin) % 16 == 0 for i in here)
        assert [cold[i] for i in here] == [cold[x.first] + plan.places[i] - x.l2 for i in here]
    assert all(s.end > 0 for s in stretches)


def _in_l3(pieces: Sequence[Piece]) -> list[int]:
    """Where each piece lies there: one constant behind the other, in the order in which they are first needed."""
    ends = {p.root: p.begin + p.bytes for p in pieces if p.last}
    starts, at = {}, 0
    for root in dict.fromkeys(p.root for p in pieces):
        starts[root], at = at, at + ends[root]
    return [starts[p.root] + p.begin for p in pieces]


def test_a_constant_between_two_in_l3_is_not_passed_over() -> None:
    """The second piece of a weight and the next call's constants came as one copy, though the weight's bias, whole
    before, lies between them in L3: the copy brought the bias in their place (mobilenetv1, 128 kB of L2)."""
    pieces = [
        Piece("weight", 0, 160, 0, 1, False),
        Piece("bias", 0, 32, 0, 1, True),
        Piece("weight", 160, 160, 1, 2, True),
        Piece("next", 0, 64, 2, 3, True),
    ]
    stretches = (Stretch(0, 0, 0, 2, 900, 0), Stretch(1, 1, 2, 1, 100, 0))
    plan = plan_fetches(pieces, stretches, [], (0, 1200), TARGET.hops["l3_l2"], Policy(1 << 16, 0))
    assert [(x.first, x.last) for x in plan.loads] == [(0, 0), (1, 1), (2, 2), (3, 3)]


@given(st.data())
def test_the_cycles_are_those_of_a_slow_simulation(data: st.DataObject) -> None:
    plan, stretches, _, hop, _ = _planned(data)
    fetches = [x.fetch for x in plan.loads]
    whole = [replace(s, cycles=s.cycles * s.steps, streamed=s.streamed * s.steps) for s in stretches]
    assert timeline(stretches, fetches, hop).end == pytest.approx(plan.cycles)
    found = timeline(whole, fetches, hop)
    assert found.end == pytest.approx(_slowly(whole, fetches, hop))
    assert sum(found.waited) == pytest.approx(found.end - sum(s.cycles for s in whole))


def _slowly(stretches, fetches, hop):  # type: ignore[no-untyped-def]
    """What core 0 does, one thing after the other; the engine as a list of commands, each with its end."""
    todo = []  # (what, amount)
    started = arrived = 0
    for s in stretches:
        for step in range(s.begin, s.end):
            while started < len(fetches) and fetches[started].start <= step:
                size = fetches[started].bytes
                while size > 0:
                    todo.append(("command", started, min(size, hop.max_bytes)))
                    size -= hop.max_bytes
                started += 1
            while arrived < started and fetches[arrived].wait <= step:
                todo.append(("wait", arrived, 0))
                arrived += 1
            todo.append(("work", s.streamed / s.steps, s.cycles / s.steps))
    now, engine, ends = 0.0, 0.0, []
    for what, a, b in todo:
        if what == "command":
            under_way = sorted(end for _, end in ends if end > now)
            while len(under_way) >= hop.in_flight:
                now = under_way.pop(0)
            now += hop.start
            engine = max(now, engine) + hop.latency + b / hop.bytes_per_cycle
            ends.append((a, engine))
        elif what == "wait":
            now = max([now, *(end for n, end in ends if n == a)])
        else:
            begun = now
            if a:
                engine = max(now, engine) + a / hop.bytes_per_cycle
            now = max(begun + b, engine if a else 0.0)
    return now


@given(st.data())
def test_a_run_is_no_shorter_than_the_engine_and_no_shorter_than_its_calls(data: st.DataObject) -> None:
    plan, stretches, _, hop, _ = _planned(data)
    moved = sum(p.bytes for p in plan.pieces) / hop.bytes_per_cycle
    assert plan.cycles >= max(moved, sum(s.cycles for s in stretches)) - 1e-6


def test_a_ring_keeps_a_fully_connected_network_at_the_bandwidth() -> None:
    """Ten constants of eight pieces each through room for four pieces, at a byte a cycle: the engine never rests."""
    stretches = tuple(Stretch(i, i, 8 * i, 8, 800, 0) for i in range(10))
    pieces = [
        Piece(f"w{i}", 1024 * j, 1024, 8 * i + max(0, j - 1), 8 * i + j + 1, j == 7)
        for i in range(10)
        for j in range(8)
    ]
    hop = replace(TARGET.hops["l3_l2"], bytes_per_cycle=1.0, start=50)
    plan = plan_fetches(pieces, stretches, [], (0, 4096), hop, Policy(1024, 0))
    assert plan.cycles <= 1.01 * 80 * 1024
    assert plan.top <= 4096


def test_a_ring_that_has_time_hides_all_but_the_starts() -> None:
    """The second start, too, is hidden: core 0 waits for the first copy anyway."""
    stretches = tuple(Stretch(i, i, i, 1, 3000, 0) for i in range(10))
    pieces = [Piece(f"w{i}", 0, 1024, i, i + 1, True) for i in range(10)]
    hop = replace(TARGET.hops["l3_l2"], bytes_per_cycle=1.0, start=50)
    plan = plan_fetches(pieces, stretches, [], (0, 3072), hop, Policy(1024, 0))
    assert plan.cycles == 10 * 3000 + 1024 + 50 * (len(plan.loads) - 1)


def test_where_a_piece_has_no_place_its_step_is_named() -> None:
    stretches = (Stretch(0, 0, 0, 1, 10, 0), Stretch(1, 1, 1, 1, 10, 0))
    pieces = [Piece("a", 0, 64, 0, 1, True), Piece("b", 0, 128, 1, 2, True)]
    with pytest.raises(NoPlaceError) as caught:
        plan_fetches(pieces, stretches, [], (0, 96), TARGET.hops["l3_l2"], Policy(64, 0))
    assert caught.value.step == 1
