"""Where L2 does not hold a network's tensors, more of it is no slower."""

from __future__ import annotations

import pytest

from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder
from tiler import schedule


@pytest.mark.parametrize("l1", [2000, 4000])
def test_more_l2_is_no_slower_where_tensors_lie_in_l3(l1: int) -> None:
    """At 10,000 bytes both tensors of a call fit, and the weights came through what was left in crumbs: 292,630 cycles
    where 8,000 bytes took 151,465."""
    b = Builder()
    x = b.tensor(8, 24, 24)
    graph = b.graph([x], [b.conv(b.conv(x, 8, 1), 8)])
    cycles = [schedule(graph, KERNELS, TARGET, l1=l1, l2=l2).total_cycles for l2 in (2500, 4500, 8000, 10000, 16000)]
    assert cycles == sorted(cycles, reverse=True)


def test_more_l2_is_no_slower_where_steps_that_suit_it_lead_to_waiting() -> None:
    """At 6,000 bytes the steps that suited them led to 302,531 cycles, those that suited 4,500 to 245,444."""
    b = Builder()
    x = b.tensor(8, 24, 24)
    graph = b.graph([x], [b.conv(b.conv(b.conv(x, 8, 1), 8), 8, 1)])
    cycles = [schedule(graph, KERNELS, TARGET, l1=2000, l2=l2).total_cycles for l2 in (4500, 6000, 8000)]
    assert cycles == sorted(cycles, reverse=True)


def test_what_lies_in_l3_is_chosen_by_what_is_minimised() -> None:
    """Drafts were compared by cycles: minimising bytes, one of 46,160 was left for one of 49,104 in fewer cycles."""
    b = Builder()
    x = b.tensor(8, 24, 24)
    graph = b.graph([x], [b.conv(b.conv(x, 8, 1), 8)])
    found = schedule(graph, KERNELS, TARGET, l1=1000, l2=2478, minimise="bytes")
    assert sum(found.bytes.values()) <= 46160
