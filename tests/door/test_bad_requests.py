"""Bad input to the commands that only look: a located sentence and exit code 2, whatever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.door.test_command import command, refused

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
FILES = {  # name: content, what is said
    "empty.onnx": (b"", "holds no graph"),
    "junk.onnx": (b"\x00\x01hello\xff" * 50, "its bytes are no ModelProto"),
    "rule.onnx": (b"rule: a\n", "its bytes are no ModelProto"),
    "empty.onnxtxt": (b"", "empty.onnxtxt:1:1: error"),
    "open.onnxtxt": (b"net (float x) => {", "open.onnxtxt:1:18: error"),
    "unmade.onnxtxt": (HEAD + "n (float[3] x) => (float[3] y) { y = Tanh(q) }", "reads `q`, which nothing makes"),
    "twice.onnxtxt": (HEAD + "n (float[3] x) => (float[3] y) { y = Exp(x) y = Tanh(x) }", "is made by 2 nodes"),
    "unknown.onnxtxt": (HEAD + "n (float[3] x) => (float[3] z) { y = Exp(x) }", "is made by no node"),
    "later.onnxtxt": (
        HEAD.replace("18", "99") + "n (float[3] x) => (float[3] y) { y = Exp(x) }",
        "of opset 99; the newest",
    ),
    "gone.onnx": (None, "there is no such file"),
}
LOOKS = [("lint",), ("explain",), ("match", "y = Exp(x)")]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("look", LOOKS, ids=lambda words: words[0])
def test_files_that_are_no_models(tmp_path: Path, name: str, look: tuple[str, ...]) -> None:
    content, said = FILES[name]
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    refusal = refused(look[0], path, *look[1:])
    assert str(path) in refusal
    assert said in refusal


PATTERNS = [
    ("", "the pattern is empty"),
    ("y = ", "invalid syntax"),
    ("y = Exp(", "was never closed"),
    ("y = Expp(x)", "did you mean `Exp`?"),
    ("y = Exp(x, axis=1)", "has no attribute `axis`"),
    ("import os", "invalid syntax"),
    ("y = x", "no operator at its root"),
    ("y = " + "Exp(" * 500 + "x" + ")" * 500, "too many nested parentheses"),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "m.onnxtxt").write_text(HEAD + "n (float[3] x) => (float[3] y) { t = Exp(x) y = Tanh(t) }")
    return tmp_path / "m.onnxtxt"


@pytest.mark.parametrize(("pattern", "said"), PATTERNS)
def test_patterns_that_are_none(model: Path, pattern: str, said: str) -> None:
    refusal = refused("match", model, pattern)
    assert said in refusal
    assert "<pattern>" in refusal


def test_what_the_model_or_the_library_lacks(model: Path) -> None:
    assert "did you mean `t`?" in refused("explain", model, "--node", "tt")
    assert "did you mean `unary`?" in refused("explain", model, "--rule", "unarry")
    assert "did you mean `conv2d`?" in refused("rules", "show", "rules/conv/conv2d.yaml")
    assert "`gap-fuse rules list` shows them" in refused("rules", "show", "qqq")
    lacking = command("match", model, 'y = "a::b"(x)')
    assert lacking.exit_code == 0
    assert "the model has no function that it names" in lacking.stdout
