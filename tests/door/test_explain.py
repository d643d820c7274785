"""`explain` as its users meet it: text that fits a screen, JSON that says the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gap_fuse.explaining import explain, explanation_lines, short
from tests.door.test_command import FP32, INT8, RULE, command, onnx_text, own_rooms

NORM = """
<ir_version: 8, opset_import: ["" : 18]>
norm (float[2,8] x) => (float[2,8] y)
<float[8] s = {1,1,1,1,1,1,1,1}, float[8] b = {0,0,0,0,0,0,0,0}, float e = {0.5}, float two = {2.0},
 int64[1] a = {-1}> {
  m = ReduceMean(x, a)
  d = Sub(x, m)
  q = Pow(d, two)
  v = ReduceMean(q, a)
  w = Add(v, e)
  r = Sqrt(w)
  n = Div(d, r)
  o = Mul(n, s)
  y = Add(o, b)
}
"""


@pytest.mark.parametrize("model", [FP32, INT8], ids=["float", "int8"])
def test_text_and_json_say_the_same(model: Path) -> None:
    told = explain(model).explanation
    text = "\n".join(explanation_lines(told))
    document = json.loads(command("explain", model, "--json").output)
    assert [n["name"] for n in document["nodes"]] == [n.name for n in told.nodes]
    for node in document["nodes"]:
        assert short(node["name"]) in text
        assert all(f"by rule {t['rule']} ({t['variant']})" in text for t in node["taken_by"])
    idle = [r for r in document["rules"] if not r["fired"]]
    assert all(r["name"] in text for r in idle)
    assert all(r["attempts"] or r["lacking"] or r["matched_but_costs_more"] or r["name"] in text for r in idle)


def test_the_line_that_stopped_a_rule_is_shown_with_a_caret(tmp_path: Path) -> None:
    result = command("explain", onnx_text(tmp_path / "m.onnx", NORM), "--rule", "layernorm")
    lines = result.output.splitlines()
    at = next(i for i, line in enumerate(lines) if "`0.0 < eps and eps < 0.1` does not hold" in line)
    source, caret = lines[at + 1 : at + 3]
    assert source[caret.index("^") : caret.rindex("^") + 1] == "0.0 < eps and eps < 0.1"
    assert "matched, then declined" in lines[at + 3]
    assert any(line.strip().startswith("had:") and "eps is 0.5" in line for line in lines)


def test_no_wall_of_text() -> None:
    """Rules without an attempt are summed up in a line of each kind; near ones take a few lines."""
    told = explain(FP32).explanation
    lines = list(explanation_lines(told))
    assert len(lines) < len(told.nodes) + 10 * 8 + 8
    assert sum(line.startswith("the model lacks an operator of theirs: ") for line in lines) == 1


def test_a_rule_that_there_is_not_says_where_rules_are_listed() -> None:
    assert "`gap-fuse rules list` shows them" in command("explain", FP32, "--rule", "zzzz").stderr


def test_own_rules_that_override_say_so(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    (rules / "squared_relu.yaml").write_text(RULE.replace("rule: squared_relu", "rule: mul"))
    text = command("explain", FP32, "--rules", rules, "--kernels", kernels).output
    assert "note: rule mul of" in text
    assert "overrides the one of" in text


def test_a_model_that_no_plan_covers_is_explained_all_the_same(tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 17]>\nm (float[2,3] x) => (int64[2,n] y) { r = Relu(x)  y = NonZero(r) }'
    )
    result = command("explain", onnx_text(tmp_path / "m.onnx", text))
    assert result.exit_code == 2
    assert "NonZero: no plan" in result.stdout
    assert "no rule takes the node y" in result.stderr
    assert json.loads(command("explain", tmp_path / "m.onnx", "--json").stdout)["nodes"][1]["taken_by"] == []


CLAMPED = """
<ir_version: 8, opset_import: ["" : 18]>
clamped (float[1,2,5,5] x) => (float[1,3,3,3] y, float[1,3,3,3] z)
<float[3,2,3,3] w = {WEIGHTS}, float zero = {0.0}, float two = {2.0}, float three = {3.0}> {
  c = Conv(x, w)
  y = Max(c, zero)
  m = Max(y, three)
  z = Min(m, two)
}
""".replace("WEIGHTS", ",".join(["0.5"] * 54))


def test_rewrites_say_what_they_made_and_what_stopped_them(tmp_path: Path) -> None:
    model = onnx_text(tmp_path / "m.onnx", CLAMPED)
    nodes = command("explain", model).output.splitlines()
    relu = next(line for line in nodes if line.split()[1:2] == ["Relu:"])
    assert "rule conv2d (plain)" in relu
    assert "rewritten by clamps (relu)" in relu
    text = command("explain", model, "--rule", "clamps").output
    assert "rule clamps" in text
    assert ": rewrote once" in text
    assert "rewritten by rule clamps (relu): y" in text
    assert "rule clamps (spelled) declined: `number(lo) <= number(hi)` does not hold" in text
    document = json.loads(command("explain", model, "--json").output)
    assert document["rewrites"] == [{"rule": "clamps", "variant": "relu", "nodes": ["y"]}]


def test_a_refused_rewrite_says_why(tmp_path: Path) -> None:
    """The bound would broadcast x up: a Clip would not."""
    text = """
<ir_version: 8, opset_import: ["" : 18]>
refused (float[3] x) => (float[1,3] y) <float[1,1] lo = {0.5}, float hi = {2.0}> {
  m = Max(x, lo)
  y = Min(m, hi)
}
"""
    told = command("explain", onnx_text(tmp_path / "m.onnx", text), "--rule", "clamps").output
    assert "the rewrite is refused: y would have the shape [3], it is [1, 3]" in told


FOLDED = """<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y, float[2,3] u)
    <float[3] c = {1,2,3}, int64[1] z = {0}> {
      [sum] c2 = Add(c, c) [same] i = Identity(x) [shape] s = Shape(i) [as_it_is] r = Reshape(i, s) a = Mul(r, c2)
      [spare] d = Exp(a) [none] e = Slice(x, z, z) y = Relu(a) [joined] q = Concat<axis=0>(y, e) u = Tanh(q)
    }"""
FATES = [
    ("sum", "sum  Add: its result does not depend on the inputs: it was computed when the model was read"),
    ("c2", "sum  Add: its result does not depend on the inputs"),
    ("shape", "shape  Shape: its result does not depend on the inputs"),
    ("same", "same  Identity: it changes nothing here: its result is `x`, a graph input"),
    ("Reshape", "as_it_is  Reshape: it changes nothing here: its result is `x`, a graph input"),
    ("spare", "spare  Exp: no output of the graph needs its result"),
    ("none", "none  Slice: its result has no element: nothing computes it"),
]


@pytest.mark.parametrize(("name", "said"), FATES)
def test_what_became_of_a_node_that_was_folded_away(tmp_path: Path, name: str, said: str) -> None:
    """It said that the model has no such node."""
    (tmp_path / "m.onnxtxt").write_text(FOLDED)
    done = command("explain", tmp_path / "m.onnxtxt", "--node", name)
    assert done.exit_code == 0, done.output
    assert done.output.startswith(said)
    (node,) = json.loads(command("explain", tmp_path / "m.onnxtxt", "--node", name, "--json").stdout)["nodes"]
    assert said.split(": ", 1)[1] in node["gone"]
