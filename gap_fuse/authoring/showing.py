"""rule_lines(): how a rule was read: every variant with its index operators, types, conditions, and what is emitted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fusion_engine import GapFuseError, Rule, RuleSet
from fusion_engine.diagnostics import Diagnostic, did_you_mean
from fusion_engine.language.bindings import tensor_names
from fusion_engine.language.printing import (
    capture_type_text,
    expression_text,
    pattern_text,
    rewrite_lines,
    stored_type_text,
)
from fusion_engine.language.trees import children, rebuild, roots
from fusion_engine.language.types import (
    Alternatives,
    Capture,
    EmitEntry,
    Expression,
    Named,
    Pattern,
    Rewrite,
    Variant,
)

CLASS = 6  # operators of a class that are written out


def find_rule(rules: RuleSet, name: str) -> Rule:
    """The rule of this name. Raises GapFuseError, with the nearest name."""
    found = next((r for r in rules.rules if r.name == name), None)
    if found is None:
        near = did_you_mean(Path(name).stem, [r.name for r in rules.rules])
        help_ = near or "`gap-fuse rules list` shows them; `--rules PATH` reads further files"
        raise GapFuseError(Diagnostic(f"there is no rule `{name}`", help=help_))
    return found


def rule_lines(rule: Rule, rules: RuleSet) -> Iterator[str]:
    """The rule as the engine understood it."""
    yield f"rule {rule.name}  ({rule.span.file}, version {rule.version})"
    yield f"  {rule.summary}"
    if rule.given:
        yield "captures"
        width = max(map(len, rule.given))
        yield from (f"  {name:{width}}  {capture_type_text(t)}" for name, t in rule.given.items())
    for variant in rule.variants:
        yield from _variant(variant, rules)
    for i, entry in enumerate(rule.emit, 1):
        yield from _entry(i, entry)
    for rewrite in rule.rewrite:
        yield from _rewrite(rewrite)
    if rule.weights:
        yield f"measure: {', '.join(f'{op} weighs {weight}' for op, weight in rule.weights.items())}"
    tests = [f"{t.kind} {t.expect}" for t in rule.tests]
    yield f"tests: {', '.join(tests) or 'none'}"


# ---- variants ----


def _variant(v: Variant, rules: RuleSet) -> Iterator[str]:
    yield f"variant {v.name}"
    yield f"  looked for at: {operators_text(v.roots) or 'every operator'}"
    if v.scope:
        yield f"  only inside one instance of {v.scope}"
    if v.region:
        yield f"  the maximal private region of {operators_text(frozenset(rules.classes[v.region]))}"
    for name, pattern in zip(v.results, (v.pattern, *v.extra), strict=True):
        yield from _anchor(v, name, pattern)
        yield from (f"    {line}" for line in pattern_lines(pattern, name, rules))
    yield from _names("inner, private to the match" if not v.shared else "inner", v.inner)
    if v.shared:
        yield f"  may have other users: {v.shared if isinstance(v.shared, str) else ', '.join(v.shared)}"
    yield from _expressions("let", v.let)
    yield from (f"  where {text}" for text, _ in v.where)


def _anchor(v: Variant, name: str, pattern: Pattern) -> Iterator[str]:
    if name == v.results[0]:
        return
    shared = [n for n in dict.fromkeys(tensor_names(pattern)) if n in tensor_names(v.pattern) or n in v.inner]
    yield f"  then upwards from {', '.join(shared)}:"


def operators_text(ops: frozenset[str]) -> str:
    """Operators in alphabetical order, the first few of many."""
    names = sorted(ops)
    return ", ".join(names[:CLASS]) + (f" and {len(names) - CLASS} more" if len(names) > CLASS else "")


def _names(what: str, names: tuple[str, ...]) -> Iterator[str]:
    own = [n for n in names if "." not in n]
    if own:
        yield f"  {what}: {', '.join(own)}"


def _expressions(what: str, expressions: tuple[tuple[str, Expression], ...]) -> Iterator[str]:
    yield from (f"  {what} {name} = {expression_text(e)}" for name, e in expressions)


def pattern_lines(pattern: Pattern, name: str, rules: RuleSet) -> Iterator[str]:
    """Inner values first, one a line, each once; every alternative of a value on a line of its own, with the operator
    that it is found by."""
    body = pattern.pattern if isinstance(pattern, Named) and pattern.name == name else pattern
    seen: set[str] = set()
    yield from _definitions(body, seen, rules)
    yield from _assignment(name, body, rules)


def _definitions(pattern: Pattern, seen: set[str], rules: RuleSet) -> Iterator[str]:
    for child in children(pattern):
        yield from _definitions(child, seen, rules)
        if isinstance(child, Named) and child.name not in seen:
            seen.add(child.name)
            yield from _assignment(child.name, child.pattern, rules)


def _assignment(name: str, pattern: Pattern, rules: RuleSet) -> Iterator[str]:
    options = pattern.options if isinstance(pattern, Alternatives) else (pattern,)
    lead = f"{name} = "
    for i, option in enumerate(options):
        mark = lead if i == 0 else f"{'| ':>{len(lead)}}"
        found = roots(option, rules.classes)
        at = f"    # {operators_text(found)}" if len(options) > 1 and found else ""
        yield f"{mark}{pattern_text(_by_name(option))}{at}"


def _by_name(pattern: Pattern) -> Pattern:
    """The same with every inner value as its name alone."""
    if isinstance(pattern, Named):
        return Capture(pattern.name, pattern.span)
    return rebuild(pattern, _by_name)


# ---- rewrite, emit ----


def _rewrite(rewrite: Rewrite) -> Iterator[str]:
    yield f"rewrite, for {', '.join(rewrite.variants) or 'every variant'}"
    yield from (f"  {line}" for line in rewrite_lines(rewrite))


def _entry(i: int, entry: EmitEntry) -> Iterator[str]:
    names = " + ".join(c.kernel for c in entry.calls)
    what = f"for {', '.join(entry.variants)}" if entry.variants else "for every variant"
    yield f"emit {i}: {names}, {what}"
    for name, stored in entry.stored.items():
        yield f"  {name} stored as {stored_type_text(stored)}"
    yield from (f"  {name} may be quantised inside, as {like}" for name, like in entry.inner)
    yield from (f"  when {text}" for text, _ in entry.when)
    for call in entry.calls:
        if len(entry.calls) > 1:
            yield f"  {call.kernel}"
        yield from _expressions("  operand" if len(entry.calls) > 1 else "operand", call.args)
        yield from _expressions("  attribute" if len(entry.calls) > 1 else "attribute", call.attrs)
        yield from (f"  result {output} -> {name}" for output, name in call.results)
