"""What stays in L1: the choice against trying every set of tensors, and what a wide network does."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.graph import FusedGraph
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder, networks
from tiler import schedule
from tiler.graph_options import call_options
from tiler.liveness import Life, activation_lives
from tiler.objective import objective_of
from tiler.options import CallOptions, NoFit, Picked
from tiler.rolls import Rolls
from tiler.schedule import Schedule
from tiler.stay_choice import choose_stays
from tiler.tails import Early
from tiler.where import Where


def _candidates(graph: FusedGraph) -> list[Life]:
    ends = {graph.storage(n).root for n in (*graph.inputs, *graph.outputs)}
    return [v for v in activation_lives(graph) if v.root not in ends]


def _cost(options: tuple[CallOptions, ...], stays: tuple[Life, ...], l1: int) -> tuple[float, ...] | None:
    """The sum of every call's key with these tensors in L1, results trailing inputs; None where one does not fit."""
    total = (0.0,) * 4
    for i, o in enumerate(options):
        ends = _ends(o, stays, i)
        where = Where(frozenset(), frozenset(v.root for v in stays), ends)
        room = l1 - sum(-(-v.bytes // 16) * 16 for v in stays if v.first <= i <= v.last and v.root not in ends)
        points = o.points(where, frozenset(), 0.0)
        points = points.take(points.l1 <= room)
        if not len(points):
            return None
        cycles = np.ceil(np.round(points.column("cycles"), 6))
        cost = o.objective.cycles * cycles + points.column("rest")
        keys = zip(cost, cycles, points.column("moved"), points.column("transfers"), strict=True)
        total = tuple(a + b for a, b in zip(total, min(keys), strict=True))
    return total


def _left(lives: tuple[Life, ...], stays: tuple[Life, ...], calls: int) -> int:
    """The most bytes in L2 during one call with these tensors in L1."""
    return max(sum(v.bytes for v in lives if v.first <= i <= v.last and v not in stays) for i in range(calls))


def _ends(o: CallOptions, stays: tuple[Life, ...], call: int) -> frozenset[str]:
    """Tensors that a call is the last to read, and the one that it makes: used by one operand, whole."""
    operands = [x for x in o.bound[0].operands if x.role != "const"]
    once = [v for v in stays if [x.root for x in operands].count(v.root) == 1]
    full = [v for v in once if any(x.root == v.root and prod(x.extent) == v.bytes for x in operands)]
    made = [v.root for v in full if v.first == call]
    read = [v.root for v in full if v.last == call]
    return frozenset(made + read) if made and read else frozenset()


@settings(max_examples=15)
@given(networks(), st.sampled_from([600, 1500, 4000, 12000]), st.sampled_from(["cycles", "bytes", "cycles+3*bytes"]))
def test_no_set_of_tensors_is_better(graph: FusedGraph, l1: int, what: str) -> None:
    options = call_options(graph, KERNELS, TARGET.with_budgets(l1), objective_of(what))
    if any(isinstance(o.pick(l1), NoFit) for o in options):
        return
    candidates = _candidates(graph)
    lives = activation_lives(graph)
    sets = [s for n in range(len(candidates) + 1) for s in combinations(candidates, n)]
    costs = [(c, _left(lives, s, len(options))) for s in sets if (c := _cost(options, s, l1)) is not None]
    for least_left in (False, True):
        found = choose_stays(
            options, lives, candidates, l1, [0] * len(options), least_left=least_left, early=Early.NONE
        )
        assert found is not None
        assert found.proven
        most = min(left for _, left in costs) if least_left else max(left for _, left in costs)
        assert found.cost == min(c for c, left in costs if left <= most)
        assert found.left == _left(lives, found.lives, len(options)) <= most
        assert _cost(options, found.lives, l1) == found.cost


@settings(max_examples=15)
@given(networks(), st.sampled_from([1500, 4000, 12000]), st.sampled_from(["cycles", "bytes"]), st.sampled_from([1, 2]))
def test_where_sets_are_dropped_the_bound_still_holds(graph: FusedGraph, l1: int, what: str, most: int) -> None:
    """Above its limit of sets the choice used to say nothing of how far it is from the best."""
    target, objective = TARGET.with_budgets(l1), objective_of(what)
    options = call_options(graph, KERNELS, target, objective)
    if any(isinstance(o.pick(l1), NoFit) for o in options):
        return
    rolls = Rolls(graph, options, target, objective)
    lives, asked = activation_lives(graph), (_candidates(graph), l1, [0] * len(options), frozenset(), rolls)
    for early in Early:
        exact = choose_stays(options, lives, *asked, early=early)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tiler.stay_choice.STATES", most)
            found = choose_stays(options, lives, *asked, early=early)
        assert exact is not None
        assert found is not None
        assert exact.least == exact.cost[0]
        assert 0 < found.least <= exact.least
        if early is Early.NONE:  # else ways that differ in what they leave are taken for one that leaves the most
            assert exact.least <= found.cost[0]
            assert found.least < found.cost[0] or found.cost[0] == exact.cost[0]


@settings(max_examples=10)
@given(networks(), st.sampled_from([1500, 4000, 12000]), st.sampled_from(["cycles", "bytes"]))
def test_fused_is_never_worse_than_layer_by_layer(graph: FusedGraph, l1: int, what: str) -> None:
    target = TARGET.with_budgets(l1)
    options = call_options(graph, KERNELS, target, objective_of(what))
    if any(isinstance(o.pick(l1), NoFit) for o in options):
        return
    fused, apart = (schedule(graph, KERNELS, target, minimise=what, fused=f) for f in (True, False))
    assert not apart.stays
    assert not apart.rolls
    best = [picked for o in options if isinstance(picked := o.pick(l1), Picked)]
    assert apart.total_cycles <= sum(p.choice.total_cycles for p in best)
    assert _measure(fused, what) <= _measure(apart, what)


def _measure(s: Schedule, what: str) -> int:
    return s.total_cycles if what == "cycles" else s.bytes["l2_l1"]


def test_a_residual_block_stays_whole() -> None:
    b = Builder()
    x = b.tensor(16, 12, 12)
    y = b.conv(x, 16)
    z = b.add(b.conv(b.conv(y, 16), 16), y)
    s = schedule(b.graph([x], [b.pool(z)]), KERNELS, TARGET)
    assert len(s.stays) == 4
    assert len(s.groups) == 1
    moved = {o.operand.root: o.bytes["l2_l1"] for c in s.calls for o in c.operands if o.operand.role != "const"}
    assert all(moved[v.root] == 0 for v in s.stays)
    assert s.bytes["l2_l1"] == s.bounds.fused_bytes
    assert s.gap == 0


def test_a_call_with_more_l1_than_the_tensors_leave_is_cut() -> None:
    """Weights larger than what is left come in slices of output channels, the result staying whole."""
    b = Builder()
    x = b.tensor(64, 4, 4)
    s = schedule(b.graph([x], [b.conv(b.conv(b.conv(x, 64, 1), 64), 64, 1)]), KERNELS, TARGET, 16000, minimise="bytes")
    middle = s.calls[1]
    assert middle.loops[0].axis == "k"
    assert {o.level for o in middle.operands if o.operand.role != "const"} == {"l1"}
    assert s.bytes["l2_l1"] == s.bounds.fused_bytes


def test_a_concatenation_stays_and_its_parts_are_made_and_read_inside() -> None:
    b = Builder()
    x = b.tensor(4, 8, 8)
    y = b.conv(x, 8)
    whole = b.concat(y, b.conv(y, 8))
    s = schedule(b.graph([x], [b.conv(whole, 4)]), KERNELS, TARGET)
    assert [v.root for v in s.stays] == [whole]
    assert s.bytes["l2_l1"] == sum(c.bytes for c in s.constants) + 2 * 256


@settings(max_examples=15)
@given(networks(), st.lists(st.integers(1, 4000), min_size=2, max_size=5))
def test_a_pick_within_less_of_l2_is_that_of_a_fresh_search(graph: FusedGraph, stages: list[int]) -> None:
    """Whatever was asked before: picks that take no more of L2 than is there now are not searched again."""
    asked = call_options(graph, KERNELS, TARGET.with_budgets(4000))
    for stage in stages:
        fresh = call_options(graph, KERNELS, TARGET.with_budgets(4000))
        for o, new in zip(asked, fresh, strict=True):
            where = Where(staged=frozenset(x.root for x in o.bound[0].operands if x.role != "const"))
            assert o.pick(3000, where, stage) == new.pick(3000, where, stage)
