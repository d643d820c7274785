"""Tiles that come from L3 and go there through two halves of a stage in L2, under every timing of the copies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fusion_engine.graph import Buffer, FusedGraph
from tests.emit.networks import Growing
from tests.emit.test_networks import SANITIZED, _check, _kernels, _planned, drawn_networks
from tiler import Schedule
from tiler.checking import l2_faults

ATTRS = {"pads": (1, 1, 1, 1), "strides": (1, 1)}


def _convolutions() -> FusedGraph:
    """Three in a row, each tensor larger than the L2 that they are planned for."""
    g = Growing(None, _kernels(), np.random.default_rng(1))  # type: ignore[arg-type]
    g.buffers.append(Buffer("input", "int8", (1, 8, 24, 24)))
    x = "input"
    for _ in range(3):
        x = g.call("conv2d_i8", {"x": x, **g.weights(8, 8, 3, 3)}, (1, 8, 24, 24), dict(ATTRS))
    return FusedGraph("net", tuple(g.buffers), tuple(g.calls), ("input",), (x,))


def _halved(s: Schedule) -> set[str]:
    return {o.operand.role for c in s.calls for o in c.operands if len(o.stage) > 1}


@pytest.mark.parametrize(("l1", "l2"), [(2000, 2500), (2600, 4400)])
def test_both_ways_through_halves(l1: int, l2: int) -> None:
    graph, s = _planned(_convolutions(), l1, l2)
    assert {"in", "out"} <= _halved(s)
    assert l2_faults(s) == ()
    _check(graph, s, SANITIZED, 3)


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(drawn_networks(), st.integers(700, 3000), st.integers(700, 4000), st.integers(0, 99))
def test_networks_that_l2_does_not_hold(drawn: FusedGraph, l1: int, l2: int, seed: int) -> None:
    graph, s = _planned(drawn, l1, l2)
    assume(_halved(s))
    assert l2_faults(s) == ()
    _check(graph, s, SANITIZED, seed)
