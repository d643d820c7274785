"""What `rules show` and the catalogue print reads back as what was printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from fusion_engine.diagnostics import Span
from fusion_engine.kernels import load_kernels
from fusion_engine.language import load_library, load_rules
from fusion_engine.language.captures import read_capture_type, read_stored_type
from fusion_engine.language.expressions import read_expression
from fusion_engine.language.printing import (
    capture_type_text,
    expression_text,
    pattern_text,
    stored_type_text,
)
from fusion_engine.language.query import read_query
from fusion_engine.language.types import Expression, Rule, RuleSet
from fusion_engine.marked_yaml import Marked

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shipped() -> RuleSet:
    return load_rules([ROOT / "rules"], load_kernels([ROOT / "kernels"]))


def scalar(text: str) -> Marked:
    return Marked("scalar", Span("t", 1, 1, 2), text, text=text, lines=(text,))


def bare(value: Any) -> Any:
    """A value without its places."""
    if is_dataclass(value):
        return (type(value).__name__, *(bare(getattr(value, f.name)) for f in fields(value) if f.name != "span"))
    return tuple(bare(v) for v in value) if isinstance(value, tuple) else value


def expressions(rule: Rule) -> Iterator[Expression]:
    for v in rule.variants:
        yield from (e for _, e in (*v.let, *v.where))
    for entry in rule.emit:
        yield from (e for c in entry.calls for _, e in (*c.args, *c.attrs))
        yield from (e for _, e in entry.when)


def test_expressions(shipped: RuleSet) -> None:
    every = [e for rule in shipped.rules for e in expressions(rule)]
    assert len(every) > 500
    for e in every:
        text = expression_text(e)
        assert bare(read_expression(scalar(text), "an expression")) == bare(e), text


def test_types(shipped: RuleSet) -> None:
    for rule in shipped.rules:
        for t in rule.given.values():
            assert bare(read_capture_type(scalar(capture_type_text(t)))) == bare(t)
        for stored in (s for entry in rule.emit for s in entry.stored.values()):
            assert bare(read_stored_type(scalar(stored_type_text(stored)))) == bare(stored)


PATTERNS = [
    "Conv(x, w, b, group=1, pads=[1, 1, 1, 1])",
    "(x + (y * 0.5))",
    "Clip(v, lo = -inf, hi = inf)",
    "Concat(a, *xs, axis=k)",
    '"com.x::Thing*"(x, n=1, s="text")',
    "unary[op](x)",
    "(Relu(x) | Tanh(x))",
    'rearrange(Exp(x), "a b -> b a")',
    "ReduceMean(x, [-1], keepdims=1)",
    "Softmax((e := Exp(x)), axis=-1)",
]


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns(text: str) -> None:
    library = load_library([ROOT / "rules"])
    (variant,) = read_query(f"y_ = {text}", (), library).rules[0].variants
    printed = pattern_text(variant.pattern)
    assert printed == f"(y_ := {text})"
