"""ONNX networks with Pads through the whole road: what is made in place, and the C on the hostile port."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gap_fuse
from gap_fuse.verifying import output_step
from tests.graph.test_joins import Net
from tests.networks.drawing import quantise


class Padded(Net):
    """Pads of an image [1, C, H, W]."""

    def pad(self, x: str, *ends: int, value: float = 0.5) -> str:
        """By [top, left, bottom, right]."""
        top, left, bottom, right = ends
        frame = self.ints(0, 0, top, left, 0, 0, bottom, right)
        return self.op("Pad", x, frame, self.constant(np.array(value, np.float32)))[0]


Case = Callable[[Padded], list[str]]


def chain(n: Padded) -> list[str]:
    """Between two convolutions, which keep its rows in another order than ONNX's."""
    return [n.conv(n.pad(n.conv("x", 4, 8), 1, 2, 0, 1), 8, 3)]


def elementwise(n: Padded) -> list[str]:
    """Between operators that take any order: it stays ONNX's."""
    return n.op("Tanh", n.pad(*n.op("Sigmoid", "x"), 0, 1, 2, 1))


def read_twice(n: Padded) -> list[str]:
    """What is framed is read by itself, too; the frame is read twice."""
    y = n.conv("x", 4, 4)
    z = n.pad(y, 1, 1, 1, 1)
    return [n.conv(z, 4, 2), n.op("MaxPool", z, kernel_shape=[3, 3])[0], n.conv(y, 4, 2)]


def concatenated(n: Padded) -> list[str]:
    """A padded tensor is a part of a concatenation, and one is padded."""
    a, b = n.pad(n.conv("x", 4, 3), 1, 1, 1, 1), n.pad(n.conv("x", 4, 5), 0, 2, 2, 0, value=-1.0)
    return [n.conv(n.pad(n.concat(a, b), 1, 0, 0, 1), 8, 2)]


def as_output(n: Padded) -> list[str]:
    return [n.pad(n.conv("x", 4, 4), 1, 1, 1, 1)]


def of_input(n: Padded) -> list[str]:
    """The copy that brings the input into the convolution's order writes inside the frame."""
    return [n.conv(n.pad("x", 1, 1, 1, 1), 4, 2)]


def of_input_as_it_is(n: Padded) -> list[str]:
    return n.op("Tanh", n.pad("x", 1, 1, 1, 1))


CASES: dict[Case, int] = {
    chain: 0,
    elementwise: 0,
    read_twice: 0,
    concatenated: 0,
    as_output: 0,
    of_input: 0,
    of_input_as_it_is: 1,
}


@pytest.fixture(autouse=True)
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", "-O1")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_frames_are_filled(case: Case) -> None:
    """For the fewest bytes, so many pads are still calls that copy."""
    net = Padded()
    result = gap_fuse.compile(net.model(*case(net)), minimise="bytes", fused=False)
    left = [c for c in result.graph.calls if c.kernel == "pad_f32"]
    assert len(left) == CASES[case], result.schedule.notes
    pads = [n for n in result.schedule.notes if n.startswith("pad_f32")]
    assert sum("copies" in n for n in pads) == CASES[case]
    verified(result)


def side_by_side(n: Padded) -> list[str]:
    """Results of two convolutions joined along the columns."""
    return [n.conv(n.concat(n.conv("x", 4, 4), n.conv("x", 4, 4), axis=3), 4, 2)]


@pytest.mark.parametrize("case", [chain, side_by_side], ids=lambda c: c.__name__)
def test_what_lies_in_columns_stays_in_l1(case: Case) -> None:
    """No byte of it moves: those that do are the input's, the output's and the constants', each once."""
    net = Padded()
    result = gap_fuse.compile(net.model(*case(net)), minimise="bytes")
    moved = {o.operand.root: o.bytes["l2_l1"] for c in result.schedule.calls for o in c.operands}
    stays = {s.root for s in result.schedule.stays}
    wide = [b for b in result.graph.buffers if b.name in stays and b.shape[3] > 6]
    assert wide
    assert all(moved[b.name] == 0 for b in wide)
    verified(result)


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(list(CASES)), st.booleans(), st.sampled_from([2500, 5000, 20000]), st.sampled_from([3000, 50000])
)
def test_integers_and_small_memories(case: Case, fused: bool, l1: int, l2: int) -> None:
    net = Padded()
    model = _named(net.model(*case(net)))
    verified(gap_fuse.compile(quantise(model, 1), l1=l1, l2=l2, fused=fused))


def _named(model: onnx.ModelProto) -> onnx.ModelProto:
    """With the input's name that `quantise` expects."""
    for node in model.graph.node:
        node.input[:] = ["input" if i == "x" else i for i in node.input]
    model.graph.input[0].name = "input"
    return model


def verified(result: gap_fuse.Result) -> None:
    with tempfile.TemporaryDirectory() as folder:
        verdict = gap_fuse.verify(result.write(folder), samples=1)
    assert verdict.passed, str(verdict)


def test_a_step_is_seen_in_what_a_frame_holds() -> None:
    """The calls that fill the frame read nothing, so the output of integers was held to a float network's tolerance:
    one rounding of the convolution was an error of the C."""
    net = Padded()
    model = quantise(_named(net.model(*as_output(net))), 1)
    graph = gap_fuse.compile(model, minimise="bytes", fused=False).graph
    assert any(c.kernel == "fill_i8" for c in graph.calls)
    (last,) = (c for c in graph.calls if c.kernel == "dequantize_linear")
    assert output_step(graph, graph.outputs[0]) == graph.buffer[dict(last.operands)["scale"]].data


def test_a_step_is_seen_in_the_parts_of_an_output() -> None:
    """Two dequantised results made side by side in the output."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
      t (float[1,4,3,3] x) => (float[1,8,3,3] y)
      <float s = {0.1}, float l = {0.3}, int8 z = {0}>
      { a = QuantizeLinear(x, s, z)  b = QuantizeLinear(x, l, z)  c = DequantizeLinear(a, s, z)
        d = DequantizeLinear(b, l, z)  y = Concat<axis = 1>(c, d) }""")
    graph = gap_fuse.compile(model).graph
    assert round(output_step(graph, "y"), 6) in (0.1, 0.3)
