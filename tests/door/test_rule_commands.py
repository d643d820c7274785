"""The commands of a rule author, as the author meets them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gap_fuse.authoring.showing import rule_lines
from gap_fuse.library import load_library
from gap_fuse.proof import select_kernels, select_rules
from tests.conftest import ROOT
from tests.door.test_command import KERNEL, RULE, SQUARED_RELU, command, onnx_text, own_rooms, refused


def test_list_names_every_rule_with_its_family_and_storages() -> None:
    listed = {r["name"]: r for r in json.loads(command("rules", "list", "--json").output)}
    conv = listed["conv2d"]
    assert (conv["family"], conv["storages"]) == ("conv", ["float", "int8"])
    assert {"plain", "bn"} <= set(conv["variants"])
    assert {"conv2d_f32", "conv2d_i8"} <= set(conv["kernels"])
    text = command("rules", "list").output
    assert all(name in text for name in listed)


def test_show_says_where_each_variant_is_looked_for(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    spelled = "  - {variant: either, pattern: 'y = Pow(r := Relu(x), 2.0) | Neg(x)'}\nemit:"
    (rules / "squared_relu.yaml").write_text(RULE.replace("emit:", spelled))
    text = command("rules", "show", "squared_relu", "--rules", rules, "--kernels", kernels).output
    assert "  x  float32[*S]\n" in text
    assert "variant plain\n  looked for at: Mul\n    r = Relu(x)\n    y = (r * r)\n" in text
    assert "variant either\n  looked for at: Neg, Pow\n" in text
    assert "    y = Pow(r, 2.0)    # Pow\n      | Neg(x)    # Neg\n" in text
    assert "emit 1: squared_relu_f32" in text
    assert "did you mean `layernorm`?" in refused("rules", "show", "layernrm")


def test_every_shipped_rule_can_be_shown() -> None:
    rules = load_library().rules
    for rule in rules.rules:
        lines = list(rule_lines(rule, rules))
        assert {f"variant {v.name}" for v in rule.variants} <= set(lines)


def test_warnings_are_no_errors(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    twice = "  - {variant: again, pattern: 'y = (q := Relu(x)) * q'}\nemit:"
    (rules / "squared_relu.yaml").write_text(RULE.replace("emit:", twice))
    result = command("rules", "check", rules, "--kernels", kernels)
    assert result.exit_code == 0, result.output
    assert "warning: the variant `again` adds nothing: `plain`" in result.stderr
    assert result.stdout.rstrip() == "1 rule, 0 errors, 1 warning"


BROKEN = [
    ("cycles: 20", "cycels: 20", "unknown key `cycels`", "the kernel has mistakes"),
    ("kernel: squared", "kernal: squared", "unknown key `kernal`", "it may be in what was not read"),
    ("kernel: squared", "\tkernel: squared", "not YAML", "it may be in what was not read"),
]


@pytest.mark.parametrize(("sound", "mistaken", "said", "unchecked"), BROKEN)
def test_mistakes_of_kernels_hide_none_of_rules(
    tmp_path: Path, sound: str, mistaken: str, said: str, unchecked: str
) -> None:
    """A kernel.yaml with a mistake was all that was reported; the rules waited for it to be repaired."""
    rules, kernels = own_rooms(tmp_path)
    (kernels / "squared_relu" / "kernel.yaml").write_text(KERNEL.replace(sound, mistaken))
    twice = RULE + "  - {kernel: squared_relu_f32, args: {x: x}}\n"
    (rules / "squared_relu.yaml").write_text(twice)
    (rules / "other.yaml").write_text(RULE.replace("squared_relu_f32", "relu_f33").replace("rule: s", "rule: un_s"))
    (rules / "wrong.yaml").write_text(RULE.replace("rule: s", "rule: wrongly_s").replace("= Relu", "= Relo"))
    result = command("rules", "check", rules, "--kernels", kernels)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "unknown operator `Relo`" in result.stderr
    warning = f"squared_relu.yaml:10:14: warning: calls of `squared_relu_f32` are not checked: {unchecked}"
    assert result.stderr.count(warning) == 1
    assert ("unknown kernel `relu_f33`" in result.stderr) == ("kernel has" in unchecked)
    place = result.stderr.split(f": error: {said}")[0].splitlines()[-1]
    assert place.startswith(result.stderr.split("help: see ")[1].splitlines()[0])  # it was the kernel's first line


def test_a_broken_kernel_takes_the_place_of_the_one_it_overrides(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    later = tmp_path / "later" / "squared_relu"
    later.mkdir(parents=True)
    (later / "kernel.yaml").write_text(KERNEL.replace("cycles: 20", "cycels: 20"))
    found = command("rules", "check", rules, "--kernels", kernels, "--kernels", later.parent)
    assert found.stdout.rstrip() == "1 rule, 1 error, 1 warning"
    found = command("rules", "check", rules, "--kernels", later.parent, "--kernels", kernels)
    assert found.stdout.rstrip() == "1 rule, 1 error"


def test_a_kernel_given_as_a_rule_is_one_error(tmp_path: Path) -> None:
    """Nine errors for each document, of keys that no rule has."""
    rules, kernels = own_rooms(tmp_path)
    found = command("rules", "check", kernels)
    assert "error: this is a kernel, not a rule" in found.stderr
    assert "help: name its folder with --kernels" in found.stderr
    assert found.stdout.rstrip() == "1 rule, 1 error"
    (kernels / "squared_relu" / "kernel.yaml").write_text(RULE)
    assert "error: this is a rule, not a kernel" in command("rules", "check", rules, "--kernels", kernels).stderr


def test_paths_of_shipped_rules_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "kernels" / "softmax", tmp_path / "own" / "softmax")
    mistaken = tmp_path / "own" / "softmax" / "kernel.yaml"
    mistaken.write_text(mistaken.read_text().replace("cycles:", "cyclez:", 1))
    monkeypatch.chdir(tmp_path)
    said = command("rules", "check", "--kernels", "own").stderr
    assert "\n<gap-fuse>/rules/activation/softmax.yaml:" in said
    assert str(ROOT) not in said
    monkeypatch.chdir(ROOT)
    assert "\nrules/activation/softmax.yaml:" in command("rules", "check", "--kernels", tmp_path / "own").stderr


def test_shipped_fragments_are_known_to_own_rules(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    (rules / "squared_relu.yaml").write_text(
        "rule: own\nmatch: {pattern: 'y = square(Relu(x))'}\ngiven: {x: 'float32[*S]'}\n"
        "emit: {kernel: squared_relu_f32, args: {x: x}}\n"
    )
    assert command("rules", "check", rules, "--kernels", kernels).exit_code == 0


def test_a_rule_that_overrides_a_shipped_one_says_so(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    (rules / "squared_relu.yaml").write_text(RULE.replace("rule: squared_relu", "rule: conv2d"))
    listed = command("rules", "list", "--rules", rules, "--kernels", kernels)
    assert "note: rule conv2d of" in listed.output
    assert "overrides the one of" in listed.output


@pytest.mark.parametrize("target", ["host", "gap8"])
def test_the_shipped_rules_can_fire_on_every_shipped_target(target: str) -> None:
    result = command("rules", "check", "--target", target)
    assert (result.exit_code, result.stderr) == (0, "")


def test_an_unknown_target_is_refused() -> None:
    assert "shipped: gap8" in refused("rules", "check", "--target", "gap9")


# ---- match ----


def test_match_prints_nodes_and_names(tmp_path: Path) -> None:
    model = onnx_text(tmp_path / "m.onnx", SQUARED_RELU)
    result = command("match", model, "r * r")
    assert result.output.splitlines()[:2] == ["1 match", "1: Mul `y`"]
    assert "   r = float32[2, 3, 40] `r` made by Relu" in result.output
    found = json.loads(command("match", model, "y = (r := Relu(x)) * r", "--json").output)["matches"]
    assert [n["op"] for n in found[0]["nodes"]] == ["Relu", "Mul"]
    assert list(found[0]["names"]) == ["x", "r", "y"]


def test_match_says_what_a_rule_would_object_to(tmp_path: Path) -> None:
    text = SQUARED_RELU.replace("=> (float[2,3,40] y)", "=> (float[2,3,40] y, float[2,3,40] r)")
    found = command("match", onnx_text(tmp_path / "m.onnx", text), "y = (q := Relu(x)) * q").output
    assert found.startswith("1 match")
    assert "a rule declines: q has another user: it is a graph output; `shared: [q]`" in found


def test_match_shows_the_nearest_miss_in_the_pattern(tmp_path: Path) -> None:
    model = onnx_text(tmp_path / "m.onnx", SQUARED_RELU)
    text = command("match", model, "Relu(x) * 2.0").output
    assert text.splitlines()[0] == "0 matches"
    assert "the pattern wants 2, the graph has Relu" in text
    line, caret = text.splitlines()[-2:]
    assert line[caret.index("^") :] == "2.0"
    assert command("match", model, "Erf(x)").output == "0 matches\nthe model has no Erf\n"


def test_match_says_where_its_search_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx_text(tmp_path / "m.onnx", SQUARED_RELU)
    monkeypatch.setattr("fusion_engine.matching.query.BUDGET", 0)
    said = command("match", model, "r * r").output
    assert "the search was cut off at Mul" in said
    assert json.loads(command("match", model, "y = (r := Relu(x)) * r", "--json").output)["cut"]


def test_match_takes_conditions(tmp_path: Path) -> None:
    model = onnx_text(tmp_path / "m.onnx", SQUARED_RELU)
    assert command("match", model, "r * r", "--where", "rank(r) == 3").output.startswith("1 match")
    assert command("match", model, "r * r", "--where", "rank(r) == 2").output.startswith("0 matches")


@pytest.mark.parametrize(
    ("pattern", "where", "words", "caret"),
    [
        ("Rellu(x)", "true", "unknown operator `Rellu`", "Rellu"),
        ("y = Relu(x)\nz = Exq(y)", "true", "unknown operator `Exq`", "Exq"),
        ("Relu(x", "true", "was never closed", "("),
        ("Relu(x)", "rank(q) == 2", "the pattern binds no `q`", "q"),
        ("Relu(x)", "rank(x", "was never closed", "("),
        ("x", "true", "no operator at its root", None),
    ],
)
def test_a_mistake_in_a_query_has_its_place(
    pattern: str, where: str, words: str, caret: str | None, tmp_path: Path
) -> None:
    said = refused("match", onnx_text(tmp_path / "m.onnx", SQUARED_RELU), pattern, "--where", where)
    assert words in said
    if caret is not None:
        source, marks = said.splitlines()[1:3]
        assert source[marks.index("^") :].startswith(caret)


@pytest.mark.parametrize(
    ("test", "said"),
    [("model: 't (float[2] x) => (float[2] y) { y = Relu(x x) }'", "ONNX's text form"), ("onnx: none.onnx", "no such")],
)
def test_check_reads_the_models_of_tests(tmp_path: Path, test: str, said: str) -> None:
    """A missing file and a typo in a model passed `rules check` and failed in `rules test`."""
    rules, kernels = own_rooms(tmp_path)
    (rules / "squared_relu.yaml").write_text(RULE + f"tests:\n  - fires: plain\n    {test}\n")
    said_all = refused("rules", "check", rules, "--kernels", kernels)
    assert said in said_all
    assert "squared_relu.yaml:" in said_all


@pytest.mark.parametrize("arguments", [["lint"], ["stats"], ["quantize", "-o", "q.onnx"], ["explain"], ["tile"]])
def test_no_command_takes_an_empty_file_for_a_model(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "empty.onnx").touch()
    assert "empty.onnx: error: this is not an ONNX file" in refused(*arguments, tmp_path / "empty.onnx")


@pytest.mark.parametrize("arguments", [("rules", "check"), ("rules", "test"), ("kernels", "test")])
def test_an_empty_folder_is_not_proved(tmp_path: Path, arguments: tuple[str, str]) -> None:
    """`rules test EMPTY` said: 0 rules, proved."""
    assert "in it" in refused(*arguments, tmp_path)


def test_an_empty_rule_file_is_no_rule(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").touch()
    assert "there is no rule in it" in refused("rules", "check", tmp_path / "empty.yaml")


@pytest.mark.parametrize("option", ["--rules", "--kernels"])
@pytest.mark.parametrize("content", [None, "# to be written\n"])
def test_a_directory_without_rules_or_kernels(tmp_path: Path, option: str, content: str | None) -> None:
    """A wrong directory was taken, and the shipped library alone was used."""
    folder = tmp_path / "mine"
    folder.mkdir()
    if content is not None:
        (folder / "notes.yaml").write_text(content)
    said = [refused("rules", "list", option, folder)]
    said += [refused("rules", "check", folder)] if option == "--rules" else [refused("kernels", "test", folder)]
    assert all(f"{folder}: error: there is no {option[2:-1]} in it" in s for s in said)


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    for arguments in (("rules", "test"), ("rules", "check")):
        said = refused(*arguments, rules / "squared_rely.yaml", "--kernels", kernels)
        assert "squared_rely.yaml: error: cannot read the file: No such file or directory" in said
        assert "help: did you mean `squared_relu.yaml`?" in said
    said = refused("rules", "list", "--rules", tmp_path / "my ruels")
    assert "there is no such directory of rules\n  help: did you mean `my rules`?" in said
    said = refused("rules", "list", "--kernels", tmp_path / "my kernals")
    assert "there is no such kernel directory\n  help: did you mean `my kernels`?" in said


def test_names_and_paths_to_prove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused("rules", "test", "layernrm")
    assert "there is no rule `layernrm`" in said
    assert "did you mean `layernorm`? (a path has a `/` or ends in .yaml: `./layernrm`)" in said
    assert "no file or folder `qqqq` is here either" in refused("rules", "test", "qqqq")
    assert "did you mean `conv2d_i8`?" in refused("kernels", "test", "conv2d_i88")
    own_rooms(tmp_path)
    (tmp_path / "add").mkdir()  # a folder of a rule's name is no path to it
    monkeypatch.chdir(tmp_path)
    assert [r.name for r in select_rules(["add"]).rules] == ["add"]
    assert [r.name for r in select_rules(["my rules"], kernels=[Path("my kernels")]).rules] == ["squared_relu"]


@pytest.mark.parametrize("path", ["my kernels", "my kernels/squared_relu", "my kernels/squared_relu/kernel.yaml"])
def test_a_kernels_own_folder_is_a_path_to_it(tmp_path: Path, path: str) -> None:
    own_rooms(tmp_path)
    assert [k.name for k in select_kernels([str(tmp_path / path)]).kernels] == ["squared_relu_f32"]
