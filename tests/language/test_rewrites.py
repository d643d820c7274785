"""`rewrite:` as its author writes it: what is read, and every mistake at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_engine.language import check_rules, load_rules
from fusion_engine.language.types import EName
from tests.language.files import CLASSES, FRAGMENTS, write


def rule(pattern: str, rewrite: str, more: str = "") -> str:
    lines = "\n".join("  " + line for line in rewrite.split("\n"))
    return f'rule: r\ngiven: {{x: real}}\n{more}match:\n  - pattern: "{pattern}"\nrewrite: |\n{lines}\n'


def load(folder: Path, text: str):  # type: ignore[no-untyped-def]
    folder.mkdir(exist_ok=True)
    (folder / "fragments.yaml").write_text(FRAGMENTS)
    (folder / "classes.yaml").write_text(CLASSES)
    (folder / "r.yaml").write_text(text)
    (found,) = load_rules([folder], None).rules
    return found


def test_nodes_in_the_order_of_making(tmp_path: Path) -> None:
    found = load(tmp_path, rule("y = Exp(Sqrt(Abs(x)))", "y = Concat(Neg(x), x + 1.0, axis=0)", "measure: {Exp: 9}\n"))
    (rewrite,) = found.rewrite
    assert [(n.op, len(n.inputs), n.outputs) for n in rewrite.nodes] == [
        ("Neg", 1, ("0'",)),
        ("Add", 2, ("1'",)),
        ("Concat", 2, ("y'",)),
    ]
    assert [n for n, _ in rewrite.nodes[2].attrs] == ["axis"]
    assert isinstance(rewrite.names[0][1], EName)
    assert found.weights == {"Exp": 9}
    assert found.emit == ()


CASES = [
    ("y = Exp(Exp(x))", "y = Expp(x)", "unknown operator `Expp`", "Expp"),
    ("y = Exp(Exp(x))", "y = Exp(x, x)", "`Exp` has at most 1 input", "x"),
    ("y = Exp(Exp(x))", "y = Exp(x, alpha=1)", "`Exp` has no attribute `alpha`", "alpha=1"),
    ("y = Exp(Exp(x))", "y = Exp(z)", "`z` is not bound", "z"),
    ("y = Exp(Exp(x))", "z = Exp(x)", "the rewrite does not make `y`", None),
    ("y = Exp(Exp(x))", "y = exp(x)", "a rewrite makes nodes", "exp(x)"),
    ("y = Exp(Exp(x))", "y = Exp(x\n", "was never closed", "("),
    ("y = Exp(Exp(x))", "y = x if x else x\nExp(x)", "a line of a rewrite reads", "Exp(x)"),
    ("y = Exp(Exp(x))", "y = Exp(x)\ny = Abs(x)", "`y` is defined twice", "y"),
    ("y = Exp(x)", "y = Abs(x)", "the measure does not fall: variant `any` takes away 1 and adds 1", None),
    ("y = Exp(x) | Exp(Exp(x))", "y = Abs(x)", "the measure does not fall", None),
]


@pytest.mark.parametrize(("pattern", "rewrite", "message", "caret"), CASES)
def test_mistakes(tmp_path: Path, pattern: str, rewrite: str, message: str, caret: str | None) -> None:
    found = check_rules([write(tmp_path, rule(pattern, rewrite))], None)
    hit = next((d for d in found if message in d.message), None)
    assert hit is not None, [d.message for d in found]
    assert hit.span is not None
    assert hit.source is not None
    if caret is not None:
        assert hit.source[hit.span.col - 1 : hit.span.end - 1] == caret


def test_shared_values_stay_so_they_do_not_count(tmp_path: Path) -> None:
    text = """\
    rule: r
    match:
      - pattern: |
          e = Exp(_)
          y = Abs(e)
        shared: [e]
    rewrite: y = Neg(e)
    """
    (problem,) = check_rules([write(tmp_path, text)], None)
    assert "takes away 1 and adds 1" in problem.message


def test_two_rules_that_weigh_one_operator_unlike(tmp_path: Path) -> None:
    """Each falls by its own measure; together they would run in a circle."""
    folder = write(tmp_path, rule("y = Exp(x)", "y = Abs(x)", "measure: {Exp: 2}\n"))
    other = rule("y = Abs(x)", "y = Exp(x)", "measure: {Abs: 2, Exp: 1}\n").replace("rule: r", "rule: s")
    write(folder, other, name="s.yaml")
    assert any("`Exp` weighs 1 here, 2 by another rule" in d.message for d in check_rules([folder], None))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("emit: {kernel: k, args: {x: x}}\n", "a rule has `emit` or `rewrite`, not both"),
        ("measure: {Expp: 2}\n", "unknown operator `Expp`"),
        ("measure: {Exp: 0}\n", "an operator weighs at least 1"),
    ],
)
def test_keys(tmp_path: Path, more: str, message: str) -> None:
    found = check_rules([write(tmp_path, rule("y = Exp(Exp(x))", "y = x", more))], None)
    assert message in [d.message for d in found]
