"""Drawn models of functions that call functions: what nobody claims is inlined, and loses nothing of what it said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import helper

from fusion_engine.apply import apply
from fusion_engine.fuse import fuse_model
from fusion_engine.kernels import load_kernels
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language import load_rules
from fusion_engine.language.types import RuleSet
from fusion_engine.model import read_model
from fusion_engine.planning import Planned, plan
from fusion_engine.reference import run_reference
from fusion_engine.view import FUNCTION, view
from gap_fuse.oracle import answers

OPS = ("Relu", "Tanh", "Sigmoid", "Sin")
DOMAIN = "my.blocks"
LEVELS = 3

Body = list[str]
"""A chain: operators, and calls `F0`, `F1`, ... of functions further in."""


def bodies(level: int) -> st.SearchStrategy[Body]:
    inner = [f"F{k}" for k in range(level + 1, LEVELS)]
    return st.lists(st.sampled_from([*OPS, *inner, *inner]), min_size=1, max_size=3)


MODELS = st.tuples(*(bodies(level) for level in range(-1, LEVELS)))
"""The graph's body, then those of F0, F1, F2."""


@pytest.fixture(scope="module")
def shipped(root: Path) -> Mapping[str, Kernel]:
    return load_kernels([root / "kernels"])


@pytest.fixture(scope="module")
def rules(root: Path, shipped: Mapping[str, Kernel]) -> RuleSet:
    return load_rules([root / "rules"], shipped)


@given(MODELS)
@example((["F0", "F0"], ["F1", "F2"], ["F2", "F2"], ["Tanh"]))  # one function by four ways, each twice
def test_functions_nobody_claims_are_inlined_with_all_they_say(
    rules: RuleSet, shipped: Mapping[str, Kernel], model: tuple[Body, ...]
) -> None:
    proto = drawn(model)
    expected = straight(model)
    seen = view(read_model(proto))
    # Equal nodes are one node: a chain has none, so that nodes are compared as they come.
    assert [n.op for n in seen.nodes] == [op for op, _, _ in expected]
    for node, (_, path, said) in zip(seen.nodes, expected, strict=True):
        assert [s.name.rpartition("/")[2] for s in node.scopes if s.kind == FUNCTION] == path
        assert dict(node.metadata) == said
    found = plan(read_model(proto), rules, shipped)
    assert found.matches.notes == ()
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(computed(found, x), answers(proto, {"x": x})["y"], rtol=1e-5, atol=1e-6)
    fused = fuse_model(found)
    np.testing.assert_allclose(answers(fused, {"x": x})["y"], answers(proto, {"x": x})["y"], rtol=1e-5, atol=1e-6)
    again = plan(read_model(fused), rules, shipped)
    assert [(n.origins, n.scopes, n.metadata) for n in again.view.nodes] == [
        (n.origins, n.scopes, n.metadata) for n in found.view.nodes
    ]


def computed(found: Planned, x: np.ndarray) -> np.ndarray:
    return run_reference(apply(found.view, found.plan, found.kernels), found.kernels, {"x": x})["y"]


def straight(model: tuple[Body, ...]) -> list[tuple[str, list[str], dict[str, str]]]:
    """Each operator in order, with the calls around it and the metadata: its own before that of the calls."""

    def walk(body: Body, level: int, path: list[str], said: dict[str, str]):  # type: ignore[no-untyped-def]
        for k, op in enumerate(body):
            own = said | note(level, k)
            if op.startswith("F"):
                yield from walk(model[int(op[1:]) + 1], int(op[1:]), [*path, f"n{k}"], own)
            else:
                yield op, path, own

    return list(walk(model[0], -1, [], {}))


def note(level: int, k: int) -> dict[str, str]:
    """What the k-th node of a body says: a key of its own level, and one that inner nodes say anew."""
    return {f"level{level}": str(k), "author": f"{level}.{k}"}


def drawn(model: tuple[Body, ...]) -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes(model[0], -1), "g", [info("x", 1, [2, 3])], [info("y", 1, [2, 3])])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    functions = [
        helper.make_function(DOMAIN, f"F{level}", ["x"], ["y"], nodes(body, level), imports)
        for level, body in enumerate(model[1:])
    ]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)


def nodes(body: Body, level: int) -> list[onnx.NodeProto]:
    names = ["x", *(f"v{k}" for k in range(1, len(body))), "y"]
    made = []
    for k, op in enumerate(body):
        domain = DOMAIN if op.startswith("F") else ""
        node = helper.make_node(op, [names[k]], [names[k + 1]], name=f"n{k}", domain=domain)
        helper.set_model_props(node, note(level, k))  # type: ignore[arg-type]
        made.append(node)
    return made
