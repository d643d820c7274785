"""The search against walks over all tiles, and against trying everything."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tiler import walk
from tests.tiler.calls import TARGET, bound_call, calls, convolutions, operand, tight_target
from tiler.bound import BoundAxis, BoundCall
from tiler.choice import Choice, Infeasible
from tiler.grid import breakpoints
from tiler.search import search
from tiler.space import Space

NEAR = ("l2",) * 9


def best(call: BoundCall, l1: int) -> Choice | Infeasible:
    found = search(Space(call, TARGET), l1, NEAR[: len(call.operands)]).best
    assert found is not None
    return found


@given(calls(), st.integers(16, 1500), st.booleans())
def test_figures_are_those_of_a_walk_over_all_tiles(call: BoundCall, l1: int, tight: bool) -> None:
    target = tight_target() if tight else TARGET
    found = search(Space(call, target), l1, NEAR[: len(call.operands)]).best
    if not isinstance(found, Choice):
        return
    hop = target.hops["l2_l1"]
    for i, o in enumerate(call.operands):
        size, commands, _, _ = walk.traffic(call, o, found.loops, hop)
        assert found.bytes[i] == {"l2_l1": size}
        assert found.transfers[i] == {"l2_l1": commands}
        assert found.tile_bytes[i] == walk.tile_bytes(call, o, found.loops)
        assert found.depth[i] == walk.depth_of(o, found.loops)
    assert found.l1_bytes == walk.l1_bytes(call, found.loops, found.double) <= l1
    assert found.tiles == len(list(walk.ranges(call, found.loops)))
    assert found.total_cycles == walk.total_cycles(call, found.loops, found.double, target)


@settings(max_examples=12)
@given(convolutions(largest=6), st.integers(64, 700))
def test_nothing_in_the_space_is_better(call: BoundCall, l1: int) -> None:
    found = best(call, l1)
    fits = list(_everything(call, l1))
    if isinstance(found, Infeasible):
        assert not fits
        assert found.l1_bytes == min(walk.l1_bytes(call, loops, (False,) * 4) for loops in _tilings(call))
        return
    keys = [_key(call, loops, double) for loops, double in fits]
    assert found.key == min(keys)


def _tilings(call: BoundCall) -> list[list[tuple[str, int]]]:
    """Every tile size, not only breakpoints, in every legal loop order."""
    over = call.accumulate.over if call.accumulate else ()
    result = []
    for order in permutations([a for a in call.axes if not a.whole]):
        if [a.name in over for a in order] != sorted(a.name in over for a in order):
            continue
        sizes = [[*range(a.step, a.extent, a.step), a.extent] for a in order]
        for tile in product(*sizes):
            result.append([(a.name, t) for a, t in zip(order, tile, strict=True) if t < a.extent])
    return result


def _everything(call: BoundCall, l1: int):  # type: ignore[no-untyped-def]
    seen = set()
    for loops in _tilings(call):
        if tuple(loops) in seen:
            continue
        seen.add(tuple(loops))
        for double in product([False, True], repeat=len(call.operands)):
            if any(
                d and len(list(walk.copies(call, o, loops))) == 1 for d, o in zip(double, call.operands, strict=True)
            ):
                continue
            if walk.l1_bytes(call, loops, double) <= l1:
                yield loops, double


def _key(call: BoundCall, loops: list[tuple[str, int]], double: tuple[bool, ...]) -> tuple[int, int, int, int]:
    moved = [walk.traffic(call, o, loops, TARGET.hops["l2_l1"]) for o in call.operands]
    cycles = walk.total_cycles(call, loops, double, TARGET)
    return cycles, sum(m[0] for m in moved), sum(m[1] for m in moved), walk.l1_bytes(call, loops, double)


@given(calls(), st.integers(16, 900), st.integers(0, 900))
def test_more_memory_is_never_worse(call: BoundCall, l1: int, more: int) -> None:
    small, large = best(call, l1), best(call, l1 + more)
    if isinstance(small, Choice):
        assert isinstance(large, Choice)
        assert large.total_cycles <= small.total_cycles


@given(calls(), st.integers(1, 400))
def test_the_least_memory_named_does_and_one_byte_less_does_not(call: BoundCall, l1: int) -> None:
    found = best(call, l1)
    if isinstance(found, Infeasible):
        assert isinstance(best(call, found.l1_bytes), Choice)
        assert isinstance(best(call, found.l1_bytes - 1), Infeasible)


@given(calls(), st.integers(16, 900))
def test_the_same_call_gives_the_same_choice(call: BoundCall, l1: int) -> None:
    assert best(call, l1) == best(call, l1)


@given(convolutions(), st.integers(100, 900))
def test_tiles_from_l3_pass_the_stage(call: BoundCall, l1: int) -> None:
    found = search(Space(call, TARGET), l1, ("l3", "l2", "l2", "l3")).best
    near = best(call, l1)
    if isinstance(found, Choice) and isinstance(near, Choice):
        assert found.stage_bytes == sum(walk.align(found.tile_bytes[i]) * (1 + found.halved[i]) for i in (0, 3))
        halved = {i: found.halved[i] for i in (0, 3)}
        assert found.total_cycles == walk.total_cycles(call, found.loops, found.double, TARGET, halved)
        assert found.bytes[0]["l3_l2"] == found.bytes[0]["l2_l1"]
        assert found.total_cycles >= near.total_cycles


@given(convolutions(), st.integers(100, 900), st.integers(32, 900), st.integers(0, 300))
def test_more_room_for_stages_is_never_worse(call: BoundCall, l1: int, stage: int, more: int) -> None:
    levels = ("l3", "l2", "l2", "l3")
    small, large = (search(Space(call, TARGET), l1, levels, s).best for s in (stage, stage + more))
    if isinstance(small, Choice):
        assert small.stage_bytes <= stage
        assert isinstance(large, Choice)
        assert large.total_cycles <= small.total_cycles


@given(st.integers(1, 200), st.sampled_from([1, 2, 4, 16]), st.sampled_from([None, 5, 32]))
@example(1, 16, None)
@example(33, 16, 32)
def test_breakpoints_hold_the_least_tile_of_every_count(n: int, step: int, limit: int | None) -> None:
    limit = None if limit is None else max(step, limit // step * step)
    sizes = breakpoints(BoundAxis("a", n, False, step, limit)).tolist()
    legal = [t for t in range(1, n + 1) if (t % step == 0 or t == n) and (limit is None or t <= limit)]
    least = {}
    for t in legal:
        least.setdefault(-(-n // t), t)
    assert sizes == sorted(least.values())


def test_a_huge_space_is_thinned_and_says_so() -> None:
    x = operand("x[a, b, c, d]", (999, 999, 999, 999), (0, 1, 2, 3))
    y = operand("y[a, b, c, d]", (999, 999, 999, 999), (0, 1, 2, 3), "out")
    call = bound_call([BoundAxis(a, 999) for a in "abcd"], [x, y], "a*b*c*d")
    outcome = search(Space(call, TARGET), 30000, NEAR[:2])
    assert outcome.thinned
    assert isinstance(outcome.best, Choice)


@pytest.mark.parametrize("l1", [2000, 8000, 36000])
def test_unchanged_tiles_are_not_sent_again(l1: int) -> None:
    x = operand("x[p, c]", (64, 32), (0, 1))
    w = operand("w[k, c]", (64, 32), (0, 1), "const")
    y = operand("y[p, k]", (64, 64), (0, 1), "out")
    call = bound_call([BoundAxis("p", 64), BoundAxis("k", 64), BoundAxis("c", 32, whole=True)], [x, w, y], "p*k*c")
    found = best(call, l1)
    assert isinstance(found, Choice)
    sent = [b["l2_l1"] for b in found.bytes]
    assert sent[2] == 4096
    assert sent[0] == 2048 or sent[1] == 2048  # the operand of the outer loop is read once
