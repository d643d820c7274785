"""What holds of the plan of any network at any sizes: each drawn one is planned once, and everything asked of it."""

from __future__ import annotations

from hypothesis import given, settings

from fusion_engine.graph import FusedGraph
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder, networks
from tests.tiler.test_ahead import cycles_cover_computing_and_copies, what_starts_early_is_there_and_no_call_takes_turns
from tests.tiler.test_schedule import (
    DEEP,
    SIZES,
    bytes_and_transfers_are_those_of_a_walk,
    every_buffer_is_where_its_calls_look,
    nothing_overlaps_and_budgets_hold,
    planned,
)
from tiler import schedule


@settings(max_examples=60)
@given(networks(), SIZES, DEEP)
def test_what_every_plan_keeps(graph: FusedGraph, l1: int, l2: int) -> None:
    s = planned(graph, l1, l2)
    if s is None:
        return
    nothing_overlaps_and_budgets_hold(graph, s, l1, l2)
    bytes_and_transfers_are_those_of_a_walk(s)
    every_buffer_is_where_its_calls_look(s)
    what_starts_early_is_there_and_no_call_takes_turns(graph, s)
    cycles_cover_computing_and_copies(s)


def test_constants_that_arrive_while_a_group_rolls() -> None:
    """A residency counts a group's steps on its first call; the walk looked for it on every call of the group."""
    b = Builder()
    doubled = b.conv(b.add(x := b.tensor(5, 20, 20), x), 7, 1)
    both = b.add(doubled, doubled)
    joined = b.concat(b.conv(both, 4, 1), b.conv(both, 5))
    s = schedule(b.graph([x], [b.add(joined, joined)]), KERNELS, TARGET, l1=3123, l2=7633, minimise="energy")
    group = s.rolls[0]
    assert any(group.first == r.last < group.last and r.last_step for r in s.residencies)
    every_buffer_is_where_its_calls_look(s)
