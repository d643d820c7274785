"""Every LayerNorm, RMSNorm and GELU of 20 transformer blocks is found, however the file spells them.

What must not matter is a published list of what makes other tools miss them: no shapes, a no-op Cast or Identity in
between, swapped operands, axis 2 for -1, opsets, scalars of shape [1], norms of one value that share their statistics,
the order of the nodes. Matching and covering only; that the matches compute the same is proved per rule.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.matching import match
from fusion_engine.model import read_model
from fusion_engine.planning import plan
from tests.rules import running

BLOCKS, OWN_BLOCKS, WIDTH = 20, 4, 8
OPSETS = (13, 17, 18, 21, 23)


def fused(model: onnx.ModelProto) -> Counter[str]:
    """How often each rule is chosen."""
    planned = plan(read_model(model.SerializeToString()), running.rules(), running.kernels(), 8, ())
    return Counter(c.rule for c in planned.plan.chosen)


def matched(model: onnx.ModelProto, rule: str) -> set[str]:
    """The values that the rule can make."""
    return {c.produces[0] for c in match(running.see(model), running.only(rule), running.kernels()).candidates}


# ---- the generator that other tools were measured with ----


@pytest.fixture(scope="module")
def generator(shared: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen_graphs", shared / "bench" / "gen_graphs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.shared
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("change", ["none", "no shapes", "addcast", "commute", "identity", "axis1"])
def test_every_norm_gelu_and_attention_is_found(generator: ModuleType, change: str, norm: str, opset: int) -> None:
    blocks = BLOCKS if opset == 18 else 2  # one opset in full: a block is a block
    model = generator.build(blocks, opset, norm, "none" if change == "no shapes" else change)
    if change == "no shapes":
        assert not model.graph.value_info
        model.graph.output[0].type.tensor_type.ClearField("shape")
    found = fused(model)
    assert found["layernorm" if norm == "layer" else "rmsnorm"] == 2 * blocks
    assert (found["gelu"], found["attention"]) == (blocks, blocks)


# ---- a generator of our own: one spelling per block, drawn ----


@dataclass
class Spelling:
    """A network under construction; `scalar` is the shape of its scalar constants."""

    rng: np.random.Generator
    scalar: tuple[int, ...]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    norms: list[str] = field(default_factory=list)

    def node(self, op: str, *inputs: str, **attrs: object) -> str:
        """Operands of commutative operators in either order."""
        if op in ("Add", "Mul") and self.rng.random() < 0.5:
            inputs = inputs[::-1]
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.full(self.scalar, value, np.float32))

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def mean(self, x: str) -> str:
        axis = self.constant(np.array([self.rng.choice([-1, 2])], np.int64))
        return self.node("ReduceMean", x, axis, keepdims=1)

    def square(self, x: str) -> str:
        return self.node("Mul", x, x) if self.rng.random() < 0.5 else self.node("Pow", x, self.number(2.0))

    def over_root(self, x: str, v: str) -> str:
        kind = self.rng.integers(0, 4)
        if kind == 0:
            return self.node("Div", x, self.node("Sqrt", v))
        if kind == 1:
            return self.node("Mul", x, self.node("Reciprocal", self.node("Sqrt", v)))
        if kind == 2:
            return self.node("Div", x, self.node("Pow", v, self.number(0.5)))
        return self.node("Mul", x, self.node("Pow", v, self.number(-0.5)))

    def weights(self) -> str:
        return self.constant(self.rng.standard_normal(WIDTH).astype(np.float32))

    def layer_norms(self, x: str, count: int) -> list[str]:
        """Several norms of one value, as they stand after common subexpressions are merged."""
        centred = self.node("Sub", x, self.mean(x))
        if self.rng.random() < 0.5:
            variance = self.mean(self.square(centred))
        else:
            gap = self.node("Sub", self.mean(self.square(x)), self.square(self.mean(x)))
            variance = self.node("Max", gap, self.number(0.0))
        spread = self.node("Add", variance, self.number(1e-5))
        same = self.over_root(centred, spread)
        made = []
        for i in range(count):
            normal = same if i == 0 or self.rng.random() < 0.5 else self.over_root(centred, spread)
            made.append(self.node("Add", self.node("Mul", normal, self.weights()), self.weights()))
        self.norms += made
        return made

    def rms_norms(self, x: str, count: int) -> list[str]:
        spread = self.node("Add", self.mean(self.square(x)), self.number(1e-6))
        same = self.over_root(x, spread)
        made = []
        for i in range(count):
            normal = same if i == 0 or self.rng.random() < 0.5 else self.over_root(x, spread)
            made.append(self.node("Mul", normal, self.weights()))
        self.norms += made
        return made

    def gelu(self, x: str) -> str:
        root = (
            self.node("Div", x, self.number(2**0.5))
            if self.rng.random() < 0.5
            else self.node("Mul", x, self.number(0.5**0.5))
        )
        e, half = self.node("Add", self.node("Erf", root), self.number(1.0)), self.number(0.5)
        kind = self.rng.integers(0, 3)
        if kind == 0:
            return self.node("Mul", self.node("Mul", x, e), half)
        if kind == 1:
            return self.node("Mul", x, self.node("Mul", e, half))
        return self.node("Mul", self.node("Mul", x, half), e)

    def linear(self, x: str) -> str:
        return self.node("MatMul", x, self.constant(self.rng.standard_normal((WIDTH, WIDTH)).astype(np.float32)))

    def model(self, result: str, shuffled: bool) -> onnx.ModelProto:
        nodes = [self.nodes[i] for i in self.rng.permutation(len(self.nodes))] if shuffled else self.nodes
        shape = [1, 4, WIDTH]
        graph = helper.make_graph(
            nodes,
            "blocks",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, shape)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def blocks(spelling: Spelling, norms: Callable[[str, int], list[str]], branches: int) -> str:
    """x + the sum of `branches` layers, each behind a norm of x of its own, the first with a GELU."""
    x = "x"
    for _ in range(OWN_BLOCKS):
        made = [spelling.linear(n) for n in norms(x, branches)]
        made[0] = spelling.linear(spelling.gelu(made[0]))
        for m in made:
            x = spelling.node("Add", x, m)
    return x


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scalar", [(), (1,)])
@pytest.mark.parametrize("branches", [1, 2, 3])
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_every_spelling_is_found(norm: str, branches: int, scalar: tuple[int, ...], seed: int) -> None:
    """Each norm is matched; where several share their normalised value, computing that once may be the cheaper cover,
    but nothing of the idiom is left over."""
    spelling = Spelling(np.random.default_rng(seed), scalar)
    norms = spelling.layer_norms if norm == "layer" else spelling.rms_norms
    model = spelling.model(blocks(spelling, norms, branches), shuffled=seed > 0)
    rule = "layernorm" if norm == "layer" else "rmsnorm"
    assert matched(model, rule) >= set(spelling.norms)
    found = fused(model)
    assert OWN_BLOCKS <= found[rule] <= branches * OWN_BLOCKS
    assert found["gelu"] == OWN_BLOCKS
    assert set(found) <= {rule, "gelu", "linear_nd", "add", "mul", "affine", "elementwise_region"}
