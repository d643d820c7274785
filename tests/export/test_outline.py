"""outline(): the model answers the same; calls say where they came from; what is not outlined says why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from gap_fuse.export import outline
from gap_fuse.oracle import prepared

PATHS = ["", "a", "a.b", "a.c", "d", "d.e"]
CLASSES = {"": "net.Net", "a": "net.Block", "a.b": "net.Leaf", "a.c": "net.Leaf", "d": "net.Block", "d.e": "net.Leaf"}

Node = tuple[str, int, int, str]
"""Operator, two operands (how far back), path."""
NODES = st.lists(
    st.tuples(st.sampled_from(["Add", "Mul", "Tanh"]), st.integers(1, 4), st.integers(1, 4), st.sampled_from(PATHS)),
    min_size=1,
    max_size=12,
)


@given(NODES)
@example([("Tanh", 1, 1, "a"), ("Tanh", 1, 1, "d"), ("Add", 1, 2, "a")])  # d lies between a's nodes
@example([("Tanh", 1, 1, "a.b"), ("Tanh", 1, 1, "d.e"), ("Tanh", 2, 1, "a.b")])  # a.b runs twice
@example(  # the call of a.b stands behind its reader: positions were taken for an order, and the search never ended
    [("Add", 1, 1, "a.b"), ("Add", 1, 1, ""), ("Add", 2, 2, "a.b"), ("Add", 1, 2, "a")]
)
def test_the_outlined_model_answers_as_the_model(nodes: list[Node]) -> None:
    model = drawn(nodes)
    got = outline(model, ["net.*"])
    onnx.checker.check_model(got.model, full_check=True)
    x = np.linspace(-1, 1, 3, dtype=np.float32)
    assert np.array_equal(prepared(model)({"x": x})["y"], prepared(got.model)({"x": x})["y"])
    instances = {p for *_, p in nodes} | {q for *_, p in nodes for q in PATHS if p.startswith(f"{q}.")} | {""}
    assert {path for path, _ in got.calls} | {d.message.split("`")[1] for d in got.declined} == instances


def test_nested_instances_share_equal_bodies_and_others_get_a_suffix() -> None:
    model = drawn([("Tanh", 1, 1, "a.b"), ("Tanh", 1, 1, "a.c"), ("Mul", 1, 1, "d.e")])
    got = outline(model, ["net.Leaf", "net.Block"])
    assert {(f.domain, f.name) for f in got.model.functions} == {
        ("net", "Leaf"),
        ("net", "Leaf.1"),
        ("net", "Block"),
        ("net", "Block.1"),
    }
    assert sorted(n.op_type for n in got.model.graph.node) == ["Block", "Block.1", "Identity"]


def test_what_lies_between_is_named() -> None:
    got = outline(drawn([("Tanh", 1, 1, "a"), ("Mul", 1, 1, "d"), ("Add", 1, 2, "a")]), ["net.Block"])
    assert [path for path, _ in got.calls] == ["d"]
    assert "`a` (net.Block) is not outlined: Block `d/Block`" in str(got.declined[0])


def test_weights_are_inputs_and_shapes_stand_in_the_body() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20]>
        g (float[2,6] x) => (float[3,4] y)
        <float[6] weight = {1, 2, 3, 4, 5, 6}, int64[2] shape = {3, 4}> {
          ["/block/Mul"] h = Mul(x, weight)
          ["/block/Reshape"] y = Reshape(h, shape)
        }"""
    )
    got = outline(model, ["my.nn::Block=block"], {"block": {"size": 6, "rates": [0.5, 1.0], "mode": "fast"}})
    (call,) = got.model.graph.node
    (function,) = got.model.functions
    assert (call.domain, call.op_type, list(call.input)) == ("my.nn", "Block", ["x", "weight"])
    assert [n.op_type for n in function.node] == ["Constant", "Mul", "Reshape"]
    assert list(function.attribute) == ["mode", "rates", "size"]
    assert {a.name: onnx.helper.get_attribute_value(a) for a in call.attribute}["rates"] == [0.5, 1.0]
    assert [t.name for t in got.model.graph.initializer] == ["weight"]


