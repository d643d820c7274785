"""Tiles that come from L3 and go there through stages in L2, of any shape, under every timing of the copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fusion_engine.graph import Buffer, FusedGraph
from tests.emit.networks import Growing
from tests.emit.test_networks import SANITIZED, _check, _kernels, _planned, _target, drawn_networks
from tiler import Schedule
from tiler.checking import l2_faults
from tiler.cost import align16
from tiler.l2_tiles import axes_of, legs, shapes
from tiler.schedule import CallPlan, L2Tile, Loop, OperandPlan

ATTRS = {"pads": (1, 1, 1, 1), "strides": (1, 1)}


def _convolutions() -> FusedGraph:
    """Three in a row, each tensor larger than the L2 that they are planned for."""
    g = Growing(None, _kernels(), np.random.default_rng(1))  # type: ignore[arg-type]
    g.buffers.append(Buffer("input", "int8", (1, 8, 24, 24)))
    x = "input"
    for _ in range(3):
        x = g.call("conv2d_i8", {"x": x, **g.weights(8, 8, 3, 3)}, (1, 8, 24, 24), dict(ATTRS))
    return FusedGraph("net", tuple(g.buffers), tuple(g.calls), ("input",), (x,))


def _staged(s: Schedule) -> list[OperandPlan]:
    return [o for c in s.calls for o in c.operands if o.level == "l3"]


def _is_wide(o: OperandPlan) -> bool:
    return o.l2_tile is not None and (o.l2_tile.depth, o.l2_tile.block) != (o.depth, 1)


@pytest.mark.parametrize(("l1", "l2"), [(2000, 2500), (2600, 4400)])
def test_both_ways_through_stages(l1: int, l2: int) -> None:
    graph, s = _planned(_convolutions(), l1, l2)
    assert {"in", "out"} <= {o.operand.role for o in _staged(s)}
    assert any(len(o.stage) > 1 for o in _staged(s))
    assert l2_faults(s) == ()
    _check(graph, s, SANITIZED, 3)


def test_rows_that_tiles_share_come_once() -> None:
    """With a little more L2 than the stages of single tiles take, a stage holds several."""
    _, s = _planned(_convolutions(), 2000, 4400)
    assert any(_is_wide(o) for o in _staged(s))
    for o in _staged(s):
        assert o.bytes["l3_l2"] <= o.bytes["l2_l1"]


@st.composite
def _shaped(draw: st.DrawFn, s: Schedule) -> Schedule:
    """The plan with any L2 tiles, stages lying behind all else in as much more L2."""
    at = align16(s.peaks["l2"])
    calls = []
    for call in s.calls:
        operands = []
        for o in call.operands:
            shaped, size = _drawn_tile(draw, call, o, at) if o.level == "l3" else (o, 0)
            operands.append(shaped)
            at += size
        calls.append(replace(call, operands=tuple(operands), loops=_drawn_loops(draw, call)))
    more = at - s.peaks["l2"]
    moved = {
        hop: s.bytes[hop]
        + sum(o.bytes.get(hop, 0) for c in calls for o in c.operands)
        - sum(o.bytes.get(hop, 0) for c in s.calls for o in c.operands)
        for hop in s.bytes
    }
    budgets = {**s.budgets, "l2": s.budgets["l2"] + more}
    return replace(s, calls=tuple(calls), peaks={**s.peaks, "l2": at}, budgets=budgets, bytes=moved)


def _drawn_loops(draw: st.DrawFn, call: CallPlan) -> tuple[Loop, ...]:
    """The outermost may run downwards where it walks a result and nothing passes piece by piece."""
    results = [axes_of(o.operand) for o in call.operands if o.operand.role == "out"]
    able = call.loops and call.loops[0].axis in results[0] and not any(o.places or o.ahead for o in call.operands)
    if not able or not draw(st.booleans()):
        return call.loops
    return (replace(call.loops[0], down=True), *call.loops[1:])


def _drawn_tile(draw: st.DrawFn, call: CallPlan, o: OperandPlan, at: int) -> tuple[OperandPlan, int]:
    loops = tuple((x.axis, x.tile) for x in call.loops)
    depth, block = draw(st.sampled_from(list(shapes(o.operand, call.axes, loops, o.depth)) or [(0, 1)]))
    hops = _target().hops["l2_l1"], _target().hops["l3_l2"]
    found = legs(o.operand, tuple(call.axes.items()), loops, o.depth, (depth, block), hops)
    size = align16(found.most)
    stage = (at, at + size) if depth and draw(st.booleans()) else (at,)
    counts = [{"l2_l1": getattr(found.near, k), "l3_l2": getattr(found.deep, k)} for k in ("bytes", "commands")]
    tile = L2Tile(depth, block, found.most)
    return replace(o, stage=stage, l2_tile=tile, bytes=counts[0], transfers=counts[1]), size * len(stage)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(drawn_networks(), st.integers(700, 3000), st.integers(700, 4000), st.integers(0, 99), st.data())
def test_networks_that_l2_does_not_hold(drawn: FusedGraph, l1: int, l2: int, seed: int, data: st.DataObject) -> None:
    graph, s = _planned(drawn, l1, l2)
    assume(_staged(s))
    assert l2_faults(s) == ()
    if data.draw(st.booleans()):
        s = data.draw(_shaped(s))
        assert l2_faults(s) == ()
    _check(graph, s, SANITIZED, seed)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(700, 3000), st.integers(700, 4000), st.integers(0, 99), st.data())
def test_any_l2_tiles_of_convolutions(l1: int, l2: int, seed: int, data: st.DataObject) -> None:
    graph, s = _planned(_convolutions(), l1, l2)
    s = data.draw(_shaped(s))
    assert l2_faults(s) == ()
    _check(graph, s, SANITIZED, seed)
