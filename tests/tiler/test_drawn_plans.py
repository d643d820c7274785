"""What holds of the plan of any network at any sizes: each drawn one is planned once, and everything asked of it."""

from __future__ import annotations

from hypothesis import given, settings

from fusion_engine.graph import FusedGraph
from tests.tiler.networks import networks
from tests.tiler.test_ahead import cycles_cover_computing_and_copies, what_starts_early_is_there_and_no_call_takes_turns
from tests.tiler.test_schedule import (
    DEEP,
    SIZES,
    bytes_and_transfers_are_those_of_a_walk,
    every_buffer_is_where_its_calls_look,
    nothing_overlaps_and_budgets_hold,
    planned,
)


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
