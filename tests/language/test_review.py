"""Warnings about rules that are sound but useless: shadowed variants, patterns that never match."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_engine.kernels import load_kernels
from fusion_engine.language import load_rules
from fusion_engine.review import review_rules
from tests.language.files import write

RULE = """\
rule: r
given: {{x: real, w: const real}}
match:
{variants}
emit:
  - {{kernel: k, args: {{x: x, w: w}}}}
"""


def reviewed(folder: Path, *patterns: str, more: str = "", rule: str = RULE) -> list[str]:
    variants = "\n".join(f"  - {{variant: v{i}, pattern: '{p}'{more}}}" for i, p in enumerate(patterns))
    rules = load_rules([write(folder, rule.format(variants=variants))], None)
    return [d.message for d in review_rules(rules, {})]


SHADOWED = [
    ("y = Add(x, w)", "y = Add(w, x)"),
    ("y = Exp(x) + w | Abs(x) + w", "y = Abs(x) + w"),
    ("y = unary(x) * w", "y = Tanh(x) * w"),
    ("y = Concat(x, w, axis=_k)", "y = Concat(x, w, axis=1)"),
    ("y = Gemm(x, w, _)", "y = Gemm(x, w, None)"),
    ("y = square(x) * w", "y = Pow(x, 2.0) * w"),
]
DISTINCT = [
    ("y = Sub(x, w)", "y = Sub(w, x)"),
    ("y = Exp(x) + w", "y = Abs(x) + w"),
    ("y = Tanh(x) * w", "y = unary(x) * w + w"),
    ("y = Concat(x, w, axis=0)", "y = Concat(x, w, axis=1)"),
    ("y = x * w", "y = Exp(x) * w"),
    ("y = Gemm(x, w, None)", "y = Gemm(x, w, _x)"),
]


@pytest.mark.parametrize(("wide", "narrow"), SHADOWED)
def test_a_variant_that_another_covers(tmp_path: Path, wide: str, narrow: str) -> None:
    (message,) = reviewed(tmp_path / "a", wide, narrow)
    assert message.startswith("the variant `v1` adds nothing: `v0` matches all that it matches")
    (message,) = reviewed(tmp_path / "b", narrow, wide)
    assert "the variant `v" in message


@pytest.mark.parametrize(("first", "second"), DISTINCT)
def test_variants_that_match_different_graphs(tmp_path: Path, first: str, second: str) -> None:
    assert reviewed(tmp_path / "a", first, second) == []
    assert reviewed(tmp_path / "b", second, first) == []


def test_a_condition_keeps_the_other_variant_useful(tmp_path: Path) -> None:
    rule = RULE.replace("{variants}", "  - {{variant: a, pattern: y = x * w, where: [rank(x) == 2]}}\n{variants}")
    assert reviewed(tmp_path, "y = x * w", rule=rule) == [
        "the variant `a` adds nothing: `v0` matches all that it matches, for the same calls"
    ]


def test_a_variant_with_more_entries_shadows_the_other(tmp_path: Path) -> None:
    rule = RULE + "  - {{kernel: k2, for: [v1], args: {{x: x, w: w}}}}\n"
    (message,) = reviewed(tmp_path, "y = x * w", "y = w * x", rule=rule)
    assert message.startswith("the variant `v0` adds nothing: `v1`")


def test_operators_that_no_view_holds(tmp_path: Path) -> None:
    (message,) = reviewed(tmp_path / "a", "y = Dropout(x * w)")
    assert message == "the variant `v0` can never match: no view holds Dropout"
    assert reviewed(tmp_path / "b", "y = Dropout(x * w) | x * w") == []


def test_a_target_without_the_instruction_set(tmp_path: Path) -> None:
    folder = tmp_path / "kernels" / "k"
    folder.mkdir(parents=True)
    (folder / "k.c").write_text("")
    (folder / "reference.py").write_text("def k(x, w):\n    return x\n")
    (folder / "kernel.yaml").write_text(
        """\
kernel: k
summary: for one instruction set.
signature: {inputs: {x: "float32[*S]", w: "float32[*S]"}, outputs: {y: "float32[*S]"}}
semantics: reference.py:k
axes: {i: "*S"}
access: |
  x[i]
  w[i]
  y[i]
implementations:
- {name: fast, source: k.c, symbol: k, rank: 1, orders: same, cycles: i, isa: [xpulp2]}
"""
    )
    kernels = load_kernels([tmp_path / "kernels"])
    rules = load_rules([write(tmp_path / "rules", RULE.format(variants="  - {pattern: y = x * w}"))], kernels)
    assert review_rules(rules, kernels) == ()
    assert review_rules(rules, kernels, "chip", ["xpulp2"]) == ()
    (found,) = review_rules(rules, kernels, "host", [])
    assert found.message == "the rule `r` can never fire on host"
    assert found.help == "every implementation of k needs xpulp2"
    assert str(found).startswith(f"{found.span}: warning: ")


def test_the_shipped_rules_need_no_warning(root: Path) -> None:
    kernels = load_kernels([root / "kernels"])
    rules = load_rules([root / "rules"], kernels)
    assert [str(d) for d in review_rules(rules, kernels, "host", [])] == []
