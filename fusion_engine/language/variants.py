"""One variant of a rule: its pattern text, `let` and `where`, into a Variant with balanced alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.language import bindings, trees
from fusion_engine.language.expressions import read_expression
from fusion_engine.language.file_model import RegionSection, VariantSection
from fusion_engine.language.fragments import Fragment
from fusion_engine.language.patterns import Statement, read_statements
from fusion_engine.language.reader import Reader
from fusion_engine.language.text import RuleText, arrows_to_shifts, parse_lines, scalar_text
from fusion_engine.language.types import ANY, Capture, Expression, Named, Pattern, Variant
from fusion_engine.marked_yaml import Marked, as_list, as_text, as_texts, pairs


@dataclass(frozen=True, eq=False)
class Library:
    """The fragments and classes that patterns may use."""

    fragments: Mapping[str, Fragment]
    classes: Mapping[str, tuple[str, ...]]


def read_variant(
    mark: Marked, library: Library, optional: frozenset[str], shared_let: Marked | None, shared_where: Marked | None
) -> Variant:
    """One entry of `match`; `optional` are the captures that may be absent. Raises GapFuseError with all problems."""
    problems: list[Diagnostic] = []
    if not VariantSection.check(mark, "a variant", problems):
        raise GapFuseError(problems)
    name = as_text(mark.get("variant"), "a variant's name", problems) or "any"
    let = (*read_named(mark.get("let"), "let", problems), *read_named(shared_let, "let", problems))
    where = (*read_conditions(shared_where, problems), *read_conditions(mark.get("where"), problems))
    region = _region(mark.get("region"), library, problems)
    shared = _shared(mark.get("shared"), problems)
    scope = as_text(mark.get("scope"), "scope", problems)
    statements: list[Statement] = []
    pattern = mark.get("pattern")
    if pattern is not None:
        try:
            statements = _statements(pattern, library)
        except GapFuseError as e:
            problems.extend(e.diagnostics)
    if problems or pattern is None:
        raise GapFuseError(problems)
    results, patterns = _results(statements, optional)
    parts = _Parts(name, results, patterns)
    problems.extend(_pattern_problems(pattern, parts))
    if problems:
        raise GapFuseError(problems)
    return _variant(mark, parts, library, let, where, shared, scope, region)


@dataclass(frozen=True, slots=True)
class _Parts:
    name: str
    results: tuple[str, ...]
    patterns: tuple[Pattern, ...]


def _statements(mark: Marked, library: Library) -> list[Statement]:
    text = scalar_text(mark, "a pattern")
    code = RuleText(mark, arrows_to_shifts(text.text))
    reader = Reader(code, library.fragments, library.classes)
    try:
        statements, _ = read_statements(reader, parse_lines(code, "a pattern"))
    except RecursionError as e:
        raise GapFuseError(mark.error("the pattern is nested too deeply")) from e
    if not statements:
        raise GapFuseError(mark.error("the pattern is empty"))
    return statements


def _results(statements: list[Statement], optional: frozenset[str]) -> tuple[tuple[str, ...], tuple[Pattern, ...]]:
    """The names that no other statement uses are what the match gives to the graph; one value is named once."""
    used: set[str] = set()
    for s in statements:
        for p in s.patterns:
            used.update(q.name for q in trees.walk(p) if isinstance(q, Named))
    found: list[tuple[str, Pattern]] = []
    seen: frozenset[str] = frozenset()
    for s in statements:
        for name, pattern in zip(s.names, s.patterns, strict=True):
            if name in used or (len(s.names) > 1 and name == ANY):
                continue
            balanced = bindings.balance(Named(name, pattern, pattern.span), optional)
            once, seen = bindings.name_once(balanced, seen)
            found.append((name, once))
    return tuple(n for n, _ in found), tuple(p for _, p in found)


def _pattern_problems(pattern: Marked, parts: _Parts) -> Iterable[Diagnostic]:
    lines = pattern.lines
    for p in parts.patterns:
        for option, name in bindings.unbalanced(p):
            source = lines[option.span.line - 1] if 0 < option.span.line <= len(lines) else None
            hint = "bind it there too, type it `| none` in given, or use a fragment with `with`"
            yield Diagnostic(f"this alternative does not bind `{name}`, which another does", option.span, hint, source)
        if not trees.has_anchor(p):
            hint = "at least the root must be an operator on every path"
            yield pattern.error("the pattern has no operator at its root, so nothing finds it", hint)
    for p in parts.patterns[1:]:
        shared = {q.name for q in trees.walk(p) if isinstance(q, Capture)}
        if not shared & {*bindings.tensor_names(parts.patterns[0]), *bindings.inner_names(parts.patterns[0])}:
            yield pattern.error("two results with nothing in common", "write two rules")
    both = set(bindings.tensor_names(parts.patterns[0])) & set(bindings.attr_names(parts.patterns[0]))
    yield from (pattern.error(f"`{n}` captures both a tensor and an attribute") for n in sorted(both))
    tensors = frozenset(n for p in parts.patterns for n in bindings.bound(p)) - frozenset(
        bindings.attr_names(parts.patterns[0])
    )
    axes = frozenset(n for p in parts.patterns for q in trees.walk(p) for n in bindings.own_axes(q))
    yield from (pattern.error(f"`{n}` names both a value and an axis") for n in sorted(axes & tensors))


def _variant(
    mark: Marked,
    parts: _Parts,
    library: Library,
    let: tuple[tuple[str, Expression], ...],
    where: tuple[tuple[str, Expression], ...],
    shared: tuple[str, ...] | str,
    scope: str | None,
    region: str | None,
) -> Variant:
    tensors = list(dict.fromkeys(n for p in parts.patterns for n in bindings.tensor_names(p)))
    inner = list(dict.fromkeys(n for p in parts.patterns for n in bindings.inner_names(p)))
    attrs = list(dict.fromkeys(n for p in parts.patterns for n in bindings.attr_names(p)))
    named = {*inner, *parts.results}
    first = parts.patterns[0]
    return Variant(
        name=parts.name,
        pattern=first,
        results=parts.results,
        extra=parts.patterns[1:],
        captures=tuple(n for n in tensors if n not in named),
        attr_captures=tuple(attrs),
        inner=tuple(n for n in inner if n not in parts.results),
        let=let,
        where=where,
        shared=shared,
        scope=scope,
        region=region,
        roots=trees.roots(first, library.classes) or frozenset(),
        span=replace(mark.span),
        axes=tuple(sorted(frozenset().union(*(bindings.axis_names(p) for p in parts.patterns)))),
    )


def _shared(mark: Marked | None, problems: list[Diagnostic]) -> tuple[str, ...] | str:
    if mark is not None and mark.kind == "scalar" and mark.text.strip() == "all":
        return "all"
    return as_texts(mark, "shared", problems)


def _region(mark: Marked | None, library: Library, problems: list[Diagnostic]) -> str | None:
    if mark is None or not RegionSection.check(mark, "region", problems):
        return None
    name = as_text(mark.get("ops"), "region ops", problems)
    if name is not None and name not in library.classes:
        problems.append(mark.error(f"unknown class `{name}`", "classes are in classes.yaml"))
    return name


def read_named(mark: Marked | None, what: str, problems: list[Diagnostic]) -> tuple[tuple[str, Expression], ...]:
    """A map of names to expressions; what cannot be read is added to `problems`."""
    found: list[tuple[str, Expression]] = []
    for key, value in pairs(mark, what, problems):
        try:
            found.append((key.text.strip(), read_expression(value, f"`{key.text}`")))
        except GapFuseError as e:
            problems.extend(e.diagnostics)
    return tuple(found)


def read_conditions(mark: Marked | None, problems: list[Diagnostic]) -> tuple[tuple[str, Expression], ...]:
    """A list of conditions with their texts."""
    found: list[tuple[str, Expression]] = []
    for item in as_list(mark, "where", problems):
        try:
            found.append((item.text.strip(), read_expression(item, "a condition")))
        except GapFuseError as e:
            problems.extend(e.diagnostics)
    return tuple(found)
