"""Rolled groups in C: rows in rings that move down, skips included, equal the references bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import parse_expr
from fusion_engine.graph import Buffer, CallAttr, FusedGraph
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.layouts import order_layouts
from tests.emit.networks import Growing, _add, _conv, _depthwise, _pointwise, _pool, _residual
from tests.emit.test_networks import SANITIZED, _check, _kernels, _target
from tiler import Schedule, Target, schedule
from tiler.emit import emit
from tiler.rolling import RollSteps
from tiler.row_calls import RollCall
from tiler.schedule import Roll


@st.composite
def images(draw: st.DrawFn) -> FusedGraph:
    """A chain of windows and sums, skips among them, over an image larger than the L1 it is planned for."""
    g = Growing(draw, _kernels(), np.random.default_rng(draw(st.integers(0, 99))))
    shape = (1, draw(st.integers(2, 8)), draw(st.integers(10, 30)), draw(st.integers(6, 14)))
    g.buffers.append(Buffer("input", "int8", shape))
    x = "input"
    layers = (_conv, _depthwise, _pointwise, _residual, _pool, _add, _dilated)
    for layer in draw(st.lists(st.sampled_from(layers), min_size=2, max_size=6)):
        x = layer(g, x)
    read = {b for c in g.calls for _, b in c.operands}
    outputs = tuple(b.name for b in g.buffers if b.data is None and b.name not in read)
    return FusedGraph("drawn", tuple(g.buffers), tuple(g.calls), ("input",), outputs)


def _dilated(g: Growing, x: str) -> str:
    """A window with a hole in it, of the height that it is given."""
    n, c, h, w = g.shape(x)
    k = g.draw(st.integers(1, 12))
    attrs: dict[str, CallAttr] = {"pads": (2, 0, 2, 0), "dilations": (2, 1), "x_zero": g.draw(st.integers(-128, 127))}
    return g.call("conv2d_i8", {"x": x, **g.weights(k, c, 3, 1)}, (n, k, h, w), attrs)


@contextmanager
def _made_again(chosen: int) -> Iterator[None]:
    """Of every group the inner tensors that have a bit in `chosen` are made again, whatever it costs; no others."""

    def forced(calls: tuple[RollCall, ...], step: int, stays: frozenset[str], target: Target) -> RollSteps:
        again = frozenset(i for i in range(len(calls) - 1) if chosen >> i & 1)
        return RollSteps(calls, step, stays, target, again)

    with patch("tiler.rolls.RollSteps", forced), patch("tiler.rolls.remade", lambda _: []):
        yield


def _rolled(drawn: FusedGraph, l1: int, minimise: str = "bytes") -> tuple[FusedGraph, Schedule]:
    graph = order_layouts(drawn, _kernels())
    try:
        timetable = schedule(graph, _kernels(), _target(), l1=l1, minimise=minimise)
    except GapFuseError:  # too little memory for this one: said with the smallest that would do
        assume(False)
        raise
    assume(timetable.rolls)
    return graph, timetable


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(images(), st.integers(800, 4000), st.sampled_from(("bytes", "cycles")), st.integers(0, 99))
def test_rolled_c_equals_references_and_plan(drawn: FusedGraph, l1: int, minimise: str, seed: int) -> None:
    _check(*_rolled(drawn, l1, minimise), SANITIZED, seed)


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(images(), st.integers(800, 4000), st.integers(1, 63), st.integers(0, 99))
def test_c_that_makes_rows_again_equals_references_and_plan(drawn: FusedGraph, l1: int, again: int, seed: int) -> None:
    """Whichever tensors keep their rows and whichever are made again: skips, strides, holes in windows too."""
    with _made_again(again):
        graph, timetable = _rolled(drawn, l1)
    rings = [ring for roll in timetable.rolls for ring in roll.rings]
    assume(any(ring.again for ring in rings))
    assert all(ring.again == bool(again >> i & 1) for roll in timetable.rolls for i, ring in enumerate(roll.rings))
    _check(graph, timetable, SANITIZED, seed)


def _costing(kernel: Kernel, cycles: str) -> Kernel:
    """A kernel whose implementations all take so many cycles."""
    implementations = tuple(replace(i, cycles=parse_expr(cycles)) for i in kernel.implementations)
    return replace(kernel, implementations=implementations)


def test_casts_of_shared_rows_cost_less_than_moving_them() -> None:
    """Eight cores that cast a row to float in fewer cycles than one moves it down: plan, comment, notes and C agree,
    and without the choice the plan is dearer."""
    kernels = _kernels() | {"cast": _costing(_kernels()["cast"], "40 + ceil(i0*i1*i2*i3 / cores) * 6")}
    g = Growing(None, _kernels(), np.random.default_rng(1))  # type: ignore[arg-type]
    g.buffers.append(Buffer("input", "int8", (1, 1, 60, 32)))
    x = g.call("cast", {"x": "input"}, (1, 1, 60, 32), {"have": "int8", "to": "float32"}, "float32")
    y = g.call("maxpool_f32", {"x": x}, (1, 1, 60, 32), {"kernel": (3, 3), "pads": (1, 1, 1, 1)}, "float32")
    graph = order_layouts(FusedGraph("drawn", tuple(g.buffers), tuple(g.calls), ("input",), (y,)), _kernels())
    timetable = schedule(graph, kernels, _target(), l1=3600)
    with _made_again(0):
        kept = schedule(graph, kernels, _target(), l1=3600)
    assert [[r.again for r in roll.rings] for roll in kept.rolls] == [[False]]
    assert [[r.again for r in roll.rings] for roll in timetable.rolls] == [[True]]
    assert timetable.total_cycles < kept.total_cycles
    assert f"rows that steps share are made again of {x}" in timetable.calls[0].notes[0]
    source = emit(graph, _kernels(), timetable, _target()).files["network.c"].decode()
    assert "made again where steps share them" in source
    _check(graph, timetable, SANITIZED, 5)


def test_an_image_is_quantised_into_the_order_that_rolls() -> None:
    """One call writes channels innermost, without a copy, and its rows roll: of the image's three planes, and moved
    down every few steps."""
    g = Growing(None, _kernels(), np.random.default_rng(1))  # type: ignore[arg-type]
    g.buffers.append(Buffer("input", "float32", (1, 3, 40, 20)))
    steps = {"scale": g.constant(np.full(1, 0.1, np.float32)), "zero": g.constant(np.zeros(1, np.int8))}
    x = g.call("quantize_linear", {"x": "input", **steps}, (1, 3, 40, 20), {})
    y = g.call("conv2d_i8", {"x": x, **g.weights(16, 3, 3, 3)}, (1, 16, 40, 20), {"pads": (1, 1, 1, 1)})
    z = g.call("conv2d_i8", {"x": y, **g.weights(16, 16, 3, 3)}, (1, 16, 40, 20), {"pads": (1, 1, 1, 1)})
    graph = order_layouts(FusedGraph("drawn", tuple(g.buffers), tuple(g.calls), ("input",), (z,)), _kernels())
    assert [c.kernel for c in graph.calls] == ["quantize_linear", "conv2d_i8", "conv2d_i8", "copy"]  # of the output
    timetable = schedule(graph, _kernels(), _target(), l1=8500, minimise="cycles+bytes")
    (roll,) = timetable.rolls
    assert (roll.first, roll.last) == (0, 2)
    assert any(ring.every > 1 for ring in roll.rings)
    assert {ring.root for ring in roll.rings} == {x, y}
    source = emit(graph, _kernels(), timetable, _target()).files["network.c"].decode()
    assert f"\n   {timetable.calls[0].tiles} tiles of rows; " in source
    _check(graph, timetable, SANITIZED, 5)


def test_columns_that_nobody_reads_keep_their_place() -> None:
    """A window that leaves the last column out sees rows of a ring further apart than its tile is wide."""

    def drawn(columns: int) -> FusedGraph:
        g = Growing(None, _kernels(), np.random.default_rng(1))  # type: ignore[arg-type]
        g.buffers.append(Buffer("input", "int8", (1, 4, 24, columns)))
        x = g.call("conv2d_i8", {"x": "input", **g.weights(16, 4, 3, 3)}, (1, 16, 24, columns), {"pads": (1, 1, 1, 1)})
        y = g.call(
            "conv2d_i8", {"x": x, **g.weights(16, 16, 3, 3)}, (1, 16, 11, (columns - 3) // 2 + 1), {"strides": (2, 2)}
        )
        return FusedGraph("drawn", tuple(g.buffers), tuple(g.calls), ("input",), (y,))

    for columns in (8, 9):
        graph = order_layouts(drawn(columns), _kernels())
        timetable = schedule(graph, _kernels(), _target(), l1=5500, minimise="bytes")
        assert bool(timetable.rolls) == (columns == 9)
        _check(graph, timetable, (), 3)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(images(), st.integers(800, 4000))
def test_rings_lie_apart_and_rows_are_made_once(drawn: FusedGraph, l1: int) -> None:
    graph, timetable = _rolled(drawn, l1)
    for roll in timetable.rolls:
        inner = {r.root for r in roll.rings}
        for i, call in enumerate(graph.calls):
            for _, name in (*call.operands, *call.results):
                assert graph.storage(name).root not in inner or roll.first <= i <= roll.last
        _check_apart(timetable, roll)
    assert timetable.peaks["l1"] <= l1


def _check_apart(timetable: Schedule, roll: Roll) -> None:
    """Rings, buffers of every call of the group and tensors that stay meanwhile do not overlap."""
    spans = [(r.offset, r.rows * r.row_bytes) for r in roll.rings]
    for c in timetable.calls[roll.first : roll.last + 1]:
        spans += [(at, o.tile_bytes) for o in c.operands for at in o.l1]
    spans += [(s.offset, s.bytes) for s in timetable.stays if s.first <= roll.last and roll.first <= s.last]
    spans.sort()
    assert all(a + n <= b for (a, n), (b, _) in pairwise(spans))
