"""review_rules(): what of a rule set is sound but useless. Shadowed variants, rules that can never fire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fusion_engine.diagnostics import Diagnostic, Span
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.shadows import Shadow, shadows
from fusion_engine.language.trees import walk
from fusion_engine.language.types import Alternatives, EmitEntry, OpPattern, Pattern, Rule, RuleSet, Variant

REWRITTEN = {
    "Constant": "the view holds constants as values",
    "Dropout": "the view looks through it",
    "QLinearConv": "the view writes it as DequantizeLinear - Conv - QuantizeLinear",
    "QLinearMatMul": "the view writes it as DequantizeLinear - MatMul - QuantizeLinear",
}
"""Operators of the standard that no view holds, and why."""


def review_rules(
    rules: RuleSet, kernels: Mapping[str, Kernel], target: str | None = None, isa: Sequence[str] = ()
) -> tuple[Diagnostic, ...]:
    """Warnings in order of rule: variants that another one covers, variants that nothing can match, and, with a
    `target` (its name, and the instruction sets it has), rules none of whose kernels it can run."""
    found = [_shadowed(rules, s) for s in shadows(rules)]
    for rule in rules.rules:
        found += [_warning(rules, *w) for w in _never(rule)]
        if target is not None:
            found += [_warning(rules, *w) for w in _not_on(rule, kernels, target, isa)]
    return tuple(sorted(found, key=lambda d: d.span or Span("")))


def _warning(rules: RuleSet, span: Span, message: str, help: str | None = None) -> Diagnostic:
    lines = rules.sources.get(span.file, ())
    source = lines[span.line - 1] if 0 < span.line <= len(lines) else None
    return Diagnostic(message, span, help, source, severity="warning")


def _shadowed(rules: RuleSet, s: Shadow) -> Diagnostic:
    by = f"`{s.by.name}`" if s.by_rule is s.rule else f"`{s.by.name}` of the rule `{s.by_rule.name}`"
    message = f"the variant `{s.variant.name}` adds nothing: {by} matches all that it matches, for the same calls"
    return _warning(rules, s.variant.span, message, f"remove it, or narrow the one at {s.by.span}")


# ---- what nothing can match ----


def _never(rule: Rule) -> Iterator[tuple[Span, str, str | None]]:
    for variant in rule.variants:
        for p in (variant.pattern, *variant.extra):
            yield from _unseen(p, variant)


def _unseen(pattern: Pattern, variant: Variant) -> Iterator[tuple[Span, str, str | None]]:
    """Operators that no view holds, where every way through the pattern needs them."""
    optional = {id(q) for p in walk(pattern) if isinstance(p, Alternatives) for o in p.options for q in walk(o)}
    for p in walk(pattern):
        if isinstance(p, OpPattern) and p.op in REWRITTEN and id(p) not in optional:
            yield p.span, f"the variant `{variant.name}` can never match: no view holds {p.op}", REWRITTEN[p.op]


# ---- what a target cannot run ----


def _not_on(
    rule: Rule, kernels: Mapping[str, Kernel], target: str, isa: Sequence[str]
) -> Iterator[tuple[Span, str, str | None]]:
    reasons = [_cannot_run(entry, kernels, isa) for entry in rule.emit]
    if reasons and all(reasons):
        yield rule.emit[0].span, f"the rule `{rule.name}` can never fire on {target}", "; ".join(dict.fromkeys(reasons))


def _cannot_run(entry: EmitEntry, kernels: Mapping[str, Kernel], isa: Sequence[str]) -> str:
    """Why a target with these instruction sets cannot run an entry; "" where it can."""
    for call in entry.calls:
        kernel = kernels.get(call.kernel)
        if kernel is None or kernel.view is not None:
            continue
        if not any(set(i.isa) <= set(isa) for i in kernel.implementations):
            needs = sorted({f for i in kernel.implementations for f in i.isa if f not in isa})
            return f"every implementation of {kernel.name} needs {' or '.join(needs)}"
    return ""
