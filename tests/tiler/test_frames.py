"""Pads as placement: the boxes of a frame, what becomes of the graph, what must stay a call and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.graph import FusedGraph
from fusion_engine.layouts import order_layouts
from fusion_engine.reference import run_reference
from tests.emit.networks import networks as drawn_networks
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder
from tiler import order_and_schedule, schedule
from tiler.frames import border, framing, with_frame
from tiler.objective import objective_of, value


@given(st.data(), st.integers(1, 5))
def test_the_boxes_are_the_frame_and_nothing_twice(data: st.DataObject, rank: int) -> None:
    inner = data.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    pads = data.draw(st.lists(st.integers(0, 3), min_size=2 * rank, max_size=2 * rank))
    whole = np.zeros([n + pads[a] + pads[rank + a] for a, n in enumerate(inner)], int)
    for box in border(inner, pads):
        at = tuple(slice(s, s + k * (n - 1) + 1, k) for s, k, n in zip(box.start, box.step, box.shape, strict=True))
        assert whole[at].shape == box.shape
        whole[at] += 1
    whole[tuple(slice(pads[a], pads[a] + n) for a, n in enumerate(inner))] += 1
    assert (whole == 1).all()


@settings(max_examples=30)
@given(st.deferred(lambda: drawn_networks(KERNELS)), st.integers(0, 99))
def test_values_are_those_of_the_calls(drawn: FusedGraph, seed: int) -> None:
    graph = order_layouts(drawn, KERNELS)
    x = np.random.default_rng(seed).integers(-128, 128, graph.buffer["input"].shape, dtype=np.int8)
    want = run_reference(graph, KERNELS, {"input": x})
    for pad in framing(graph, KERNELS):
        placed = with_frame(graph, KERNELS, pad)
        graph = graph if isinstance(placed, str) else placed
        assert isinstance(placed, str) == (pad in graph.calls)
    got = run_reference(graph, KERNELS, {"input": x})
    for name in want:
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)


class Padded(Builder):
    """With pads of rows and columns: [top, left, bottom, right]."""

    def pad(self, x: str, pads: Sequence[int] = (1, 1, 1, 1), value: int = 3) -> str:
        _, c, h, w = self.shape(x)
        top, left, bottom, right = pads
        frame = (0, 0, top, left, 0, 0, bottom, right)
        return self.call(
            "pad_i8", (("x", x),), self.tensor(c, h + top + bottom, w + left + right), pads=frame, value=value
        )

    def placed(self, inputs: list[str], outputs: list[str]) -> FusedGraph | str:
        """The graph with its one pad in place, or why not."""
        graph = self.graph(inputs, outputs)
        (pad,) = framing(graph, KERNELS)
        return with_frame(graph, KERNELS, pad)


def test_a_chain_fills_the_frame_alone() -> None:
    b = Padded()
    x = b.tensor(4, 6, 6)
    y = b.pad(b.conv(x, 8))
    placed = b.placed([x], [b.conv(y, 4)])
    assert isinstance(placed, FusedGraph)
    assert [c.kernel for c in placed.calls] == ["conv2d_i8", "fill_i8", "fill_i8", "conv2d_i8"]
    filled = sum(int(np.prod(placed.buffer[c.results[0][1]].shape)) for c in placed.calls if c.kernel == "fill_i8")
    assert filled == 8 * (8 * 8 - 6 * 6)


def test_what_frames_a_concatenation_or_a_frame_holds_it() -> None:
    b = Padded()
    x = b.tensor(4, 6, 6)
    whole = b.pad(b.pad(b.concat(b.conv(x, 3), b.conv(x, 5))), (0, 2, 1, 0))
    graph = b.graph([x], [b.conv(whole, 4)])
    for pad in framing(graph, KERNELS):
        placed = with_frame(graph, KERNELS, pad)
        assert isinstance(placed, FusedGraph), placed
        graph = placed
    made = {graph.root(c.results[0][1]) for c in graph.calls[:-1]}
    assert made == {graph.root(whole)}


def test_an_output_may_hold_what_it_frames() -> None:
    b = Padded()
    x = b.tensor(4, 6, 6)
    y = b.pad(b.conv(x, 8))
    placed = b.placed([x], [y])
    assert isinstance(placed, FusedGraph)
    assert placed.buffer[y].alias is None


def input_framed(b: Padded, x: str) -> list[str]:
    return [b.conv(b.pad(x), 4)]


def output_framed(b: Padded, x: str) -> list[str]:
    y = b.conv(x, 8)
    return [y, b.conv(b.pad(y), 4)]


def part_framed(b: Padded, x: str) -> list[str]:
    y = b.conv(x, 3)
    b.pad(y)
    return [b.conv(b.concat(y, b.conv(x, 5)), 4)]


REASONS = {
    input_framed: "t0 is an input: it is there before",
    output_framed: "t5 is an output: it owns its bytes",
    part_framed: "t5 lies inside t12",
}


@pytest.mark.parametrize("case", REASONS, ids=lambda c: c.__name__)
def test_what_stays_a_call_says_why(case: Callable[[Padded, str], list[str]]) -> None:
    b = Padded()
    x = b.tensor(4, 6, 6)
    graph = b.graph([x], case(b, x))
    (pad,) = framing(graph, KERNELS)
    assert with_frame(graph, KERNELS, pad) == REASONS[case]
    notes = order_and_schedule(graph, KERNELS, TARGET)[1].notes
    assert f"{pad.name} copies its operand: {REASONS[case]}" in notes


def test_without_the_kernel_that_fills_it_stays_a_call() -> None:
    b = Padded()
    x = b.tensor(4, 6, 6)
    graph = b.graph([x], [b.conv(b.pad(b.conv(x, 8)), 4)])
    left = {n: k for n, k in KERNELS.items() if n != "fill_i8"}
    assert with_frame(graph, left, graph.calls[1]) == "there is no kernel fill_i8"


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=4, max_size=4).filter(any),
    st.integers(1, 16),
    st.integers(3, 12),
    st.sampled_from([1500, 4000, 16000, 64000]),
    st.sampled_from(["cycles", "bytes", "l2"]),
)
def test_no_plan_is_worse_than_with_calls(pads: list[int], c: int, size: int, l1: int, what: str) -> None:
    b = Padded()
    x = b.tensor(4, size, size)
    graph = b.graph([x], [b.conv(b.pad(b.conv(x, c), pads), 4)])
    _, best = order_and_schedule(graph, KERNELS, TARGET, l1=l1, minimise=what)
    called = schedule(graph, KERNELS, TARGET, l1=l1, minimise=what)
    assert value(objective_of(what), best) <= value(objective_of(what), called)
    assert sum("in place" in n for n in best.notes) == 1
