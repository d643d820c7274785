"""The order of independent calls: against every order, never worse than the one given, chains untouched."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import FusedGraph
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder, networks
from tiler import order_and_schedule, schedule
from tiler.call_order import CallOrder, call_orders, in_order
from tiler.dependencies import predecessors
from tiler.liveness import activation_lives, most_live
from tiler.objective import objective_of, value


@st.composite
def branches(draw: st.DrawFn) -> FusedGraph:
    """Some chains of different widths from one tensor, their ends summed or outputs."""
    b = Builder()
    x = b.tensor(draw(st.integers(1, 8)), 8, 8)
    ends, outputs = [], []
    for _ in range(draw(st.integers(2, 3))):
        y = x
        for _ in range(draw(st.integers(0, 1))):
            y = b.conv(y, draw(st.sampled_from([2, 16, 48])), 1)
        ends.append(b.conv(y, 4, draw(st.sampled_from([1, 3]))))
    if draw(st.booleans()):
        outputs.append(ends.pop())
    total = ends[0]
    for e in ends[1:]:
        total = b.add(total, e)
    return b.graph([x], [total, *outputs])


def _orders(graph: FusedGraph) -> list[tuple[int, ...]]:
    """Every order in which no call comes before one that it waits for."""
    before = predecessors(graph)
    calls = range(len(graph.calls))
    return [p for p in permutations(calls) if all(not before[c] & sum(1 << d for d in p[i:]) for i, c in enumerate(p))]


def _live(graph: FusedGraph, calls: tuple[int, ...]) -> int:
    return most_live(activation_lives(in_order(graph, CallOrder("", calls, 0, None))), len(calls))


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(branches() | networks())
def test_no_order_has_less_live_than_the_least(graph: FusedGraph) -> None:
    assume(len(graph.calls) <= 7)
    orders = call_orders(graph, 500)
    least = min(_live(graph, p) for p in _orders(graph))
    assert {o.least for o in orders} == {least}
    assert [o.live for o in orders] == [_live(graph, o.calls) for o in orders]
    assert min(o.live for o in orders) == least
    assert all(o.calls in _orders(graph) for o in orders)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(branches() | networks(), st.sampled_from([1200, 4000]), st.sampled_from(["cycles", "bytes", "l2"]))
def test_never_worse_than_the_order_given(graph: FusedGraph, l1: int, what: str) -> None:
    try:
        as_given = schedule(graph, KERNELS, TARGET, l1, minimise=what)
    except GapFuseError:
        assume(False)
    ordered, best = order_and_schedule(graph, KERNELS, TARGET, l1, minimise=what)
    goal = objective_of(what)
    assert value(goal, best) <= value(goal, as_given)
    assert [c.call for c in best.calls] == [c.name for c in ordered.calls]
    assert sorted(c.name for c in ordered.calls) == sorted(c.name for c in graph.calls)
    assert order_and_schedule(graph, KERNELS, TARGET, l1, minimise=what) == (ordered, best)


def _two_wide_branches() -> FusedGraph:
    """Two branches that are wide in the middle, given side by side: one after the other needs half."""
    b = Builder()
    x = b.tensor(4, 16, 16)
    wide = [b.conv(x, 32, 1), b.conv(x, 32, 1)]
    return b.graph([x], [b.add(b.conv(wide[0], 4, 1), b.conv(wide[1], 4, 1))])


@pytest.mark.parametrize("fused", [False, True])
def test_branches_run_one_after_the_other(fused: bool) -> None:
    graph = _two_wide_branches()
    ordered, best = order_and_schedule(
        graph, KERNELS, TARGET, 11000, minimise="l2" if not fused else "cycles", fused=fused
    )
    assert [c.name for c in ordered.calls] == ["call0", "call2", "call1", "call3", "call4"]
    assert best.bounds.live_bytes == 1024 + 1024 + 8192
    assert any("order of the calls: least live" in n for n in best.notes)
    as_given = schedule(graph, KERNELS, TARGET, 11000, fused=fused)
    assert best.bounds.live_bytes < as_given.bounds.live_bytes
    assert best.bytes["l2_l1"] <= as_given.bytes["l2_l1"]


def test_a_chain_has_one_order() -> None:
    b = Builder()
    x = b.tensor(4, 8, 8)
    y = b.conv(x, 8)
    graph = b.graph([x], [b.add(b.conv(b.conv(y, 8), 8), y)])
    assert [o.calls for o in call_orders(graph, 100)] == [(0, 1, 2, 3)]
    ordered, best = order_and_schedule(graph, KERNELS, TARGET)
    assert ordered == graph
    assert best == schedule(graph, KERNELS, TARGET)


def test_parts_of_one_tensor_do_not_wait_for_each_other() -> None:
    """A part may be read before the other is there; whoever reads the whole waits for both."""
    b = Builder()
    x = b.tensor(4, 8, 8)
    parts = [b.conv(x, 3), b.conv(x, 5)]
    alone = b.conv(parts[0], 2)
    graph = b.graph([x], [alone, b.conv(b.concat(*parts), 2)])
    assert predecessors(graph) == [0, 0, 0b1, 0b11]
