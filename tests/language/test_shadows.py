"""Conditions and attributes in the search for shadowed variants: found in simple cases, never a false one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.covering.types import Candidate
from fusion_engine.language.shadows import shadows
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import match
from fusion_engine.view import View
from tests.matching.given import kernel, kernels_of, rules_of, view_of

KERNELS = kernels_of(kernel("k", {"x": "T[*S]"}, "T[*S]", {"a": "int = 0", "lo": "float = 0.0"}))
RULE = """\
rule: r
given: {{x: real{w}}}
match:
{variants}
emit:
{entries}
"""


def rule(*variants: tuple[str, list[str], str, str]) -> RuleSet:
    """Variants v0, v1, ... of a pattern, conditions, attributes of the call, conditions of the entry."""
    listed, entries = [], []
    for i, (pattern, where, attrs, when) in enumerate(variants):
        conditions = f", where: [{', '.join(repr(w) for w in where)}]" if where else ""
        listed.append(f"  - {{variant: v{i}, pattern: '{pattern}'{conditions}}}")
        asked = f", when: [{when!r}]" if when else ""
        entries.append(f"  - {{kernel: k, for: [v{i}], args: {{x: x}}, attrs: {{{attrs}}}{asked}}}")
    w = ", _w: real" if any("_w" in v[0] for v in variants) else ""
    return rules_of(RULE.format(w=w, variants="\n".join(listed), entries="\n".join(entries)))


def found(rules: RuleSet) -> list[tuple[str, str]]:
    return [(s.variant.name, s.by.name) for s in shadows(rules)]


PLAIN = "y = Softmax(x, axis=_)"
CLAMPED = "y = Sqrt((act(x) -> lo, _))"
SHADOWED = [  # the wider, the narrower
    ((PLAIN, ["rank(x) == 2"], "", ""), (PLAIN, ["rank(x) == 2"], "", "")),
    ((PLAIN, ["rank(x) == 2"], "", ""), (PLAIN, ["rank(x) == 2 and shape(x)[0] > 1"], "", "")),
    ((PLAIN, ["shape(x)[0] > 1 and rank(x) == 2"], "", ""), (PLAIN, ["rank(x) == 2", "shape(x)[0] > 1"], "", "")),
    ((PLAIN, [], "", ""), ("y = Softmax(x, axis=1)", [], "", "")),
    ((PLAIN, [], "", ""), ("y = Softmax(x)", [], "", "")),
    (("y = Softmax(x, axis=k)", [], "a: k", ""), ("y = Softmax(x, axis=1)", [], "a: 1", "")),
    (("y = Softmax(x, axis=k)", ["k > 0"], "", ""), ("y = Softmax(x, axis=j)", ["j > 0", "rank(x) > 1"], "", "")),
    ((PLAIN, [], "", ""), (PLAIN, [], "", "rank(x) == 2")),
    ((PLAIN, [], "", "rank(x) == 2"), (PLAIN, ["rank(x) == 2"], "", "")),
    (
        (CLAMPED, [], "lo: lo", ""),
        (CLAMPED, ["rank(x) == 2"], "lo: lo", ""),
    ),
]
DISTINCT = [
    ((PLAIN, ["rank(x) == 2"], "", ""), (PLAIN, ["rank(x) == 3"], "", "")),
    ((PLAIN, ["rank(x) == 2 and shape(x)[0] > 1"], "", ""), (PLAIN, ["rank(x) == 2", "rank(x) < 4"], "", "")),
    ((PLAIN, ["rank(x) == 2 or shape(x)[0] > 1"], "", ""), (PLAIN, ["shape(x)[0] > 1"], "", "")),  # unknown is not true
    (("y = Softmax(x, axis=k)", [], "a: k", ""), ("y = Softmax(x, axis=1)", [], "a: 2", "")),
    (("y = Softmax(x, axis=k)", ["k > 0"], "", ""), ("y = Softmax(x, axis=1)", [], "", "")),  # 1 > 0 is not worked out
    (("y = Softmax(x, axis=1)", [], "", ""), ("y = Softmax(x)", [], "", "")),
    (("y = Softmax(x)", [], "", ""), (PLAIN, [], "", "")),
    (("y = Abs(r := Exp(x))", ["rank(r) == 2"], "", ""), ("y = Abs(Exp(x))", ["rank(x) == 2"], "", "")),
    ((CLAMPED, [], "lo: lo", ""), ("y = Sqrt(Relu(x))", [], "lo: 1.0", "")),
    ((CLAMPED, [], "lo: lo", ""), ("y = Sqrt((act(x) -> _, lo))", [], "lo: lo", "")),
]


@pytest.mark.parametrize(("wide", "narrow"), SHADOWED)
def test_the_narrower_adds_nothing(
    wide: tuple[str, list[str], str, str], narrow: tuple[str, list[str], str, str]
) -> None:
    assert found(rule(wide, narrow)) == [("v1", "v0")]
    assert ("v0", "v1") in found(rule(narrow, wide)) or found(rule(narrow, wide)) == [("v1", "v0")]


@pytest.mark.parametrize(("wide", "narrow"), DISTINCT)
def test_both_are_of_use(wide: tuple[str, list[str], str, str], narrow: tuple[str, list[str], str, str]) -> None:
    shadowed = found(rule(wide, narrow))
    assert ("v1", "v0") not in shadowed


# ---- never a false one: what the shadowed variant takes, the other takes for the same calls ----

MODELS = [
    "t (float[2,3] x) => (float[2,3] y) { y = Softmax<axis = 1>(x) }",
    "t (float[2,3] x) => (float[2,3] y) { y = Softmax<axis = 0>(x) }",
    "t (float[2,3,1] x) => (float[2,3,1] y) { y = Softmax(x) }",
    "t (float[1] x) => (float[1] y) { y = Softmax(x) }",
    "t (float[2,3] x) => (float[2,3] y) { r = Relu(x) y = Sqrt(r) }",
    "t (float[2,3] x) => (float[2,3] y) <float a = {1.0}> { r = Clip(x, a) y = Sqrt(r) }",
    "t (float[2,3] x) => (float[2,3] y) <float a = {0.0}, float b = {6.0}> { r = Clip(x, a, b) y = Sqrt(r) }",
    "t (float[2,3] x) => (float[2,3] y) { r = Exp(x) y = Abs(r) }",
    "t (float[2,3] x) => (float[2,3] y) { r = Exp(x) y = Mul(r, x) }",
    "t (float[2,3] x) => (float[2,3] y) { r = Exp(x) y = Mul(r, r) }",
    "t (float[2,3] x, float[3] w) => (float[2,3] y) { y = Mul(x, w) }",
]
PATTERNS = [
    "y = Softmax(x, axis=_)",
    "y = Softmax(x, axis=k)",
    "y = Softmax(x, axis=1)",
    "y = Softmax(x)",
    CLAMPED,
    "y = Sqrt((act(x) -> _, lo))",
    "y = Sqrt(Relu(x))",
    "y = Sqrt(Clip(x, 0.0, _))",
    "y = Sqrt(Clip(x, _, _))",
    "y = Sqrt(Clip(x, lo = -inf))",
    "y = Abs(k := Exp(x))",
    "y = unary(Exp(x))",
    "y = Mul(x, _w)",
    "y = Mul(Exp(x), x)",
    "y = Exp(x) * _ | Softmax(x, axis=_)",
]
CONDITIONS = [
    "rank(x) == 2",
    "shape(x)[0] > 1",
    "rank(x) == 2 and shape(x)[0] > 1",
    "rank(x) == 2 or shape(x)[0] > 1",
    "rank(x) > 1",
    "k > 0",
    "k == 1",
    "lo == 0.0",
    "rank(k) == 2",
]


@st.composite
def part(draw: st.DrawFn, pattern: str | None = None) -> tuple[str, list[str], str, str]:
    """A pattern, conditions about what it binds, a call that reads what it captures."""
    pattern = pattern or draw(st.sampled_from(PATTERNS))
    bound = {n for n in ("k", "lo") if re.search(rf"\b{n}\b", pattern)}
    about = st.sampled_from([c for c in CONDITIONS if {n for n in ("k", "lo") if re.search(rf"\b{n}\b", c)} <= bound])
    inner = "k :=" in pattern
    attrs = {"k": st.just("a: k"), "lo": st.just("lo: lo")}
    read = [attrs[n] for n in sorted(bound) if not (inner and n == "k")] or [st.sampled_from(["", "a: 1", "lo: 0.0"])]
    where = draw(st.lists(about, max_size=2, unique=True))
    return pattern, where, draw(read[0]), draw(st.just("") | about)


@cache
def views() -> tuple[View, ...]:
    return tuple(view_of(m) for m in MODELS)


def taken(rules: RuleSet, variant: str) -> set[tuple[int, frozenset[int], str]]:
    def calls(c: Candidate) -> str:
        return repr([(e.kernel, e.operands, e.results, e.attrs) for e in c.calls])

    results = [match(v, rules, KERNELS, cost=lambda *_: 1.0) for v in views()]
    return {(i, c.nodes, calls(c)) for i, r in enumerate(results) for c in r.candidates if c.variant == variant}


@given(st.data(), st.booleans())
def test_a_shadowed_variant_is_never_missed(data: st.DataObject, same: bool) -> None:
    first = data.draw(part())
    rules = rule(first, data.draw(part(first[0] if same else None)))
    for s in shadows(rules):
        assert taken(rules, s.variant.name) <= taken(rules, s.by.name)


def test_the_shipped_rules_shadow_nothing(root: Path) -> None:
    from fusion_engine.kernels import load_kernels
    from fusion_engine.language import load_rules

    assert shadows(load_rules([root / "rules"], load_kernels([root / "kernels"]))) == ()
