"""Of chains of convolutions whose weights pass through L2, or whose tensors L2 does not hold: more of it is no
slower."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import FusedGraph
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder
from tiler import Target, schedule

HOP = TARGET.hops["l3_l2"]


def _behind(rate: float) -> Target:
    return replace(TARGET, hops={**TARGET.hops, "l3_l2": replace(HOP, bytes_per_cycle=rate, start=50)})


@st.composite
def chains(draw: st.DrawFn) -> FusedGraph:
    b = Builder()
    first = x = b.tensor(16, 5, 5)
    for _ in range(draw(st.integers(2, 3))):
        x = b.conv(x, draw(st.sampled_from([8, 24, 40])), draw(st.sampled_from([1, 1, 3])))
    return b.graph([first], [x])


@settings(max_examples=4)
@given(chains(), st.sampled_from([0.34, 1.0]), st.integers(3000, 9000), st.integers(500, 6000))
def test_more_l2_is_never_slower_where_constants_pass(graph: FusedGraph, rate: float, l2: int, more: int) -> None:
    small, large = (schedule(graph, KERNELS, _behind(rate), l1=6000, l2=size) for size in (l2, l2 + more))
    assert large.total_cycles <= small.total_cycles


@pytest.mark.parametrize("l1", [2000, 4000])
def test_more_l2_is_no_slower_where_tensors_lie_in_l3(l1: int) -> None:
    b = Builder()
    x = b.tensor(8, 24, 24)
    graph = b.graph([x], [b.conv(b.conv(x, 8, 1), 8)])
    cycles = [schedule(graph, KERNELS, TARGET, l1=l1, l2=l2).total_cycles for l2 in (2500, 4500, 8000, 12000, 16000)]
    assert cycles == sorted(cycles, reverse=True)
    with pytest.raises(GapFuseError, match="L2 is too small"):
        schedule(graph, KERNELS, TARGET, l1=l1, l2=50)
