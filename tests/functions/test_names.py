"""Rules that name a function: the name proposes, the body decides. On models written as ONNX text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from fusion_engine.apply import apply
from fusion_engine.believing import Check
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.fuse import fuse_model
from fusion_engine.kernels import load_kernels
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language import load_rules
from fusion_engine.language.types import RuleSet
from fusion_engine.model import read_model
from fusion_engine.planning import NotCoveredError, Planned, plan
from fusion_engine.reference import run_reference
from gap_fuse.oracle import answers

# ---- the rules of these tests: shipped ones, and one that only has a name to go by ----

NAMED = """
rule: ramp
summary: clip(x + 3, 0, 6), by name alone.
given: {x: "real[*S]"}
match:
  - variant: named
    pattern: 'y = "my.*::Ramp"(x)'
emit:
  - {kernel: map_f32, args: {x: [x]}, attrs: {expr: '"clip(add(x0, 3.0), 0.0, 6.0)"'}}
  - {kernel: lut_i8, stored: {x: int8, y: int8}, args: {x: stored(x), table: "table_i8(HardSwish, x, y)"}}
"""

RAMP = """three = Constant <value = float {3.0}> ()  zero = Constant <value = float {0.0}> ()
          six = Constant <value = float {%s}> ()
          s = Add(x, three)  c = Max(s, zero)  y = Min(c, six)"""


@pytest.fixture(scope="module")
def shipped(root: Path) -> Mapping[str, Kernel]:
    return load_kernels([root / "kernels"])


@pytest.fixture(scope="module")
def rules(root: Path, shipped: Mapping[str, Kernel], tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "ramp.yaml").write_text(NAMED)
    return load_rules([root / "rules", folder], shipped)


def called(body: str, name: str = "Ramp", domain: str = "my.blocks", graph: str = "y = {f}(x)") -> onnx.ModelProto:
    call = graph.replace("{f}", f"{domain}.{name}")
    model: onnx.ModelProto = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 20, "{domain}" : 1]>
        g (float[2, 8] x) => (float[2, 8] y) {{ {call} }}
        <domain: "{domain}", opset_import: ["" : 20]> {name} (x) => (y) {{ {body} }}"""
    )
    return model


def planned(
    proto: onnx.ModelProto, rules: RuleSet, kernels: Mapping[str, Kernel], check: Check | None = answers
) -> Planned:
    """The plan, which computes what onnxruntime computes."""
    found = plan(read_model(proto), rules, kernels, check=check)
    graph = apply(found.view, found.plan, kernels)
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32) * 3}
    mine, theirs = run_reference(graph, kernels, inputs), answers(proto, inputs)
    np.testing.assert_allclose(mine["y"], theirs["y"], rtol=1e-5, atol=1e-5)
    return found


def evidence(found: Planned) -> list[str]:
    return [c.evidence for c in found.plan.chosen]


# ---- one variant: by numbers or not at all ----


