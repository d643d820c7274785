"""Rules that never fire, to see what a larger library costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fusion_engine import load_rules
from fusion_engine.language.types import RuleSet

ABSENT = ("Det", "Einsum", "NonZero", "Compress", "Hardmax", "Shrink", "EyeLike", "GridSample")
NEAR = ("Div", "Erf", "Sqrt", "Softmax", "Transpose", "ReduceMean", "Sub", "Pow", "Add", "Mul")


def absent_roots(count: int) -> list[str]:
    """Patterns whose root no network of these has."""
    return [f"{ABSENT[i % len(ABSENT)]}({NEAR[i % len(NEAR)]}(x))" for i in range(count)]


def common_roots(count: int) -> list[str]:
    """Patterns rooted at Mul, Add and MatMul that fail at their second or third operator, or at a number."""
    roots = ("Mul", "Add", "MatMul")
    found = []
    for i in range(count):
        near, far = NEAR[i % len(NEAR)], NEAR[(i // len(NEAR)) % len(NEAR)]
        inner = f"{near}({far}(x)" + (", 77.0)" if near in ("Div", "Sub", "Pow", "Add", "Mul", "ReduceMean") else ")")
        found.append(f"{roots[i % 3]}({inner}, {far}(x))")
    return found


def with_decoys(rules: RuleSet, patterns: list[str]) -> RuleSet:
    """The library and one more rule per pattern."""
    with TemporaryDirectory() as folder:
        for i, pattern in enumerate(patterns):
            text = f"rule: decoy{i}\nsummary: s\ngiven: {{x: real}}\nmatch: {{pattern: 'y = {pattern}'}}\n"
            (Path(folder) / f"d{i}.yaml").write_text(text + "emit: {kernel: k, args: {x: x}}\n")
        more = load_rules([Path(folder)], None)
    return replace(rules, rules=tuple(sorted((*rules.rules, *more.rules), key=lambda r: r.name)))
