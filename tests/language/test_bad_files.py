"""Files that are wrong in nasty ways: every mistake located, none executed, nothing that runs away."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.kernels import load_kernels
from fusion_engine.language import check_rules, load_rules
from tests.language.files import simple, write

FIVE = """\
rule: five
summary: Five mistakes in one file.
given:
  x: reel[N, C]
  w: const real[C]
match:
  - variant: one
    pattern: |
      c = Conf(x, w)
      y = act(c) -> lo, hi
    let: {gain: sqroot(w)}
  - variant: two
    pattern: y = Relu(x
emit:
  - {kernel: k, args: {x: x}, stored: {y: int9}}
"""
PLACES = {
    4: ("unknown element type `reel`", "reel[N, C]"),
    9: ("unknown operator `Conf`", "Conf"),
    11: ("unknown function `sqroot`", "sqroot"),
    13: ("'(' was never closed", "("),
    15: ("unknown storage `int9`", "int9"),
}


def found_in(folder: Path, text: str | bytes) -> tuple[Diagnostic, ...]:
    write(folder, "")
    raw = text if isinstance(text, bytes) else text.encode()
    (folder / "r.yaml").write_bytes(raw)
    return check_rules([folder], None)


def test_five_mistakes_in_one_file_are_five_located_errors(tmp_path: Path) -> None:
    found = {d.span.line: d for d in found_in(tmp_path, FIVE) if d.span is not None}
    assert {line: d.message for line, d in found.items() if line not in PLACES} == {}
    for line, (words, marked) in PLACES.items():
        hit = found[line]
        assert words in hit.message
        assert hit.span is not None
        assert hit.source == FIVE.splitlines()[line - 1]
        assert hit.source[hit.span.col - 1 : hit.span.end - 1] == marked


def test_mistakes_of_cross_checks_come_together_too(tmp_path: Path) -> None:
    """One wrong name each: in let, where, emit, stored and tests."""
    text = """\
rule: cross
given: {x: real}
match:
  - variant: one
    pattern: y = Exp(x)
    let: {a: x + nowhere}
    where: [all(x < absent)]
emit:
  - {kernel: k, args: {x: gone + a}, stored: {q: int8}}
tests:
  - {fires: two, model: "m"}
"""
    words = [d.message.split("`")[1] for d in found_in(tmp_path, text)]
    assert sorted(words) == ["absent", "gone", "nowhere", "q", "two"]


def bomb(levels: int = 30) -> str:
    """Each anchor holds the one before twice: a billion values in a few hundred bytes."""
    lines = ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, levels))]
    return "\n".join([*lines, "rule: r", "match: []", ""])


RUNAWAY = [
    ("alias bomb", bomb(), "anchors multiply"),
    ("anchor in itself", "rule: &a {b: *a}\nmatch: []\n", "an anchor inside itself"),
    ("anchors in each other", "rule: &a [&b [*a, *b]]\nmatch: []\n", "an anchor inside itself"),
    ("unknown anchor", "rule: *nobody\n", "not YAML"),
    ("10 MB of brackets", "[" * 10_000_000, "the limit is"),
    ("10 MB of maps", "{a: " * 2_500_000, "the limit is"),
    ("900 kB of brackets", "[" * 900_000, "nested too deeply"),
    ("brackets over lines", "[\n" * 5_000, "brackets are opened and never closed"),
    ("deep blocks", "\n".join(" " * i + "a:" for i in range(900)), "nested too deeply"),
    ("deep lists in one line", "- " * 100_000 + "a", "nested too deeply"),
    ("900 kB of one text", "rule: " + "x" * 900_000 + "\nmatch: []\n", "lacks the key `emit`"),
    (
        "an endless pattern",
        "rule: r\nmatch: {pattern: '" + "y = Exp(x) " * 3_000 + "'}\nemit: {kernel: k}\n",
        "longer than",
    ),
]


@pytest.mark.parametrize(("text", "words"), [c[1:] for c in RUNAWAY], ids=[c[0] for c in RUNAWAY])
def test_nothing_runs_away(text: str, words: str, tmp_path: Path) -> None:
    begin = time.process_time()
    found = found_in(tmp_path, text)
    assert time.process_time() - begin < 5.0
    assert any(words in d.message for d in found), [d.message[:80] for d in found]
    assert all(len(str(d)) < 10_000 for d in found)


HOSTILE = [
    ("python object", "rule: !!python/object/apply:os.system ['true']\nmatch: []\n", "must be text"),
    ("python name", "rule: !!python/name:os.system\nmatch: []\n", "lacks the key `emit`"),
    ("call in a pattern", simple("y = Exp(__import__('os'))"), "__import__"),
    ("attribute in a pattern", simple("y = x.__class__"), "not part of the pattern language"),
    ("lambda", simple("y = Exp(lambda: 1)"), "not part of the pattern language"),
    ("comprehension", simple("y = [x for x in x]"), "not part of the pattern language"),
    ("f-string", simple("y = Exp(f'{x}')"), "not part of the pattern language"),
    (
        "attribute in an expression",
        simple("y = Exp(x)", emit="{kernel: k, args: {x: x.__class__}}"),
        "expression language",
    ),
    ("call of a value", simple("y = Exp(x)", emit="{kernel: k, args: {x: x(1)}}"), "unknown function `x`"),
]


@pytest.mark.parametrize(("text", "words"), [c[1:] for c in HOSTILE], ids=[c[0] for c in HOSTILE])
def test_nothing_is_executed(text: str, words: str, tmp_path: Path) -> None:
    found = found_in(tmp_path, text)
    assert any(words in d.message for d in found), [d.message for d in found]
    assert all(d.span is not None for d in found)


TRAPS = [
    ("tab", "rule: r\nmatch:\n\t- pattern: y = Exp(x)\n", "not YAML", 3),
    ("key twice", "rule: r\nsummary: a\nrule: q\nmatch: []\n", "`rule` is there twice", 3),
    ("nested key twice", "rule: r\nmatch:\n  - pattern: y = Exp(x)\n    pattern: y = Abs(x)\n", "is there twice", 4),
    ("a key that is a list", "rule: r\n? [a, b]\n: c\nmatch: []\n", "a key must be a word", 2),
    ("colon without a space", "rule:r\nmatch: []\n", "not YAML", 2),
    ("null for a map", "rule: r\nmatch:\n", "`match` is empty", 2),
    ("null for a name", "rule: ~\nmatch: []\n", "lacks the key `emit`", 1),
    ("unclosed quote", "rule: 'r\nmatch: []\n", "not YAML", None),
    ("merge key", "rule: r\n<<: {match: []}\n", "unknown key `<<`", 2),
    ("a list for the file", "- rule: r\n", "a rule must be a map", 1),
    ("a word for the file", "rule\n", "a rule must be a map", 1),
    ("comma in a flow map", "rule: r\nmatch: {pattern: y = Add(x, w)}\nemit: {kernel: k}\n", "", 2),
]


@pytest.mark.parametrize(("text", "words", "line"), [c[1:] for c in TRAPS], ids=[c[0] for c in TRAPS])
def test_traps_of_yaml(text: str, words: str, line: int | None, tmp_path: Path) -> None:
    hits = [d for d in found_in(tmp_path, text) if words in d.message]
    assert hits
    assert all(d.span is not None for d in hits)
    if line is not None:
        assert line in [d.span.line for d in hits if d.span is not None]


def test_a_tab_has_a_help(tmp_path: Path) -> None:
    (hit,) = found_in(tmp_path, "rule: r\nmatch:\n\t- pattern: y = Exp(x)\n")
    assert hit.help == "indent with spaces: YAML allows no tabs there"


def test_line_ends_byte_marks_and_documents(tmp_path: Path) -> None:
    """Windows' line ends and a byte order mark are no mistake; several documents are several rules."""
    text = simple("y = Exp(x)")
    assert found_in(tmp_path / "a", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()) == ()
    two = f"{text}---\n{text.replace('rule: r', 'rule: q')}"
    assert found_in(tmp_path / "b", two) == ()
    assert [r.name for r in load_rules([tmp_path / "b"], None).rules] == ["q", "r"]


def test_a_number_where_a_rule_means_text_and_text_where_it_means_a_number(tmp_path: Path) -> None:
    text = simple("y = Exp(x)", emit="{kernel: k, args: {x: x}, attrs: {a: 1e-5, b: 1_000, c: 0x10, d: .5, e: on}}")
    (hit,) = found_in(tmp_path, text)
    assert hit.message == "`on` is not bound in variant `any`"


BROKEN = [("fragments.yaml", bomb()), ("classes.yaml", "[" * 900_000), ("fragments.yaml", "a: \t\tb\n\t-")]


def test_the_same_for_fragments_and_classes(tmp_path: Path) -> None:
    for i, (name, text) in enumerate(BROKEN):
        folder = tmp_path / str(i)
        write(folder, simple("y = Exp(x)"))
        (folder / name).write_text(text)
        found = check_rules([folder], None)
        assert found
        assert any(d.span is not None and d.span.file.endswith(name) for d in found)


KERNELS = [bomb(), "[" * 900_000, "kernel: &a [*a]\n", "kernel: k\n\tsignature: {}\n", "\x00", "kernel: k\nkernel: j\n"]


@pytest.mark.parametrize("text", KERNELS, ids=range(len(KERNELS)))
def test_the_same_for_kernels(text: str, tmp_path: Path) -> None:
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "kernel.yaml").write_text(text)
    with pytest.raises(GapFuseError) as e:
        load_kernels([tmp_path])
    assert all(d.span is not None and d.span.file.endswith("kernel.yaml") for d in e.value.diagnostics)


def test_a_very_long_line_is_shown_around_the_mistake() -> None:
    line = "a" * 5_000 + "Conf" + "b" * 5_000
    shown = str(Diagnostic("wrong", Span("f.yaml", 1, 5_001, 5_005), source=line)).splitlines()
    assert len(shown[1]) < 250
    assert shown[1][shown[2].index("^") : shown[2].rindex("^") + 1] == "Conf"
