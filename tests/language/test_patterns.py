"""Pattern text into trees: every form of the language, with its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_engine.language import load_rules
from fusion_engine.language.printing import pattern_text
from fusion_engine.language.trees import walk
from fusion_engine.language.types import (
    Absent,
    Alternatives,
    Capture,
    ELiteral,
    Literal,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    Variant,
    With,
)
from tests.language.files import simple, write


def variant(folder: Path, pattern: str, **kw: str) -> Variant:
    return load_rules([write(folder, simple(pattern, **kw))], None).rules[0].variants[0]


def root(v: Variant) -> Pattern:
    assert isinstance(v.pattern, Named)
    return v.pattern.pattern


def test_operator_with_attributes(tmp_path: Path) -> None:
    v = variant(tmp_path, "y = Conv(x, _, None, group=1, strides=strides, auto_pad=\"NOTSET\", pads=[0, 0, 0, 0])",
                emit="{kernel: k, args: {x: x}, attrs: {s: strides}}")  # fmt: skip
    p = root(v)
    assert isinstance(p, OpPattern)
    assert [(a.name, a.literal, a.capture) for a in p.attrs] == [
        ("group", 1, None),
        ("strides", None, "strides"),
        ("auto_pad", "NOTSET", None),
        ("pads", (0, 0, 0, 0), None),
    ]
    assert isinstance(p.inputs[2], Absent)
    assert v.attr_captures == ("strides",)
    assert v.captures == ("x",)
    assert v.roots == frozenset({"Conv"})


def test_infix_is_commutative_where_onnx_is(tmp_path: Path) -> None:
    add = root(variant(tmp_path / "a", "y = x + 1.5"))
    sub = root(variant(tmp_path / "b", "y = x - 1.5"))
    assert isinstance(add, OpPattern)
    assert isinstance(sub, OpPattern)
    assert (add.op, add.commutative, sub.op, sub.commutative) == ("Add", True, "Sub", False)
    assert isinstance(add.inputs[1], Literal)
    assert add.inputs[1].value == 1.5


def test_literals(tmp_path: Path) -> None:
    p = root(variant(tmp_path, "y = Max(x, -inf, [-1], [1.5, 2], 1e-5)"))
    assert isinstance(p, OpPattern)
    assert [q.value for q in p.inputs[1:] if isinstance(q, Literal)] == [-float("inf"), (-1,), (1.5, 2.0), 1e-5]


def test_fragment_binds_the_names_the_rule_gives(tmp_path: Path) -> None:
    v = variant(
        tmp_path, "c = Neg(x)\ny = act(c) -> low, high", emit="{kernel: k, args: {x: x}, attrs: {a: low, b: high}}"
    )
    p = root(v)
    assert isinstance(p, Alternatives)
    relu, clip, bare = p.options
    assert isinstance(relu, With)
    assert [(n, e.value) for n, e in relu.bindings if isinstance(e, ELiteral)] == [("low", 0.0), ("high", float("inf"))]
    assert isinstance(clip, OpPattern)
    assert [q.name for q in clip.inputs[1:] if isinstance(q, Capture)] == ["low", "high"]
    assert clip.defaults == ((1, -float("inf")), (2, float("inf")))
    assert isinstance(bare, With)
    assert isinstance(bare.pattern, Named)
    assert v.inner == ("c",)
    assert v.roots == frozenset({"Relu", "Clip", "Neg"})


def test_fragment_names_are_its_own(tmp_path: Path) -> None:
    """`factor_inv` of two uses must not become one value; `f * factor_inv` of the rule neither."""
    v = variant(
        tmp_path,
        "factor_inv = Exp(x)\ny = MatMul(scaled(factor_inv) -> f, scaled(x) -> g)",
        emit="{kernel: k, args: {x: x}, attrs: {f: f, g: g}}",
    )
    local = {p.name for p in walk(v.pattern) if isinstance(p, Capture) and p.name.endswith(".factor_inv")}
    assert len(local) == 2
    assert v.inner == ("factor_inv",)
    assert set(v.captures) == {"x", "f", "g"}


def test_operand_used_twice_is_one_value(tmp_path: Path) -> None:
    v = variant(tmp_path, "y = square(x - 1.0)")
    options = root(v)
    assert isinstance(options, Alternatives)
    product = options.options[0]
    assert isinstance(product, OpPattern)
    first, second = product.inputs
    assert isinstance(first, Named)
    assert isinstance(second, Capture)
    assert second.name == first.name


def test_named_value_used_twice_is_matched_once_on_each_path(tmp_path: Path) -> None:
    v = variant(tmp_path, "e = Exp(x)\ny = (x * e) * e | Neg(e)")
    options = root(v)
    assert isinstance(options, Alternatives)
    left, right = options.options
    assert [type(p) for p in walk(left) if getattr(p, "name", "") == "e"] == [Named, Capture]
    assert [type(p) for p in walk(right) if getattr(p, "name", "") == "e"] == [Named]


def test_optional_capture_missing_in_an_alternative_is_absent(tmp_path: Path) -> None:
    v = variant(
        tmp_path,
        "m = Exp(x)\ny = m + b | m",
        given='{x: real, b: "const real | none"}',
        emit="{kernel: k, args: {x: x, b: b}}",
    )
    options = root(v)
    assert isinstance(options, Alternatives)
    assert isinstance(options.options[1], With)
    assert [(n, getattr(e, "value", 0)) for n, e in options.options[1].bindings] == [("b", None)]


def test_plain_optional_input_stays_as_it_is_under_other_alternatives(tmp_path: Path) -> None:
    """`b | None` inside alternatives counts as bound: it must not be bound to nothing a second time."""
    v = variant(
        tmp_path,
        "c = Conv(x, w, b | None)\ny = act(c) -> lo, hi",
        given='{x: real, w: const real, b: "const real | none"}',
        emit="{kernel: k, args: {x: x, w: w, b: b}, attrs: {lo: lo, hi: hi}}",
    )
    assert not [p for p in walk(v.pattern) if isinstance(p, With) and any(n == "b" for n, _ in p.bindings)]


def test_class_callee_variadic_rearrange(tmp_path: Path) -> None:
    v = variant(tmp_path / "a", "y = more[op](x)", emit="{kernel: k, args: {x: x}, attrs: {op: op}}")
    assert v.roots == frozenset({"Abs", "Exp", "Tanh", "Sigmoid"})
    assert v.attr_captures == ("op",)
    f = root(variant(tmp_path / "b", 'y = "my.*::Thing:one"(x, alpha=2)'))
    assert isinstance(f, OpPattern)
    assert f.callee == "my.*::Thing:one"
    c = root(variant(tmp_path / "c", "y = Concat(*x, axis=1)"))
    assert isinstance(c, OpPattern)
    assert c.rest == "x"
    r = root(variant(tmp_path / "d", 'y = rearrange(x, "s b (h d) -> b h s d")'))
    assert isinstance(r, Rearrange)
    assert r.text == "s b (h d) -> b h s d"


def test_several_results(tmp_path: Path) -> None:
    v = variant(
        tmp_path,
        "m = Exp(x)\na = Relu(m)\nb = Neg(m)",
        emit="{kernel: k, args: {x: x}, results: {y: a, z: b}}",
    )
    assert v.results == ("a", "b")
    assert len(v.extra) == 1
    assert isinstance(v.extra[0], Named)
    second = v.extra[0].pattern
    assert isinstance(second, OpPattern)
    assert isinstance(second.inputs[0], Capture)


def test_outputs_of_one_node(tmp_path: Path) -> None:
    v = variant(tmp_path, "_, y = Split(x, _, axis=0)")
    p = root(v)
    assert isinstance(p, OpPattern)
    assert (v.results, p.output) == (("y",), 1)


def test_walrus_names_an_inner_value(tmp_path: Path) -> None:
    assert variant(tmp_path, "y = Neg((e := Exp(x))) + e").inner == ("e",)


BLANKS = [
    ("y = Softmax(Softmax(x, axis=_), axis=_)", 2),
    ("y = unary[_](unary[_](x))", 2),
    ("y = Sum(*_) + Max(*_) + x", 2),
    ("y = Abs((act((act(x) -> _, _)) -> _, _))", 4),
    ("y = Flatten(x, axis=_) | Softmax(Softmax(x, axis=_), axis=_)", 3),
]


@pytest.mark.parametrize(("pattern", "count"), BLANKS)
def test_every_blank_stands_for_itself(tmp_path: Path, pattern: str, count: int) -> None:
    """Two `axis=_` were one capture: the axes had to be equal."""
    v = variant(tmp_path, pattern)
    blanks = [n for p in walk(v.pattern) for n in names_of(p) if n.split(".")[-1] == "_"]
    assert len(set(blanks)) == count
    assert not [n for n in (*v.captures, *v.attr_captures) if "_" in n]
    assert pattern_text(v.pattern).count("_") >= count
    assert "._" not in pattern_text(v.pattern)


def names_of(p: Pattern) -> list[str]:
    match p:
        case OpPattern():
            return [n for n in (p.rest, p.op_capture, *(a.capture for a in p.attrs)) if n]
        case With():
            return list(dict.fromkeys(n for n, _ in p.bindings))
    return []


def test_results_that_nobody_wants(tmp_path: Path) -> None:
    v = variant(tmp_path, "a, _ = Split(x, 2, axis=_)\ny, _ = Split(a, 2, axis=_)\n")
    assert v.results == ("y",)
