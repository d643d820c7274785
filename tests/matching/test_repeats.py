"""Blocks that repeat are searched once: whatever is offered again equals what a search of its own finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from benchmarks.qdq_graphs import build
from fusion_engine import load_kernels, load_rules, plan
from fusion_engine.covering.types import Candidate, Constant
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import StaleError, match
from fusion_engine.matching.facts import Facts
from fusion_engine.matching.neighbourhoods import ALONE, surroundings
from fusion_engine.model import read_model
from fusion_engine.view import View, view
from gap_fuse.rooms import room
from tests.matching.given import kernel, kernels_of, rules_of, view_of

SHIPPED_KERNELS = load_kernels([room("kernels")])
SHIPPED = load_rules([room("rules")], SHIPPED_KERNELS)


def key(c: Candidate) -> tuple[object, ...]:
    return (c.rule, c.variant, c.emit, sorted(c.nodes), c.consumes, c.produces, c.evidence, round(c.cost, 6), c.kernels)


def calls(c: Candidate) -> list[object]:
    """The calls with constants as numbers."""
    return [
        (call.kernel, call.results, call.attrs, call.alias,
         [(n, o.data.tolist() if isinstance(o, Constant) else o) for n, o in call.operands])
        for call in c.calls
    ]  # fmt: skip


def assert_same(v: View, rules: RuleSet = SHIPPED, kernels: object = SHIPPED_KERNELS, every: int = 1) -> int:
    """Both ways of matching agree; gives how many candidates repeat others."""
    once = match(v, rules, kernels).candidates  # type: ignore[arg-type]
    each = match(v, rules, kernels, repeats=False).candidates  # type: ignore[arg-type]
    assert [key(c) for c in once] == [key(c) for c in each]
    for a, b in list(zip(once, each, strict=True))[::every]:
        assert repr(calls(a)) == repr(calls(b))
        assert a.temporaries == b.temporaries
    return sum(c.like is not None for c in once)


# ---- networks of blocks ----

BLOCKS = ("norm", "scale", "gelu", "pair", "linear", "split")


class Network:
    """Blocks one behind the other on [1, 4, 8]; `odd` changes one block."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.outputs: list[str] = []

    def c(self, value: object, dtype: type = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def w(self, *shape: int) -> str:
        return self.c(self.rng.standard_normal(shape))

    def op(self, op: str, *inputs: str, outputs: int = 1, **attrs: object) -> str:
        names = [f"v{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"n{len(self.nodes)}", **attrs))
        return names[0]

    def block(self, kind: str, x: str, odd: str) -> str:
        if kind == "norm":
            m = self.op("ReduceMean", x, self.c([-1], np.int64))
            d = self.op("Sub", x, m)
            v = self.op("ReduceMean", self.op("Mul", d, d), self.c([-1], np.int64))
            eps = 1e-3 if odd == "literal" else 1e-5
            n = self.op("Div", d, self.op("Sqrt", self.op("Add", v, self.c(eps))))
            if odd == "output":
                self.outputs.append(n)
            return self.op("Add", self.op("Mul", n, self.w(8)), self.w(8))
        if kind == "scale":
            return self.op("Relu", self.op("Mul", x, self.c(np.full(8, 2.0)) if odd == "literal" else self.w(8)))
        if kind == "gelu":
            half = self.c(0.25 if odd == "literal" else 0.5)
            e = self.op("Erf", self.op("Div", x, self.c(np.sqrt(2.0))))
            return self.op("Mul", self.op("Mul", x, self.op("Add", e, self.c(1.0))), half)
        if kind == "pair":
            s = self.op("Sigmoid", x)
            t = self.op("Tanh", s if odd != "sharing" else self.op("Sigmoid", self.op("Neg", x)))
            return self.op("Add", self.op("Mul", s, t), x)
        if kind == "linear":
            y = self.op("Add", self.op("MatMul", x, self.w(8, 8)), self.w(8))
            if odd == "user":
                self.outputs.append(self.op("Exp", y))
            return self.op("Relu", y) if odd != "operator" else self.op("Exp", y)
        a = self.op("Split", x, outputs=2, axis=2, num_outputs=2)
        return self.op("Concat", self.op("Tanh", a), a + "_1", axis=2)

    def model(self, x: str) -> onnx.ModelProto:
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "g", [info("x", TensorProto.FLOAT, [1, 4, 8])],
            [info(o, TensorProto.FLOAT, [1, 4, 8]) for o in dict.fromkeys([*self.outputs, x])], self.constants,
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def network(pattern: Sequence[str], repeats: int, odd: dict[int, str], seed: int = 0) -> View:
    net, x = Network(seed), "x"
    for i in range(repeats):
        for kind in pattern:
            x = net.block(kind, x, odd.get(i, ""))
    return view(read_model(net.model(x)))


ODD = ("literal", "output", "sharing", "user", "operator")


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=3),
    st.dictionaries(st.integers(20, 59), st.sampled_from(ODD), max_size=3),
    st.integers(0, 9),
)
def test_blocks_with_odd_ones_among_them(pattern: list[str], odd: dict[int, str], seed: int) -> None:
    v = network(pattern, max(60, 420 // (8 * len(pattern))), odd, seed)
    assert_same(v, every=7)


def test_most_of_a_repeating_network_is_offered_again() -> None:
    v = network(("norm", "linear", "gelu"), 60, {})
    total = len(match(v, SHIPPED, SHIPPED_KERNELS).candidates)
    assert assert_same(v, every=23) > total / 2
    assert len({c for c in surroundings(Facts(v)).classes if c != ALONE}) == 17  # nodes of one block


@pytest.mark.parametrize("seed", [0, 1])
def test_quantised_blocks_keep_their_own_scales(seed: int) -> None:
    """Every block has scales, zero points, weights and biases of its own."""
    v = view(read_model(build(40, seed)))
    assert assert_same(v, every=11) > 400


def test_the_plan_is_the_same() -> None:
    model = read_model(build(30))
    chosen = plan(model, SHIPPED, SHIPPED_KERNELS).plan
    again = plan(model, SHIPPED, SHIPPED_KERNELS).plan
    assert [key(c) for c in chosen.chosen] == [key(c) for c in again.chosen]
    assert all(c.calls for c in chosen.chosen)


# ---- numbers that decide ----


def scaled(blocks: int, weights: Sequence[float]) -> View:
    """Blocks alike but for their names and weights."""
    lines, constants = [], {}
    for i in range(blocks):
        lines.append(f"m{i} = Mul(v{i}, w{i})\n s{i} = Sigmoid(m{i})\n t{i} = Tanh(s{i})\n v{i + 1} = Add(s{i}, t{i})")
        constants[f"w{i}"] = np.full(32, weights[i % len(weights)] + i / 1000, np.float32)
    operands = ", ".join(f"float[32] w{i}" for i in range(blocks))
    text = f"t (float[32] v0, {operands}) => (float[32] v{blocks}) {{ {chr(10).join(lines)} }}"
    return view_of(text, **constants)


SCALE = """
rule: scale
given: {x: "real[*S, N]", w: "const real[N]"}
match:
  - {variant: any, pattern: "y = x * w"}
emit:
  - {kernel: weighted, args: {x: x, w: w}}
  - {kernel: weighted, args: {x: x, w: "repeat(transpose(w, [0]), dim(w, 0)) / 3.0 + w"}}
  - {kernel: weighted, args: {x: x, w: "w * 2.0"}, when: ["max(w) > 2.0"]}
"""
WEIGHTED = kernels_of(kernel("weighted", {"x": "T[*S, N]", "w": "const T[N]"}, "T[*S, N]", {"of": "int = 0"}))


@pytest.mark.parametrize("entries", [1, 2, 3])
def test_conditions_on_weights_are_asked_of_each(entries: int) -> None:
    rules = rules_of("\n".join(SCALE.splitlines()[: 6 + entries]))
    v = scaled(120, (1.0, 3.0))
    once = match(v, rules, WEIGHTED, cost=lambda *_: 1.0).candidates
    each = match(v, rules, WEIGHTED, cost=lambda *_: 1.0, repeats=False).candidates
    assert [key(c) for c in once] == [key(c) for c in each]
    assert [repr(calls(c)) for c in once] == [repr(calls(c)) for c in each]
    assert any(c.like is not None for c in once) == (entries < 3)


def test_a_number_that_cannot_be_an_operand_is_found_out_when_asked_for() -> None:
    """An attribute must be whole; in one block it is not. What repeats is stale there, and matching alone drops it."""
    one = "\n".join(SCALE.splitlines()[:7])
    rules = rules_of(one.replace("w: w}}", "w: w}, attrs: {of: 'number(take([5], [max(w) - 1.0 > 5]))'}}"))
    v = scaled(200, (1.0,) * 100 + (7.0,) + (1.0,) * 99)
    once = match(v, rules, WEIGHTED, cost=lambda *_: 1.0).candidates
    alone = match(v, rules, WEIGHTED, cost=lambda *_: 1.0, repeats=False).candidates
    assert (len(once), len(alone)) == (200, 199)
    with pytest.raises(StaleError, match="does not take Mul"):
        [c.calls for c in once]