def test_shape_arithmetic_is_not_shared_between_functions() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20]>
        g (float[N,6] x) => (float[N,6] y) <int64[1] six = {6}> {
          ["a/Shape"] n = Shape<start = 0, end = 1>(x)
          ["a/Concat"] s = Concat<axis = 0>(n, six)
          ["a/Reshape"] h = Reshape(x, s)
          ["b/Tanh"] t = Tanh(h)
          ["b/Reshape"] y = Reshape(t, s)
        }"""
    )
    model.graph.value_info.extend(onnx.helper.make_tensor_value_info(v, 1, ["N", 6]) for v in "ht")
    got = outline(model, ["my::A=a", "my::B=b"])
    assert [(n.op_type, list(n.input)) for n in got.model.graph.node] == [("A", ["x"]), ("B", ["h"])]
    x = np.ones((4, 6), np.float32)
    assert np.array_equal(prepared(model)({"x": x})["y"], prepared(got.model)({"x": x})["y"])


def test_values_of_bodies_are_renamed_with_the_rest() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20]>
        g (bool c, float[3] x) => (float[3] y) {
          ["m/Neg"] n = Neg(x)
          ["m/If"] y = If(c) <
            then_branch = t () => (float[3] p) { p = Tanh(n) },
            else_branch = e () => (float[3] q) { q = Add(n, x) }
          >
        }"""
    )
    got = outline(model, ["my::M=m"])
    assert len(got.model.functions) == 1
    for c in (True, False):
        feeds = {"c": np.array(c), "x": np.arange(3, dtype=np.float32)}
        assert np.array_equal(prepared(model)(feeds)["y"], prepared(got.model)(feeds)["y"])


@pytest.mark.parametrize("keep", ["my::Block", "Block=a", "my::9=a"])
def test_malformed_keep_is_an_error(keep: str) -> None:
    with pytest.raises(GapFuseError, match=r"DOMAIN::NAME|which nodes"):
        outline(drawn([("Tanh", 1, 1, "a")]), [keep])


def test_nothing_kept_changes_nothing() -> None:
    model = drawn([("Tanh", 1, 1, "a")])
    got = outline(model, ["other.*"])
    assert got.model.graph.node == model.graph.node
    assert not got.model.functions


def test_every_dynamo_export_outlines_and_answers_the_same(shared: Path) -> None:
    seen = 0
    for path in sorted((shared / "torch_exports").glob("*__dyn_*.onnx")):
        if path.stem.endswith("op26"):  # torch writes an invalid file
            continue
        model = onnx.load(path)
        got = outline(model, ["torch.nn.modules.*", "__main__.*"])
        onnx.checker.check_model(got.model, full_check=True)
        feeds = random_inputs(model)
        for a, b in zip(prepared(model)(feeds).values(), prepared(got.model)(feeds).values(), strict=True):
            assert np.array_equal(a, b), path.stem
        assert len(got.model.graph.node) == 1, path.stem
        seen += 1
    assert seen >= 30


def random_inputs(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value or 2 for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


def drawn(nodes: list[Node]) -> onnx.ModelProto:
    """A chain with skips, each node marked as torch marks it."""
    made, protos = ["x"], []
    for k, (op, first, second, path) in enumerate(nodes):
        inputs = [made[-min(n, len(made))] for n in ([first] if op == "Tanh" else [first, second])]
        node = onnx.helper.make_node(op, inputs, [f"v{k}"], name=f"n{k}")
        chain = [p for p in PATHS if p == "" or path == p or path.startswith(f"{p}.")]
        for key, own in (("name_scopes", chain), ("class_hierarchy", [CLASSES[p] for p in chain])):
            node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=repr([*own, op.lower()]))
        protos.append(node)
        made.append(f"v{k}")
    protos.append(onnx.helper.make_node("Identity", [made[-1]], ["y"]))
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(protos, "g", [info("x", 1, [3])], [info("y", 1, [3])])
    return onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 20)])
