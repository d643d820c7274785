"""What the call before starts: only what is whole in L2 by then, and never at a price."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.graph import FusedGraph
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder, networks
from tests.tiler.test_schedule import planned
from tiler import schedule
from tiler.schedule import Schedule


def _early(s: Schedule) -> list[tuple[int, str, str]]:
    """(call, role, root) of every tile that is started early."""
    return [(i, o.operand.role, o.operand.root) for i, c in enumerate(s.calls) for o in c.operands if o.ahead]


def what_starts_early_is_there_and_no_call_takes_turns(graph: FusedGraph, s: Schedule) -> None:
    written = {graph.storage(n).root: i for i, c in enumerate(graph.calls) for _, n in c.results}
    arrived = {r: t.wait - 1 for t in reversed(s.transfers) if t.start >= 0 for r in t.roots}  # of its first piece
    rolled = {i for r in s.rolls for i in range(r.first, r.last + 1)}
    for call, role, root in _early(s):
        assert role != "out"
        assert max(written.get(root, -1), arrived.get(root, -1)) < call - 1
        assert not {call - 1, call} & rolled


def cycles_cover_computing_and_copies(s: Schedule) -> None:
    hop = TARGET.hops["l2_l1"]
    assert all(c.total_cycles >= c.compute_cycles for c in s.calls)
    assert s.total_cycles >= s.bytes["l2_l1"] / hop.bytes_per_cycle


@settings(max_examples=12)
@given(networks(), st.sampled_from([1000, 3000, 9000]), st.integers(16, 20000))
def test_more_l1_is_never_slower_where_both_are_proven(graph: FusedGraph, l1: int, more: int) -> None:
    """KWS took 0.4 % more cycles in 64 kB than in 32 kB: what starts early was no part of the choice."""
    small, large = planned(graph, l1, 400000), planned(graph, l1 + more, 400000)
    if small is not None and large is not None and not small.gap and not large.gap:
        assert large.total_cycles <= small.total_cycles


def test_a_separable_chain_is_no_slower_in_more_l1() -> None:
    """The shape of KWS: rolled groups took the place of calls whose weights come early."""
    b = Builder()
    x = b.tensor(64, 25, 5)
    y = x
    for _ in range(3):
        y = b.conv(b.depthwise(y), 64, 1)
    found = [schedule(b.graph([x], [y]), KERNELS, TARGET, l1) for l1 in (20000, 32000, 64000, 128000)]
    cycles = [s.total_cycles for s in found]
    assert cycles == sorted(cycles, reverse=True)
    assert [s.gap for s in found[1:]] == [0.0] * 3


def test_weights_of_a_chain_arrive_behind_computing() -> None:
    b = Builder()
    x = b.tensor(16, 12, 12)
    y = x
    for _ in range(4):
        y = b.conv(y, 16)
    s = schedule(b.graph([x], [y]), KERNELS, TARGET)
    names = {(i, o.operand.name) for i, c in enumerate(s.calls) for o in c.operands if o.ahead}
    assert {(i, "weight") for i in (1, 2, 3)} <= names
    issue = TARGET.hops["l2_l1"].start
    for c in s.calls[1:-1]:  # what lies between: nothing is waited for, only started
        assert c.total_cycles - c.compute_cycles <= issue * sum(o.transfers["l2_l1"] for o in c.operands) + 1
