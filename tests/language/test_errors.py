"""What a rule author sees: every mistake located, with a help line where one is near, all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.kernels.descriptor import AttrType, Kernel, OperandType
from fusion_engine.language import check_rules, load_rules
from tests.language.files import CLASSES, FRAGMENTS, simple, write


def problems(folder: Path, rule: str, **kw: str) -> tuple[Diagnostic, ...]:
    return check_rules([write(folder, rule, **kw)], None)


CASES = [
    ("y = Conf(x)", "unknown operator `Conf`", "Conv", "Conf"),
    ("y = Relu(x, x)", "`Relu` has at most 1 input", None, "x"),
    ("y = Softmax(x, axes=1)", "`Softmax` has no attribute `axes`", "axis", "axes=1"),
    ("y = akt(x) -> lo, hi", "`->` follows a fragment's call", None, "akt(x)"),
    ("y = akt(x)", "unknown fragment `akt`", "act", "akt"),
    ("y = tanh(x)", "unknown fragment `tanh`", "`Tanh`", "tanh"),
    ("y = act(x) -> lo", "`act` gives 2 results", "act(v) -> lo, hi", "act(x)"),
    ("y = onary[op](x)", "unknown class `onary`", "unary", "onary"),
    ("y = Relu(x", "was never closed", None, "("),
    ("y = Relu(X)", "`X` cannot name a value", None, "X"),
    ("Relu(x)", "a line of a pattern reads", None, "Relu(x)"),
    ("y = Relu(x)\ny = Abs(x)", "`y` is defined twice", None, "y"),
    ("y = Exp(x) if x else x", "not part of the pattern language", None, "Exp(x) if x else x"),
    ("y = Exp(z) + x", "`z` is captured and never used", None, "z"),
    ("y = Exp(x) | Neg(w) + x", "this alternative does not bind `w`", None, "Exp(x)"),
    ("y = x | Exp(x)", "no operator at its root", None, None),
    ("y = \"Gelu\"(x)", "a function is named `domain::name`", None, '"Gelu"'),
    ("y = rearrange(x, \"a b\")", "one `->`", None, '"a b"'),
    ("y = rearrange(x, \"a b -> b c\")", "the axis `a` stands on one side only", None, '"a b -> b c"'),
    ("y = rearrange(x, \"a (b ...) -> a b\")", "an axis is a name, 1, or a group", None, '"a (b ...) -> a b"'),
    ("y = Exp(rearrange(x, \"x b -> b x\"))", "`x` names both a value and an axis", None, None),
    ("y = Exp(x) @ x", "not part of the pattern language", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "message", "hint", "caret"), CASES)
def test_pattern_mistakes(tmp_path: Path, pattern: str, message: str, hint: str | None, caret: str | None) -> None:
    found = problems(tmp_path, simple(pattern))
    assert found, "nothing was reported"
    hit = next((d for d in found if message in d.message), None)
    assert hit is not None, [d.message for d in found]
    assert hit.span is not None
    assert hit.source is not None
    if hint is not None:
        assert hint in (hit.help or "")
    if caret is not None:
        assert hit.source[hit.span.col - 1 : hit.span.end - 1] == caret


def test_expression_places_in_every_yaml_style(tmp_path: Path) -> None:
    rule = """\
    rule: r
    given: {x: real}
    match:
      - pattern: |
          y = Exp(x)
        let:
          a: x + nowhere
          b: "given(x, missing)"
          c: 'abs( gone )'
          d: |
            1.0 +
              away
    where:
      - all(x < absent)
    emit: [{kernel: k, args: {x: x}, attrs: {a: a, b: b, c: c, d: d}}]
    """
    found = problems(tmp_path, rule)
    places = {d.message.split("`")[1]: d for d in found}
    assert sorted(places) == ["absent", "away", "gone", "missing", "nowhere"]
    for word, d in places.items():
        assert d.span is not None
        assert d.source is not None
        assert d.source[d.span.col - 1 : d.span.end - 1] == word


@pytest.mark.parametrize(
    ("draw", "words", "guilty"),
    [
        ("{S: 9..1 dims of 1..2}", "the range `9..1` is empty", "9..1 dims of 1..2"),
        ("{S: 1..9}", "`*S` is a group of axes", "1..9"),
        ("{T: 1..9}", "nothing of the rule is named `T`", "T"),
    ],
)
def test_a_mistake_in_draw_has_its_place(tmp_path: Path, draw: str, words: str, guilty: str) -> None:
    """The first two were tracebacks in `rules test`, the third said nothing."""
    (hit,) = problems(tmp_path, simple("y = Relu(x)", given='{x: "real[*S]"}', more=f"draw: {draw}\n"))
    assert words in hit.message
    assert hit.span is not None
    assert hit.source is not None
    assert hit.source[hit.span.col - 1 : hit.span.end - 1] == guilty


def test_unicode_before_the_mistake_keeps_the_column(tmp_path: Path) -> None:
    (hit,) = problems(tmp_path, simple('y = "münchen::Thing"(x) + nöö[op](x)'))
    assert hit.span is not None
    assert hit.source is not None
    assert hit.source[hit.span.col - 1 : hit.span.end - 1] == "nöö"


FILES = [
    ("rule: r\nrule: q\nmatch: []\n", "`rule` is there twice"),
    ("rule: r\nmatsch: []\n", "unknown key `matsch`"),
    ("rule: r\nmatch:\n  - pattern: |\n      y = Exp(x)\n", "lacks the key `emit`"),
    (simple("y = Exp(x)", given="{x: reel}"), "unknown element type `reel`"),
    (simple("y = Exp(x)", given="{x: 'real[N, C / group]'}"), "cannot be solved"),
    (simple("y = Exp(x)", given="{z: real, x: real}"), "no pattern captures `z`"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: 'stored(x, y, x)'}}"), "does not take 3 arguments"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: x}, stored: {q: int8}}"), "`q` is not captured"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: x}, stored: {x: int9}}"), "unknown storage `int9`"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: x}, inner: {c: same_as(y)}}"), "`c` is no inner value"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: x}, for: [fast]}"), "no variant is named `fast`"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: 'table_i8(Erp, x, y)'}}"), "no table is known"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: given(x, 0.0)}}"), "needs quotes"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: x}}", more="tests:\n  - {fires: any}\n"), "a test has"),
    (
        simple("y = Exp(x)", emit="{calls: [{kernel: a, args: {x: x}}, {kernel: b, args: {x: x}}]}"),
        "must name its results",
    ),
    (simple("y = Exp(x)", given="{w: const real, x: real}", more="priority: high\n"), "priority must be an integer"),
    (simple("y = Exp(x)", more="priority: 3\n"), "`priority` is not supported yet"),
    (simple("y = Exp(x)", emit="{kernel: k, args: {x: x}, within: 2}"), "`within` is not supported yet"),
    ("rule: r\n\tmatch: []\n", "not YAML"),
    ("rule: &a [*a]\nmatch: []\n", "an anchor inside itself"),
    ("[" * 3000 + "\n", "nested too deeply"),
    ("- " * 500 + "a\n", "nested too deeply"),
    ("rule: r\nmatch:\n  - pattern: " + "(" * 500 + "x\n", "a pattern"),
    ("rule: r\nmatch:\n  - pattern: y = " + "x + " * 3000 + "x\nemit: {kernel: k}\n", "nested too deeply"),
    ("rule: \x00\n", "not YAML"),
]


@pytest.mark.parametrize(("text", "message"), FILES)
def test_file_mistakes(tmp_path: Path, text: str, message: str) -> None:
    found = problems(tmp_path, text)
    assert any(message in d.message or message in (d.help or "") for d in found), [d.message for d in found]
    assert all(d.span is not None and d.span.file for d in found)


MISSPELT = [
    simple("y = Exp(x)", more="tests:\n  - {fire: any, model: t}\n"),
    simple("y = Exp(x)", more="tests:\n  - {fires: any, modell: t}\n"),
    simple("y = Exp(x)", more="tests:\n  - {fires: any, model: t, constant: [x]}\n"),
    simple("y = Exp(x)", emit="{kernal: k, args: {x: x}}"),
    simple("y = Exp(x)", emit="{calls: [{kernal: k, args: {x: x}}]}"),
    simple("y = Exp(x)").replace("pattern:", "patern:"),
    simple("y = Exp(x)").replace("emit:", "emits:"),
    simple("y = Exp(x)").replace("match:", "matsch:"),
    simple("y = Exp(x)").replace("emit:", "rewrites:"),
]


@pytest.mark.parametrize("text", MISSPELT)
def test_a_misspelt_key_is_one_error(tmp_path: Path, text: str) -> None:
    """`{fire: any, model: ...}` also said that a test has `fires` or `rejects`; `matsch:` that `match` is missing."""
    (hit,) = problems(tmp_path, text)
    assert "unknown key" in hit.message
    assert (hit.help or "").startswith("did you mean")


def test_yaml_traps_are_text_until_a_type_is_known(tmp_path: Path) -> None:
    """`1e-5` is a number and `on`, `no`, `null` are no surprises where an expression or a name is read."""
    rule = """\
    rule: no
    summary: 1e-5
    given: {x: real}
    match:
      - variant: on
        pattern: |
          y = Exp(x)
        let: {eps: 1e-5, half: .5, many: 1_000, off: "true"}
    emit: [{kernel: k, args: {x: x}, attrs: {a: eps, b: half, c: many, d: off}, for: [on]}]
    """
    (loaded,) = load_rules([write(tmp_path, rule)], None).rules
    assert (loaded.name, loaded.summary, loaded.variants[0].name) == ("no", "1e-5", "on")
    assert [getattr(e, "value", None) for _, e in loaded.variants[0].let] == [1e-5, 0.5, 1000, True]


def test_all_errors_of_all_files_at_once(tmp_path: Path) -> None:
    write(tmp_path, simple("y = Exq(x)"), name="a.yaml")
    write(tmp_path, simple("y = Tanz(x)\nz = Relo(y)"), name="b.yaml")
    with pytest.raises(GapFuseError) as e:
        load_rules([tmp_path], None)
    assert [d.span.file.rsplit("/", 1)[-1] for d in e.value.diagnostics if d.span] == ["a.yaml", "b.yaml"]


def test_fragment_mistakes_name_the_fragment_file(tmp_path: Path) -> None:
    fragments = FRAGMENTS + "  odd(v):\n    - Rolu(v)\n"
    found = problems(tmp_path, simple("y = odd(x)"), fragments=fragments)
    assert [d.span.file.rsplit("/", 1)[-1] for d in found if d.span] == ["fragments.yaml"]
    assert "used at" in found[0].notes[0]


def test_fragments_that_use_themselves_and_that_multiply(tmp_path: Path) -> None:
    loop = "fragments:\n  f(v):\n    - g(v)\n  g(v):\n    - f(v)\n"
    assert any("uses itself" in d.message for d in problems(tmp_path / "a", simple("y = f(Exp(x))"), fragments=loop))
    deep = "y = " + "square(" * 14 + "x" + ")" * 14
    assert any("fragments multiply" in d.message for d in problems(tmp_path / "b", simple(deep)))


def kernel(name: str, inputs: tuple[OperandType, ...], attrs: tuple[AttrType, ...] = ()) -> Kernel:
    return Kernel(
        name, "", Path("."), inputs, (OperandType("y", "float32", ("*S",)),), attrs, (), (), {}, None, (), (), {}, ()
    )


def test_kernel_signatures_are_checked(tmp_path: Path) -> None:
    kernels = {
        "soft": kernel(
            "soft",
            (OperandType("x", "float32", ("*S",)), OperandType("w", "float32", ("*S",))),
            (AttrType("lo", "float", None, None, True),),
        )
    }
    folder = write(tmp_path, simple("y = Exp(x)", emit="{kernel: soft, args: {z: x}, attrs: {low: 1.0}}"))
    found = {d.message: d.help for d in check_rules([folder], kernels)}
    assert "kernel `soft` has no operand `z`" in found
    assert found["kernel `soft` has no attribute `low`"] == "did you mean `lo`?"
    assert {"kernel `soft` needs `x`", "kernel `soft` needs `w`", "kernel `soft` needs `lo`"} <= set(found)
    other = write(tmp_path / "b", simple("y = Exp(x)", emit="{kernel: sift, args: {x: x}}"))
    (hit,) = check_rules([other], kernels)
    assert (hit.message, hit.help) == ("unknown kernel `sift`", "did you mean `soft`?")


TEMPORARIES = [
    ("{y: t t t}", "`t t t` names no result"),
    ("{y: int9 t}", "unknown element type `int9`"),
    ("{y: 'int8[Q] t'}", "`Q` is not bound in variant `any`"),
    ("{y: 'int8[2 +] t'}", "a shape: invalid syntax"),
    ("{y: int8 y}", "`y` has its type from the graph"),
    ("{y: t}", "the element type of `t` does not follow from what `cast` is given"),
]


@pytest.mark.parametrize(("results", "message"), TEMPORARIES)
def test_types_of_temporaries_are_checked(tmp_path: Path, results: str, message: str) -> None:
    operands = (OperandType("x", "T", ("*S",)),), (OperandType("y", "U", ("*S",)),)
    cast = Kernel(
        "cast", "", tmp_path, *operands, (), (), (), {"T": ("float32",), "U": ("int8",)}, None, (), (), {}, ()
    )
    last = "y" if results != "{y: int8 y}" else "u"
    call = "{{kernel: cast, args: {{x: x}}, results: {}}}"
    calls = f"[{call.format(results)}, {call.format(f'{{y: {last}}}')}]"
    found = check_rules([write(tmp_path, simple("y = Exp(x)", emit=f"{{calls: {calls}}}"))], {"cast": cast})
    hit = next((d for d in found if message in d.message), None)
    assert hit is not None, [d.message for d in found]
    assert hit.span is not None
    assert hit.source is not None


def test_later_directories_override_by_name(tmp_path: Path) -> None:
    first = write(tmp_path / "a", simple("y = Exp(x)"))
    second = write(tmp_path / "b", simple("y = Tanh(x)"))
    loaded = load_rules([first, second], None)
    assert [sorted(v.roots) for r in loaded.rules for v in r.variants] == [["Tanh"]]
    assert any("rule r of" in n and "overrides" in n for n in loaded.notes)
    write(tmp_path / "a", simple("y = Exp(x)"), name="twin.yaml")
    assert any("is there twice" in d.message for d in check_rules([first], None))


RULE = simple(
    "c = Conv(x, w, b | None, group=g)\ny = act(c) -> lo, hi",
    given='{x: real, w: const real, b: "const real | none"}',
    emit="{kernel: k, args: {x: x, w: w, b: b}, attrs: {g: g, lo: lo, hi: hi}}",
)


def test_the_rule_that_is_broken_below_is_sound(tmp_path: Path) -> None:
    assert problems(tmp_path, RULE) == ()


@given(data=st.data())
def test_any_damage_ends_in_a_result_or_in_located_errors(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    texts = {"r.yaml": RULE, "fragments.yaml": FRAGMENTS, "classes.yaml": CLASSES}
    name = data.draw(st.sampled_from(sorted(texts)))
    text = texts[name]
    at = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(at, min(len(text), at + 12)))
    new = data.draw(
        st.one_of(
            st.text(max_size=6),
            st.sampled_from(["\t", "|", "->", "((", "]", "*x", "&a ", "[", "{", "'", '"', ": ", "\n", "~"]),
        )
    )
    folder = tmp_path_factory.mktemp("damaged")
    for n, t in texts.items():
        (folder / n).write_bytes((t[:at] + new + t[stop:] if n == name else t).encode("utf-8", "surrogatepass"))
    for d in check_rules([folder], None):
        assert d.message
        assert d.span is not None
        str(d)


@given(raw=st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "r.yaml").write_bytes(raw)
    check_rules([folder], None)


def test_a_fragments_result_is_named_by_the_rule(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, simple("y = Abs((act(x) -> lo, _))"))
    assert found.message == "`lo` is captured and never used"
    assert found.span is not None
    assert found.span.file == str(tmp_path / "r.yaml")
