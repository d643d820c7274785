"""`rules new`: what it writes is sound, fails until the kernel is written, and matches the nodes it was taken from."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine import GapFuseError, load_kernels, match, read_model, view
from fusion_engine.language import load_rules
from fusion_engine.view import View
from gap_fuse.authoring.extracting import extract
from gap_fuse.authoring.naming import short_name
from gap_fuse.authoring.scaffolding import new_rule, rule_from
from gap_fuse.authoring.selecting import select
from tests.door.test_command import FP32, INT8, REFERENCE, SOURCE, SQUARED_RELU, command, onnx_text, refused


def test_a_new_rule_is_sound_and_fails_until_its_kernel_is_written(tmp_path: Path) -> None:
    made = command("rules", "new", "squared_relu_f32", "--dir", tmp_path)
    assert made.exit_code == 0, made.output
    own = ["--rules", tmp_path / "rules", "--kernels", tmp_path / "kernels"]
    assert command("rules", "check", tmp_path / "rules", "--kernels", tmp_path / "kernels").exit_code == 0
    model = onnx_text(tmp_path / "m.onnx", SQUARED_RELU)
    assert command("compile", model, "-o", tmp_path / "out", *own).exit_code == 0
    said = refused("verify", tmp_path / "out")
    assert "NotImplementedError" in said or "write the kernel" in said

    kernel = tmp_path / "kernels" / "squared_relu_f32"
    (kernel / "reference.py").write_text(REFERENCE)
    (kernel / "squared_relu_f32.c").write_text(SOURCE.replace("my_squared_relu", "squared_relu_f32"))
    assert command("compile", model, "-o", tmp_path / "done", *own).exit_code == 0
    verified = command("verify", tmp_path / "done", "--samples", 2)
    assert verified.exit_code == 0, verified.output


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    new_rule("r", tmp_path)
    said = refused("rules", "new", "r", "--dir", tmp_path)
    assert said.count("is there already") == 4


@pytest.mark.parametrize("name", ["Norm", "my-op", "1st", "", "größe"])
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    assert "cannot name a rule" in refused("rules", "new", name, "--dir", tmp_path)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("node_Con_63..node_add", "did you mean `node_Conv_63`?"),
        ("node_add..node_Conv_63", "no way leads from"),
        ("nowhere", "the model has no node `nowhere`"),
    ],
)
def test_nodes_that_are_not_there(nodes: str, words: str, tmp_path: Path) -> None:
    assert words in refused("rules", "new", "r", "--dir", tmp_path, "--from", FP32, "--nodes", nodes)
    assert "belong together" in refused("rules", "new", "r", "--dir", tmp_path, "--from", FP32)


# ---- out of a model ----


def seen(text: str) -> View:
    return view(read_model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')))


def lines(text: str, nodes: str) -> list[str]:
    v = seen(text)
    return list(extract(v, select(v, nodes)).lines)


def test_constants_attributes_and_infix() -> None:
    text = """g (float[2,4] x) => (float[2,4] y) <float[4] w = {1,2,3,4}, float half = {0.1}> {
      a = Mul(x, half)  b = Add(a, w)  c = Softmax<axis = 0>(b)  y = Clip(c, , half) }"""
    assert lines(text, "a..y") == [
        "a = x * 0.1",
        "b = a + [1.0, 2.0, 3.0, 4.0]",
        "c = Softmax(b, axis=0)",
        "y = Clip(c, None, 0.1)",
    ]


def test_several_results_and_values_that_others_read() -> None:
    text = """g (float[4,4] x) => (float[4,4] y, float[4,4] z) { a = Relu(x)  b = Tanh(a)  y = Exp(b)  z = Neg(a) }"""
    v = seen(text)
    found = extract(v, select(v, "a..b"))
    assert (found.lines, found.shared) == (("a = Relu(x)", "b = Tanh(a)"), ("a",))
    both = extract(v, select(v, "a,b,z"))
    assert [r.name for r in both.results] == ["b", "z"]


def test_names_with_dots_and_several_parts() -> None:
    text = "g (float[4] x) => (float[4] c) { a = Relu(x)  b = Tanh(a)  c = Exp(b) }"
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')
    proto.graph.node[0].name = "a..b"
    v = view(read_model(proto))
    assert [n.op for n in select(v, "a..b..c")] == ["Relu", "Tanh", "Exp"]
    assert [n.op for n in select(v, "a..b")] == ["Relu"]
    assert [n.op for n in select(v, "a, c")] == ["Relu", "Exp"]


NAMES = [  # the model's, what stands in the pattern
    ("x", "x"),
    ("/model/layers.0/norm/Mul_output_0", "layers_0_norm_mul"),
    ("model.encoder.block.1.attention.query.weight", "query_weight"),
    ("onnx::MatMul_123", "onnx_matmul_123"),
    ("123", "v123"),
    ("größe", "gr_e"),
    ("///", "v"),
    ("float", "float_2"),
    ("lambda", "lambda_2"),
    ("inf", "inf_2"),
    ("i0", "i0_2"),
    ("taken", "taken_2"),
    ("averyveryveryverylongname", "averyveryveryverylon"),
]


@pytest.mark.parametrize(("value", "name"), NAMES)
def test_names_of_values_become_names_of_a_pattern(value: str, name: str) -> None:
    assert short_name(value, "v", {"taken"}) == name


@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_names_are_unlike_each_other(values: list[str]) -> None:
    names: list[str] = []
    for value in values:
        names.append(short_name(value, "v", names))
    assert len(set(names)) == len(names)
    assert all(n.isidentifier() and n.islower() and n.isascii() for n in names)


def test_outputs_by_position() -> None:
    text = "g (float[6] x) => (float[3] y) { a, b = Split<num_outputs = 2>(x)  y = Relu(b) }"
    assert lines(text, "b..y")[0].startswith("_, b = Split(x")


@pytest.mark.parametrize("model", [FP32, INT8], ids=["float", "int8"])
@given(data=st.data())
def test_any_part_of_a_network_is_matched_by_its_own_rule(
    model: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    v = view(read_model(model))
    first = data.draw(st.integers(0, len(v.nodes) - 1))
    last = data.draw(st.integers(first, min(first + 7, len(v.nodes) - 1)))
    text = f"{v.nodes[first].outputs[0]}..{v.nodes[last].outputs[0]}"
    folder = tmp_path_factory.mktemp("part")
    try:
        made = rule_from("part", folder, model, text, {})
    except GapFuseError as e:
        assert "no way leads" in str(e)
        return
    assert made.matches is not None
    assert made.matches >= 1
    kernels = load_kernels([folder / "kernels"])
    rules = load_rules([folder / "rules"], kernels)
    example = view(read_model(folder / "rules" / "part.onnx"))
    found = match(example, rules, kernels).candidates
    assert any(set(example.outputs) == set(c.produces) for c in found)