def test_a_body_that_computes_the_same_is_believed(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    found = planned(called(RAMP % "6.0"), rules, shipped)
    assert [(c.rule, c.variant) for c in found.plan.chosen] == [("ramp", "named")]
    assert evidence(found)[0].startswith(
        "function my.blocks::Ramp y, its body computed as map_f32 does (3 seeded inputs"
    )
    assert found.closed == {"my.blocks::Ramp"}
    assert found.matches.notes == ()


def test_a_body_that_computes_something_else_is_declined_and_opened(
    rules: RuleSet, shipped: Mapping[str, Kernel]
) -> None:
    found = planned(called(RAMP % "5.0"), rules, shipped)
    assert all(c.rule != "ramp" for c in found.plan.chosen)
    assert found.closed == frozenset()
    (note,) = found.matches.notes
    assert note.startswith("function my.blocks::Ramp y: rule ramp (named) declined: its body differs: by ")
    assert evidence(found) == ["structure, in function my.blocks::Ramp y"]


def test_without_anything_to_run_the_body_with_it_is_declined(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    found = planned(called(RAMP % "6.0"), rules, shipped, check=None)
    assert all(c.rule != "ramp" for c in found.plan.chosen)
    assert "there is nothing to run the body with" in found.matches.notes[0]


def test_a_check_that_fails_is_a_reason(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    def broken(*_: object) -> Mapping[str, np.ndarray]:
        raise GapFuseError("no such operator here")

    found = planned(called(RAMP % "6.0"), rules, shipped, check=broken)
    assert "its body could not be compared: no such operator here" in found.matches.notes[0]


def test_an_operand_that_the_rule_leaves_out_is_noticed(
    root: Path, tmp_path: Path, shipped: Mapping[str, Kernel]
) -> None:
    """The kernel cannot depend on what it is not given."""
    (tmp_path / "ramp.yaml").write_text(NAMED.replace("(x)'", "(x, _)'"))
    two = load_rules([root / "rules", tmp_path], shipped)
    proto = called("y = Mul(x, g)", graph="y = {f}(x, z)")
    proto.graph.input.add(name="z").type.CopyFrom(proto.graph.input[0].type)
    proto.functions[0].input.append("g")
    found = plan(read_model(proto), two, shipped, check=answers)
    assert "its body reads z, which the rule leaves out" in found.matches.notes[0]


def test_two_calls_are_judged_apart(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """One function, whose attribute makes it the kernel's or not."""
    body = (RAMP % "6.0").replace(
        "six = Constant <value = float {6.0}> ()", "six = Constant <value_float: float = @top> ()"
    )
    proto = called(body, graph="a = {f}<top = 6.0>(x)  y = {f}<top = 5.0>(a)")
    proto.functions[0].attribute.append("top")
    found = planned(proto, rules, shipped)
    first, *rest = found.plan.chosen
    assert (first.rule, first.produces) == ("ramp", ("a",))
    assert rest
    assert all(c.rule != "ramp" for c in rest)
    assert "Ramp y: rule ramp (named) declined" in found.matches.notes[0]


@pytest.mark.parametrize("name", ["Ramp", "Ramp.1", "Ramp.27"])
def test_exporters_number_the_instances(rules: RuleSet, shipped: Mapping[str, Kernel], name: str) -> None:
    proto = called(RAMP % "6.0")
    proto.functions[0].name = proto.graph.node[0].op_type = name
    assert planned(proto, rules, shipped).plan.chosen[0].rule == "ramp"


def test_a_function_inside_another_is_found(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    proto = called(RAMP % "6.0")
    outer = called("t = my.blocks.Ramp(x)  y = Tanh(t)", "Outer", "their.net")
    outer.functions[0].opset_import.append(onnx.helper.make_opsetid("my.blocks", 1))
    outer.opset_import.append(onnx.helper.make_opsetid("my.blocks", 1))
    outer.functions.append(proto.functions[0])
    found = planned(outer, rules, shipped)
    ramp = next(c for c in found.plan.chosen if c.rule == "ramp")
    assert ramp.evidence.startswith("function my.blocks::Ramp y/t, its body computed")


def test_a_quantised_call_is_checked_on_integers(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """The rule's table is wrong for this function: the int8 kernel is declined, the float one stays."""
    proto = called(RAMP % "6.0")
    graph = onnx.parser.parse_graph(
        """g (float[2, 8] x) => (float[2, 8] y) <float s = {0.05}, int8 z = {3}> {
             q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  r = my.blocks.Ramp(d)
             p = QuantizeLinear(r, s, z)  y = DequantizeLinear(p, s, z) }"""
    )
    proto.graph.CopyFrom(graph)
    found = plan(read_model(proto), rules, shipped, check=answers)
    taken = [call.kernel for c in found.plan.chosen if c.rule == "ramp" for call in c.calls]
    assert taken == ["map_f32"]


# ---- a variant without the name as well: by structure ----

GELU = """half = Constant <value = float {0.5}> ()  one = Constant <value = float {1.0}> ()
          root = Constant <value = float {1.4142135}> ()  s = Div(x, root)  e = Erf(s)  """
SPELLED = {
    "known": GELU + "p = Add(e, one)  m = Mul(x, p)  y = Mul(m, half)",
    "odd": GELU + "h = Mul(x, half)  g = Mul(h, e)  y = Add(h, g)",  # a grouping no variant knows
}


def gelu(body: str) -> onnx.ModelProto:
    proto = called(body, "GELU", "torch.nn.modules.activation", 'y = {f}<approximate = "none">(x)')
    proto.functions[0].attribute.append("approximate")
    return proto


def test_a_body_that_a_variant_knows_is_opened(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    found = planned(gelu(SPELLED["known"]), rules, shipped, check=None)
    assert [(c.rule, c.variant) for c in found.plan.chosen] == [("gelu", "spelled_out")]
    assert evidence(found) == ["function torch.nn.modules.activation::GELU y, its body matched by variant spelled_out"]


def test_a_body_that_no_variant_knows_is_one_call_by_its_name(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    found = planned(gelu(SPELLED["odd"]), rules, shipped)
    assert [(c.rule, c.variant) for c in found.plan.chosen] == [("gelu", "torch")]
    assert "its body computed as map_f32 does" in evidence(found)[0]


def test_a_name_with_the_wrong_body_gives_the_body(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """Called GELU, it is a SiLU."""
    found = planned(gelu("s = Sigmoid(x)  y = Mul(x, s)"), rules, shipped)
    assert all(c.rule != "gelu" for c in found.plan.chosen)
    assert "rule gelu (torch) declined: its body differs" in found.matches.notes[0]


# ---- the fused model ----


def test_a_function_taken_by_name_is_kept_by_fuse(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    found = planned(gelu(SPELLED["odd"]), rules, shipped)
    fused = fuse_model(found)
    onnx.checker.check_model(fused, full_check=True)
    again = planned(fused, rules, shipped)
    assert [(c.rule, c.variant) for c in again.plan.chosen] == [("gelu", "torch")]
    assert fuse_model(again).SerializeToString(deterministic=True) == fused.SerializeToString(deterministic=True)


def test_a_fused_call_whose_body_cannot_be_checked_any_more_is_an_error(
    rules: RuleSet, shipped: Mapping[str, Kernel]
) -> None:
    fused = fuse_model(planned(gelu(SPELLED["odd"]), rules, shipped))
    with pytest.raises(GapFuseError, match=r"the rule `gelu` \(torch\), which no longer fires") as caught:
        plan(read_model(fused), rules, shipped)
    assert "nothing to run the body with" in str(caught.value)


NESTED = """<ir_version: 10, opset_import: ["" : 20, "my.blocks" : 1, "my.inner" : 1]>
  g (float[2, 8] x) => (float[2, 8] y) { y = my.blocks.Ramp(x) }
  <domain: "my.blocks", opset_import: ["" : 20, "my.inner" : 1]> Ramp (x) => (y) {
    three = Constant <value = float {3.0}> ()  s = Add(x, three)  y = my.inner.Clamp <top = 6.0> (s) }
  <domain: "my.inner", opset_import: ["" : 20, "my.inner" : 1]> Clamp <top> (x) => (y) {
    zero = Constant <value = float {0.0}> ()  most = Constant <value_float: float = @top> ()
    c = my.inner.Least(x, most)  y = Max(c, zero) }
  <domain: "my.inner", opset_import: ["" : 20]> Least (a, b) => (y) { y = Min(a, b) }"""


def test_functions_inside_a_kept_function_keep_their_names(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """They were opened, and the fused file no longer said my.inner::Clamp."""
    found = planned(onnx.parser.parse_model(NESTED), rules, shipped)
    assert [c.variant for c in found.plan.chosen] == ["named"]
    fused = fuse_model(found)
    onnx.checker.check_model(fused, full_check=True)
    names = {f"{f.domain}::{f.name}" for f in fused.functions}
    assert names > {"my.blocks::Ramp", "my.inner::Clamp", "my.inner::Least"}
    again = planned(fused, rules, shipped)
    assert fuse_model(again).SerializeToString(deterministic=True) == fused.SerializeToString(deterministic=True)


def test_a_call_whose_body_defeats_inference_has_the_declared_type(
    rules: RuleSet, shipped: Mapping[str, Kernel]
) -> None:
    """y was of unknown type, and no rule could take the call; now the rule is tried, and says why it is declined."""
    proto = called(
        """z = Constant <value = float {0.0}> ()  low = ReduceMin <keepdims = 0> (x)  far = Less(low, z)
           y = If(far) <then_branch = t () => (p) { p = my.blocks.Foreign(x) },
                        else_branch = e () => (q) { q = my.blocks.Foreign(x) }>"""
    )
    with pytest.raises(GapFuseError) as caught:
        plan(read_model(proto), rules, shipped, check=answers)
    assert isinstance(caught.value, NotCoveredError)
    assert "rule ramp (named) declined" in caught.value.attempt.matches.notes[0]


def test_two_kept_functions_of_one_name_run_in_onnxruntime(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """Called inside the kernels' functions, onnxruntime 1.32 took the wrong overload."""
    second = RAMP.replace("s = Add(x, three)", "n = Neg(x)  s = Sub(three, n)")
    proto = called(RAMP % "6.0", graph="a = {f}(x)  y = {f}(a)")
    other = called(second % "6.0").functions[0]
    other.overload = proto.graph.node[1].overload = "two"
    proto.functions.append(other)
    found = plan(read_model(proto), rules, shipped, check=answers)
    assert [c.variant for c in found.plan.chosen] == ["named", "named"]
    fused = fuse_model(found)
    assert [f.overload for f in fused.functions if f.domain == "my.blocks"] == ["", ""]
    x = np.linspace(-9, 9, 16, dtype=np.float32).reshape(2, 8)
    once = np.clip(x + 3, 0, 6)
    np.testing.assert_allclose(answers(fused, {"x": x})["y"], np.clip(once + 3, 0, 6), rtol=1e-6)
    again = plan(read_model(fused), rules, shipped, check=answers)
    assert fuse_model(again).SerializeToString(deterministic=True) == fused.SerializeToString(deterministic=True)


# ---- functions nobody claims ----


def test_the_number_of_an_instance_is_part_of_its_name(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """The evidence read `my.blocks.Gate::1`."""
    proto = called("y = Neg(x)", "Gate")
    proto.functions[0].name = proto.graph.node[0].op_type = "Gate.1"
    assert evidence(planned(proto, rules, shipped)) == ["operator, in function my.blocks::Gate.1 y"]


def test_names_inside_a_call_are_not_the_graphs(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    """The call `y` makes `y/s` of its `s`; the graph has a `y/s` already."""
    proto = called("s = Neg(x)  y = Exp(s)", graph="s = Abs(x)  t = {f}(s)  y = Tanh(t)")
    for node in proto.graph.node:
        node.input[:] = ["t/s" if i == "s" else i for i in node.input]
        node.output[:] = ["t/s" if o == "s" else o for o in node.output]
    planned(proto, rules, shipped)


def test_functions_nobody_claims_are_inlined_with_their_metadata(rules: RuleSet, shipped: Mapping[str, Kernel]) -> None:
    none = replace(rules, rules=tuple(r for r in rules.rules if r.name != "ramp"))
    proto = called(RAMP % "6.0")
    proto.graph.node[0].metadata_props.add(key="author", value="me")
    proto.functions[0].node[-1].metadata_props.add(key="author", value="you")
    found = planned(proto, none, shipped)
    said = [(n.op, dict(n.metadata)["author"]) for n in found.view.nodes]
    assert said == [("Add", "me"), ("Clip", "you")]  # Max and Min were rewritten; what Min said goes on
    assert evidence(found) == ["structure, in function my.blocks::Ramp y"]
