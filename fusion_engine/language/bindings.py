"""What a pattern binds: names on some path and on every path, alternatives given the same names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fusion_engine.language.axes import AxesText, parse_axes
from fusion_engine.language.trees import children, rebuild, walk
from fusion_engine.language.types import (
    Absent,
    Alternatives,
    Capture,
    ELiteral,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    With,
)


def name_once(pattern: Pattern, seen: frozenset[str]) -> tuple[Pattern, frozenset[str]]:
    """Keep the first occurrence of each named inner value on every path; later ones become captures of it."""
    if isinstance(pattern, Named):
        if pattern.name in seen:
            return Capture(pattern.name, pattern.span), seen
        inner, after = name_once(pattern.pattern, seen)
        return rebuild(pattern, lambda _: inner), after | {pattern.name}
    if isinstance(pattern, Alternatives):
        results = [name_once(o, seen) for o in pattern.options]
        common = frozenset.intersection(*(after for _, after in results))
        options = iter([p for p, _ in results])
        return rebuild(pattern, lambda _: next(options)), common
    parts: list[Pattern] = []
    for child in children(pattern):
        part, seen = name_once(child, seen)
        parts.append(part)
    queue = iter(parts)
    return rebuild(pattern, lambda _: next(queue)), seen


def tensor_names(pattern: Pattern) -> dict[str, Pattern]:
    """Captured tensors, variadic ones too, and what `with` binds, in order; fragments' own names left out."""
    found: dict[str, Pattern] = {}
    for p in walk(pattern):
        names = [p.name] if isinstance(p, Capture) else [n for n, _ in p.bindings] if isinstance(p, With) else []
        if isinstance(p, OpPattern) and p.rest:
            names.append(p.rest)
        for name in names:
            if not is_local(name):
                found.setdefault(name, p)
    return found


def attr_names(pattern: Pattern) -> dict[str, Pattern]:
    """Captured attributes and operator names of classes, in order of appearance."""
    found: dict[str, Pattern] = {}
    for p in walk(pattern):
        if isinstance(p, OpPattern):
            names = [a.capture for a in p.attrs if a.capture] + ([p.op_capture] if p.op_capture else [])
            for name in names:
                if not is_local(name):
                    found.setdefault(name, p)
    return found


def inner_names(pattern: Pattern) -> dict[str, Pattern]:
    """Named inner values in order of appearance, without fragments' own."""
    found: dict[str, Pattern] = {}
    for p in walk(pattern):
        if isinstance(p, Named) and not is_local(p.name):
            found.setdefault(p.name, p)
    return found


def is_local(name: str) -> bool:
    """Whether a name belongs to a fragment's inside (`act.0.v`)."""
    return "." in name


def bound(pattern: Pattern) -> frozenset[str]:
    """Names that are bound on every path through the pattern."""
    return _bound(pattern, [bound(child) for child in children(pattern)])


def _bound(pattern: Pattern, inside: Sequence[frozenset[str]]) -> frozenset[str]:
    """The same, where `inside` are those of its children."""
    match pattern:
        case Capture(name=name):
            return frozenset((name,))
        case Named(name=name):
            return inside[0] | {name}
        case With(bindings=bindings):
            return inside[0] | {n for n, _ in bindings}
        case Rearrange():
            return inside[0]
        case Alternatives(options=options):
            absent = is_optional(pattern)
            there = [b for o, b in zip(options, inside, strict=True) if not (absent and isinstance(o, Absent))]
            return frozenset.intersection(*there) if there else frozenset()
        case OpPattern(attrs=attrs, rest=rest, op_capture=op):
            own = {a.capture for a in attrs if a.capture} | {n for n in (rest, op) if n}
            return frozenset(own).union(*inside)
    return frozenset()


def axis_names(pattern: Pattern) -> frozenset[str]:
    """Axis names of rearranges that every path through the pattern goes by."""
    below = [axis_names(c) for c in children(pattern)]
    if isinstance(pattern, Alternatives):
        return frozenset.intersection(*below)
    return frozenset(own_axes(pattern)).union(*below)


def own_axes(pattern: Pattern) -> tuple[str, ...]:
    """The axis names of a rearrange itself."""
    text = parse_axes(pattern.text) if isinstance(pattern, Rearrange) else None
    return text.names if isinstance(text, AxesText) else ()


def is_optional(pattern: Alternatives) -> bool:
    """`b | None`: the name counts as bound, to nothing where the input is absent."""
    return all(isinstance(o, (Absent, Capture)) for o in pattern.options)


def _own_names(pattern: Pattern) -> list[str]:
    """Names that the pattern itself binds, its inside aside."""
    match pattern:
        case Capture(name=name):
            names = [name]
        case With(bindings=bindings):
            names = [n for n, _ in bindings]
        case OpPattern(attrs=attrs, rest=rest, op_capture=op):
            names = [n for n in (rest, op, *[a.capture for a in attrs]) if n]
        case _:
            return []
    return [n for n in names if not is_local(n)]


def balance(pattern: Pattern, optional: frozenset[str]) -> Pattern:
    """Give every alternative the same names: where an optional capture is missing, `With` binds it to None."""
    return _balanced(pattern, optional)[0]


def _balanced(pattern: Pattern, optional: frozenset[str]) -> tuple[Pattern, Names]:
    """The pattern balanced, and its names."""
    inside = [_balanced(child, optional) for child in children(pattern)]
    changed = iter([child for child, _ in inside])
    pattern = rebuild(pattern, lambda _: next(changed))
    some, every = _names(pattern, [names for _, names in inside])
    if isinstance(pattern, Alternatives):
        bounds = [names.every for _, names in inside]
        old = pattern.options
        new = [_completed(o, some - b, optional, pattern) for o, b in zip(old, bounds, strict=True)]
        bounds = [b if n is o else b | (some & optional) for o, n, b in zip(old, new, bounds, strict=True)]
        options = iter(new)
        pattern = rebuild(pattern, lambda _: next(options))
        every = _bound(pattern, bounds)
    return pattern, Names(some, every)


class Names(NamedTuple):
    """What a pattern binds on some path (inner values and fragments' own aside), and on every path."""

    some: frozenset[str]
    every: frozenset[str]


def _names(pattern: Pattern, inside: Sequence[Names]) -> Names:
    some = frozenset(_own_names(pattern)).union(*(names.some for names in inside))
    return Names(some, _bound(pattern, [names.every for names in inside]))


def _completed(option: Pattern, lacking: frozenset[str], optional: frozenset[str], of: Alternatives) -> Pattern:
    missing = sorted(lacking & optional)
    if not missing or (isinstance(option, Absent) and is_optional(of)):
        return option
    return With(option, tuple((n, ELiteral(None, option.span)) for n in missing), option.span)


def unbalanced(pattern: Pattern) -> Iterator[tuple[Pattern, str]]:
    """Each alternative that lacks a name which another binds."""
    yield from _lacking(pattern)[1]


def _lacking(pattern: Pattern) -> tuple[Names, list[tuple[Pattern, str]]]:
    """The names of a pattern, and each alternative inside that lacks a name, outermost first."""
    inside = [_lacking(child) for child in children(pattern)]
    names = _names(pattern, [n for n, _ in inside])
    found: list[tuple[Pattern, str]] = []
    if isinstance(pattern, Alternatives):
        absent = is_optional(pattern)
        for option, (own, _) in zip(pattern.options, inside, strict=True):
            if not (absent and isinstance(option, Absent)):
                found += [(option, name) for name in sorted(names.some - own.every)]
    return names, [*found, *(pair for _, more in inside for pair in more)]
