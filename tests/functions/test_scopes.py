"""Regions by what exporters say of their nodes: torch's module scopes, custom operators, prefixes of node names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from fusion_engine.apply import apply
from fusion_engine.fuse import fuse_model
from fusion_engine.kernels import load_kernels
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language import load_rules
from fusion_engine.language.types import RuleSet
from fusion_engine.model import read_model
from fusion_engine.outlining import outline
from fusion_engine.planning import Planned, plan
from fusion_engine.reference import run_reference
from fusion_engine.view import view
from gap_fuse.oracle import answers

RULE = """
rule: ramp
summary: clip(x + 3, 0, 6), by its scope alone.
given: {x: "real[*S]"}
match:
  - variant: scoped
    scope: "%s"
    pattern: 'y = "*::*"(x)'
emit:
  - {kernel: map_f32, args: {x: [x]}, attrs: {expr: '"clip(add(x0, 3.0), 0.0, 6.0)"'}}
"""
RAMP = "{s} = Add({x}, three)  {c} = Max({s}, zero)  {y} = Min({c}, six)  "


@pytest.fixture(scope="module")
def shipped(root: Path) -> Mapping[str, Kernel]:
    return load_kernels([root / "kernels"])


def rules(root: Path, folder: Path, shipped: Mapping[str, Kernel], scope: str) -> RuleSet:
    (folder / "ramp.yaml").write_text(RULE % scope)
    return load_rules([root / "rules", folder], shipped)


def ramp(x: str, y: str) -> str:
    return RAMP.format(x=x, y=y, s=f"{y}_s", c=f"{y}_c")


def model(nodes: str, six: float = 6.0) -> onnx.ModelProto:
    found: onnx.ModelProto = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[2, 8] x) => (float[2, 8] y) <float three = {{3.0}}, float zero = {{0.0}}, float six = {{{six}}}>
        {{ {nodes} }}"""
    )
    return found


def mark(proto: onnx.ModelProto, count: int, classes: list[str], names: list[str], start: int = 0) -> None:
    for node in proto.graph.node[start : start + count]:
        node.metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value=repr(classes))
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=repr(names))


def planned(proto: onnx.ModelProto, known: RuleSet, kernels: Mapping[str, Kernel]) -> Planned:
    """The plan, which computes what onnxruntime computes."""
    found = plan(read_model(proto), known, kernels, check=answers)
    graph = apply(found.view, found.plan, kernels)
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32) * 3}
    mine, theirs = run_reference(graph, kernels, inputs), answers(proto, inputs)
    np.testing.assert_allclose(mine["y"], theirs["y"], rtol=1e-5, atol=1e-5)
    return found


def taken(found: Planned) -> list[tuple[str, str]]:
    return [(c.produces[0], c.evidence) for c in found.plan.chosen if c.rule == "ramp"]


def test_a_module_instance_is_one_region(root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]) -> None:
    proto = model(f"t = Tanh(x) {ramp('t', 'r')} y = Sin(r)")
    mark(proto, 3, ["Net", "my.Ramp", "aten.clamp.default"], ["", "act", "clamp"], start=1)
    found = planned(proto, rules(root, tmp_path, shipped, "my.Ramp"), shipped)
    ((result, evidence),) = taken(found)
    assert result == "r"
    assert evidence.startswith("scope my.Ramp act, its body computed as map_f32 does")


def test_two_instances_are_two_regions(root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]) -> None:
    proto = model(f"{ramp('x', 'a')} {ramp('a', 'y')}")
    mark(proto, 3, ["Net", "my.Ramp"], ["", "act.0"])
    mark(proto, 3, ["Net", "my.Ramp"], ["", "act.1"], start=3)
    found = planned(proto, rules(root, tmp_path, shipped, "my.*"), shipped)
    assert [(r, e.split(",")[0]) for r, e in taken(found)] == [
        ("a", "scope my.Ramp act.0"),
        ("y", "scope my.Ramp act.1"),
    ]


def test_calls_of_one_instance_that_do_not_touch_are_apart(
    root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]
) -> None:
    """torch names a module that is used twice by one name."""
    proto = model(f"{ramp('x', 'a')} t = Tanh(a) {ramp('t', 'y')}")
    mark(proto, 3, ["Net", "my.Ramp"], ["", "act"])
    mark(proto, 3, ["Net", "my.Ramp"], ["", "act"], start=4)
    assert [r for r, _ in taken(planned(proto, rules(root, tmp_path, shipped, "my.Ramp"), shipped))] == ["a", "y"]


def test_a_region_that_computes_something_else_is_declined(
    root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]
) -> None:
    proto = model(ramp("x", "y"), six=5.0)
    mark(proto, 3, ["Net", "my.Ramp"], ["", "act"])
    found = planned(proto, rules(root, tmp_path, shipped, "my.Ramp"), shipped)
    assert taken(found) == []
    assert "scope my.Ramp act: rule ramp (scoped) declined: its body differs" in found.matches.notes[0]
    assert found.plan.chosen[0].evidence == "structure, in scope my.Ramp act"


def test_what_flows_back_into_a_region_is_said(root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]) -> None:
    """a -> Sin (outside) -> b: one call cannot do both."""
    proto = model("a = Exp(x)  t = Sin(a)  b = Add(t, a)  y = Tanh(b)")
    for i in (0, 2):
        mark(proto, 1, ["Net", "my.Ramp"], ["", "act"], start=i)
    found = planned(proto, rules(root, tmp_path, shipped, "my.Ramp"), shipped)
    assert "scope my.Ramp act is not taken as one region: what it makes flows back into it" in found.matches.notes[0]


