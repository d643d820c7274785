"""A convolution and the addition behind it as one call: as good as the two kernels, bit for bit where quantised."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.apply import apply
from fusion_engine.covering import cover
from fusion_engine.covering.types import Plan
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import match
from fusion_engine.reference import run_reference
from fusion_engine.view import View
from tests.rules import running

KERNELS = {"conv2d": (3, 1), "pointwise": (1, 1), "depthwise": (3, 4), "grouped": (3, 2)}  # filter, groups


@dataclass
class Block:
    """A quantised network under construction, of feature maps of one shape."""

    rng: np.random.Generator
    channels: int = 4
    side: int = 6
    dtype: type = np.int8
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def node(self, op: str, *inputs: str, **attrs: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        return name

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def quantisation(self, low: float = 0.01, high: float = 0.06) -> tuple[str, str]:
        zero = self.rng.integers(-100, 100) + (128 if self.dtype == np.uint8 else 0)
        scale = self.constant(np.float32(self.rng.uniform(low, high)))
        return scale, self.constant(np.asarray(zero, self.dtype))

    def rounded(self, x: str, by: tuple[str, str] | None = None) -> str:
        by = by or self.quantisation()
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *by), *by)

    def conv(self, x: str, kind: str, act: str | None) -> str:
        size, groups = KERNELS[kind]
        shape = (self.channels, self.channels // groups, size, size)
        scale = np.float32(self.rng.uniform(0.002, 0.006, self.channels))
        args = [self.constant(self.rng.integers(-127, 128, shape).astype(np.int8)), self.constant(scale)]
        w = self.node("DequantizeLinear", *args, self.constant(np.zeros(self.channels, np.int8)), axis=0)
        c = self.node("Conv", x, w, group=groups, pads=[size // 2] * 4)
        return self.node(act, c) if act else c

    def model(self, outputs: list[str], inputs: int) -> onnx.ModelProto:
        shape = (1, self.channels, self.side, self.side)
        infos = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape) for i in range(inputs)]
        made = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        data = [numpy_helper.from_array(np.asarray(v), n) for n, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "block", infos, made, data)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def plan_of(seen: View, without: str = "") -> Plan:
    library = running.rules()
    rules = RuleSet(tuple(r for r in library.rules if r.name != without), library.classes)
    return cover(seen, match(seen, rules, running.kernels()).candidates)


def answers(seen: View, plan: Plan, feeds: running.Arrays) -> list[np.ndarray]:
    graph = apply(seen, plan, running.kernels())
    values = run_reference(graph, running.kernels(), feeds)
    return [values[o] for o in graph.outputs]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(sorted(KERNELS)), st.sampled_from(("other", "input", "branch")),
    st.booleans(), st.sampled_from((None, "Relu")), st.sampled_from((None, "Relu")),
    st.sampled_from((np.int8, np.uint8)),
)  # fmt: skip
def test_one_call_rounds_as_the_two(
    seed: int, kind: str, addend: str, left: bool, inner: str | None, outer: str | None, dtype: type
) -> None:
    b = Block(np.random.default_rng(seed), dtype=dtype)
    x = b.rounded("x0")
    other = {"other": "x1", "input": x, "branch": x}[addend]
    other = b.rounded(other) if addend == "other" else b.rounded(b.conv(x, kind, None)) if addend == "branch" else x
    c = b.rounded(b.conv(x, kind, inner))
    s = b.node("Add", *((other, c) if left else (c, other)))
    y = b.rounded(b.node(outer, s) if outer else s)
    model = b.model([y], 1 + (addend == "other"))
    seen = running.see(model)
    one, two = plan_of(seen), plan_of(seen, without="conv2d_add")
    kernel = {"grouped": "conv2d_i8"}.get(kind, f"{kind}_i8")
    taken = [c for c in one.chosen if c.rule == "conv2d_add"]
    assert [call.kernel for c in taken for call in c.calls] == [kernel]
    assert len(one.chosen) == len(two.chosen) - 1
    feeds = running.draw_inputs(model, np.random.default_rng(seed))
    for have, want in zip(answers(seen, one, feeds), answers(seen, two, feeds), strict=True):
        np.testing.assert_array_equal(have, want)


def declines(b: Block, outputs: list[str]) -> list[str]:
    _, found, reasons = running.candidates(b.model(outputs, 2), "conv2d_add")
    assert not any(call.kernel.endswith("_i8") for c in found for call in c.calls), "it must not fire on integers"
    return reasons


def test_a_rounded_value_that_is_read_elsewhere_stays_a_call() -> None:
    b = Block(np.random.default_rng(0))
    c = b.rounded(b.conv(b.rounded("x0"), "conv2d", None))
    y = b.rounded(b.node("Add", c, b.rounded("x1")))
    reasons = declines(b, [y, b.node("Exp", c)])
    assert any("has another user" in r for r in reasons), reasons


def test_sixteen_bits_between_the_two_are_not_eight() -> None:
    b = Block(np.random.default_rng(0))
    by = b.constant(np.float32(0.001)), b.constant(np.int16(3))
    c = b.rounded(b.conv(b.rounded("x0"), "conv2d", None), by)
    reasons = declines(b, [b.rounded(b.node("Add", c, b.rounded("x1")))])
    assert any("no int8 storage for c: it is stored as int16" in r for r in reasons), reasons


def test_a_sum_of_what_was_not_rounded_is_no_integer_call() -> None:
    """Some quantisers leave the value between Conv and Add real: the integer kernel would round it."""
    b = Block(np.random.default_rng(0))
    c = b.conv(b.rounded("x0"), "conv2d", None)
    reasons = declines(b, [b.rounded(b.node("Add", c, b.rounded("x1")))])
    assert any("no int8 storage for c: it is float32" in r for r in reasons), reasons


@pytest.mark.parametrize("shape", [(1, 4, 1, 1), (4, 6, 6), (1, 1, 6, 6), (1,)])
def test_a_sum_that_broadcasts_is_a_call_of_its_own(shape: tuple[int, ...]) -> None:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (1, 4, 6, 6)), ("r", shape))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Add", ["c", "r"], ["y"])]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 6, 6))
    w = numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w")
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(helper.make_graph(nodes, "g", infos, [y], [w]), opset_imports=opset, ir_version=10)
    _, found, reasons = running.candidates(model, "conv2d_add")
    assert not found
    assert any("`shape(r) == shape(c)` does not hold" in r for r in reasons), reasons
