"""Results that trail their inputs, in C: loops that run upwards and downwards, sums in place, equal bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import Buffer, FusedGraph
from fusion_engine.layouts import order_layouts
from tests.emit.networks import Growing
from tests.emit.test_networks import SANITIZED, WATCHED, _check, _kernels, _target
from tests.emit.test_rolls import images
from tiler import Schedule, schedule
from tiler.schedule import CallPlan


def _trailing(drawn: FusedGraph, l1: int) -> tuple[FusedGraph, Schedule]:
    graph = order_layouts(drawn, _kernels())
    try:
        timetable = schedule(graph, _kernels(), _target(), l1=l1, minimise="bytes")
    except GapFuseError:  # too little memory for this one: said with the smallest that would do
        assume(False)
        raise
    assume(any(c.trailing is not None for c in timetable.calls))
    return graph, timetable


FILTERED = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@settings(max_examples=8, suppress_health_check=FILTERED)
@given(images(), st.integers(2500, 7000), st.integers(0, 99))
def test_trailing_c_equals_references_and_plan(drawn: FusedGraph, l1: int, seed: int) -> None:
    _check(*_trailing(drawn, l1), SANITIZED, seed)


@settings(max_examples=2, suppress_health_check=FILTERED)
@given(images(), st.integers(2500, 7000), st.integers(0, 99))
def test_trailing_cores_as_threads_race_nowhere(drawn: FusedGraph, l1: int, seed: int) -> None:
    _check(*_trailing(drawn, l1), WATCHED, seed)


def _chain() -> tuple[FusedGraph, Schedule]:
    """Convolutions whose tensors do not fit L1 side by side: each result lies over most of its input."""
    g = Growing(None, _kernels(), np.random.default_rng(1))  # type: ignore[arg-type]
    g.buffers.append(Buffer("input", "int8", (1, 8, 24, 8)))
    x = "input"
    for _ in range(4):
        x = g.call("conv2d_i8", {"x": x, **g.weights(8, 8, 3, 3)}, (1, 8, 24, 8), {"pads": (1, 1, 1, 1)})
    graph = FusedGraph("chain", tuple(g.buffers), tuple(g.calls), ("input",), (x,))
    graph = order_layouts(graph, _kernels())
    return graph, schedule(graph, _kernels(), _target(), l1=3600, minimise="bytes")


def _trailing_calls(timetable: Schedule) -> list[CallPlan]:
    return [c for c in timetable.calls if c.trailing is not None and c.loops]


def test_a_chain_walks_up_and_down() -> None:
    """Its tensors lie over one another, and both directions are needed not to drift through memory."""
    graph, timetable = _chain()
    ways = [c.loops[0].down for c in _trailing_calls(timetable)]
    assert set(ways) == {True, False}
    _check(graph, timetable, (), 3)


def test_walking_the_other_way_is_noticed() -> None:
    """The same addresses, one loop turned round: rows are overwritten before they are read, and the results say so."""
    graph, timetable = _chain()
    wrong = next(c for c in _trailing_calls(timetable))
    turned = replace(wrong, loops=(replace(wrong.loops[0], down=not wrong.loops[0].down), *wrong.loops[1:]))
    calls = tuple(turned if c is wrong else c for c in timetable.calls)
    with pytest.raises(AssertionError):
        _check(graph, replace(timetable, calls=calls), (), 3)