def test_a_custom_operator_is_a_region(root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]) -> None:
    proto = model(f"{ramp('x', 'r')} y = Sin(r)")
    mark(proto, 3, ["Net", "mylib.ramp.default"], ["", "ramp"])
    ((_, evidence),) = taken(planned(proto, rules(root, tmp_path, shipped, "mylib.ramp*"), shipped))
    assert evidence.startswith("custom target mylib.ramp.default ramp, its body computed")


@pytest.mark.parametrize("root_name", ["", "/"])
def test_a_prefix_of_node_names_is_a_region(
    root: Path, tmp_path: Path, shipped: Mapping[str, Kernel], root_name: str
) -> None:
    """As tf2onnx and the TorchScript exporter name nodes."""
    proto = model(f"{ramp('x', 'r')} y = Sin(r)")
    for node in proto.graph.node[:3]:
        node.name = f"{root_name}net/ramp_1/{node.op_type}"
    ((_, evidence),) = taken(planned(proto, rules(root, tmp_path, shipped, "*net/ramp*"), shipped))
    assert evidence.startswith(f"node-name prefix {root_name}net/ramp_1, its body computed")


def test_inner_regions_lie_in_outer_ones(root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]) -> None:
    """The outer module is no ramp: it is opened, and the inner ones are found."""
    proto = model(f"{ramp('x', 'a')} t = Tanh(a) {ramp('t', 'y')}")
    mark(proto, 3, ["Net", "my.Block", "my.Ramp"], ["", "b", "b.0"])
    mark(proto, 1, ["Net", "my.Block"], ["", "b"], start=3)
    mark(proto, 3, ["Net", "my.Block", "my.Ramp"], ["", "b", "b.1"], start=4)
    found = planned(proto, rules(root, tmp_path, shipped, "my.*"), shipped)
    assert [e.split(",")[0] for _, e in taken(found)] == ["scope my.Ramp b.0", "scope my.Ramp b.1"]
    assert any("scope my.Block b: rule ramp (scoped) declined" in n for n in found.matches.notes)


def test_the_order_of_nodes_does_not_matter(root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]) -> None:
    proto = model(f"{ramp('x', 'a')} t = Tanh(a) {ramp('t', 'b')} y = Add(b, a)")
    mark(proto, 3, ["Net", "my.Ramp"], ["", "p"])
    mark(proto, 3, ["Net", "my.Ramp"], ["", "q"], start=4)
    known = rules(root, tmp_path, shipped, "my.Ramp")
    other = onnx.ModelProto()
    other.CopyFrom(proto)
    del other.graph.node[:]
    other.graph.node.extend(reversed(proto.graph.node))
    first, second = (plan(read_model(p), known, shipped, check=answers) for p in (proto, other))
    assert taken(first) == taken(second)
    assert len(taken(first)) == 2


def test_an_outlined_model_is_the_model(root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]) -> None:
    """Opened again, its view is the file's own: names, origins, scopes."""
    proto = model(f"t = Tanh(x) {ramp('t', 'r')} y = Sin(r)")
    mark(proto, 3, ["Net", "my.Ramp", "aten.clamp.default"], ["", "act", "clamp"], start=1)
    read = read_model(proto)
    outlined = outline(read, rules(root, tmp_path, shipped, "my.Ramp"))
    assert len(outlined.model.proto.graph.node) == 3
    mine, theirs = view(outlined.model), view(read)
    assert [(n.op, n.inputs, n.outputs, n.origins, n.scopes) for n in mine.nodes] == [
        (n.op, n.inputs, n.outputs, n.origins, n.scopes) for n in theirs.nodes
    ]
    onnx.checker.check_model(outlined.model.proto, full_check=True)
    inputs = {"x": np.linspace(-9, 9, 16, dtype=np.float32).reshape(2, 8)}
    np.testing.assert_array_equal(answers(outlined.model.proto, inputs)["y"], answers(proto, inputs)["y"])


ODD_NORM = """
  m = ReduceMean <keepdims = 1> (x, last)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean <keepdims = 1> (q, last)
  w = Add(v, eps)  l = Log(w)  h = Mul(l, minus)  r = Exp(h)  n = Mul(d, r)  o = Mul(n, g)  y = Add(o, b)"""


@pytest.mark.parametrize("eps", [1e-5, 1e-3, 1e-6])
def test_epsilon_is_the_regions(root: Path, shipped: Mapping[str, Kernel], eps: float) -> None:
    """torch's metadata does not say it. 1 / sqrt(v) as exp(-log(v) / 2): no variant knows the body."""
    proto = model(ODD_NORM)
    weights = {
        "last": np.array([-1]),
        "eps": np.array(eps, np.float32),
        "minus": np.array(-0.5, np.float32),
        "g": np.linspace(0.5, 2, 8, dtype=np.float32),
        "b": np.linspace(-1, 1, 8, dtype=np.float32),
    }
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in weights.items())
    mark(proto, len(proto.graph.node), ["Net", "torch.nn.modules.normalization.LayerNorm"], ["", "norm"])
    known = load_rules([root / "rules"], shipped)
    found = planned(proto, known, shipped)
    (only,) = found.plan.chosen
    (call,) = only.calls or ()
    assert (only.rule, only.variant, call.kernel) == ("layernorm", "module", "layernorm_f32")
    assert dict(call.attrs)["epsilon"] == pytest.approx(eps, rel=1e-6)
    assert only.evidence.startswith("scope torch.nn.modules.normalization.LayerNorm norm, its body computed")
    fused = fuse_model(found)  # onnxruntime takes it
    again = planned(fused, known, shipped)
    assert fuse_model(again).SerializeToString(deterministic=True) == fused.SerializeToString(deterministic=True)
