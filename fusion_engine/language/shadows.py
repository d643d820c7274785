"""Variants that another variant makes needless: whatever they match, the other matches too, and emits the same calls.

A sufficient test, by the structure of the patterns: where it cannot tell, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fusion_engine.language.expressions import expression_names
from fusion_engine.language.printing import capture_type_text, expression_text, stored_type_text
from fusion_engine.language.trees import rename_expression, walk
from fusion_engine.language.types import (
    Absent,
    Alternatives,
    Anything,
    AttrPattern,
    Capture,
    CaptureType,
    EmitEntry,
    Expression,
    Literal,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    Rule,
    RuleSet,
    Variant,
    With,
)

Names = Mapping[str, str]  # names of the wider pattern to those of the narrower, "" for a literal


@dataclass(frozen=True, slots=True)
class Shadow:
    """`variant` of `rule` adds nothing to what `by` of `by_rule` does."""

    rule: Rule
    variant: Variant
    by_rule: Rule
    by: Variant


def shadows(rules: RuleSet) -> tuple[Shadow, ...]:
    """Every variant that an earlier one covers, or a later one that is wider, in order of rule and variant."""
    every = [(r, v) for r in rules.rules if r.emit for v in r.variants]
    found: list[Shadow] = []
    for i, (rule, variant) in enumerate(every):
        for j, (by_rule, by) in enumerate(every):
            if i == j or not (_root_ops(by, variant) and _covers(by_rule, by, rule, variant, rules.classes)):
                continue
            if j < i or not _covers(rule, variant, by_rule, by, rules.classes):
                found.append(Shadow(rule, variant, by_rule, by))
                break
    return tuple(found)


def _root_ops(wide: Variant, narrow: Variant) -> bool:
    """A quick look: roots of the narrower are among those of the wider (unknown ones may be anything)."""
    return not wide.roots or (bool(narrow.roots) and narrow.roots <= wide.roots)


def _covers(
    wide_rule: Rule, wide: Variant, narrow_rule: Rule, narrow: Variant, classes: Mapping[str, tuple[str, ...]]
) -> bool:
    if wide.region or narrow.region or wide.extra or narrow.extra or len(wide.results) != len(narrow.results):
        return False
    if wide.scope != narrow.scope and any(isinstance(p, OpPattern) and p.callee for p in walk(narrow.pattern)):
        return False  # a call of a function is one thing, a region of metadata another
    if wide.scope not in (None, narrow.scope) or wide.shared not in ("all", narrow.shared):
        return False
    fit = _Fit(wide_rule.given, narrow_rule.given, classes)
    return any(
        _conditions_hold(wide, narrow, names) and _entries(narrow_rule, narrow, {}) <= _entries(wide_rule, wide, names)
        for names in fit.fits(wide.pattern, narrow.pattern, {})
    )


def _entries(rule: Rule, variant: Variant, names: Names) -> frozenset[str]:
    """What each entry that takes the variant calls, written out under `names`, `let` included."""
    let = ";".join(sorted(f"{n}={_renamed(e, names)}" for n, e in variant.let))
    return frozenset(f"{let}|{_entry(e, names)}" for e in rule.emit if not e.variants or variant.name in e.variants)


def _entry(e: EmitEntry, names: Names) -> str:
    calls = [
        (
            c.kernel,
            [(n, _renamed(v, names)) for n, v in (*c.args, *c.attrs)],
            [(n, names.get(r, r)) for n, r in c.results],
        )
        for c in e.calls
    ]
    stored = sorted((names.get(n, n), stored_type_text(t)) for n, t in e.stored.items())
    inner = sorted((names.get(a, a), names.get(b, b)) for a, b in e.inner)
    return repr((calls, stored, inner, [_renamed(c, names) for _, c in e.when]))


def _renamed(e: Expression, names: Names) -> str:
    return expression_text(rename_expression(e, lambda n: names.get(n, n)))


def _conditions_hold(wide: Variant, narrow: Variant, names: Names) -> bool:
    """Every condition of the wider stands in the narrower, about the same names."""
    held = {text for text, _ in narrow.where}
    return all(
        text in held and all(names.get(n.name, n.name) == n.name for n in expression_names(condition))
        for text, condition in wide.where
    )


@dataclass(frozen=True, eq=False)
class _Fit:
    wide: Mapping[str, CaptureType]
    narrow: Mapping[str, CaptureType]
    classes: Mapping[str, tuple[str, ...]]

    def fits(self, w: Pattern, n: Pattern, names: Names) -> Iterator[Names]:
        """Ways in which everything that `n` matches is matched by `w` with the same nodes."""
        match w, n:
            case (With(pattern=inner), _):
                yield from self.fits(inner, n, names)
            case (_, With(pattern=inner)):
                yield from self.fits(w, inner, names)
            case (_, Alternatives(options=options)):
                yield from self._all(w, options, names)
            case (Alternatives(options=options), _):
                for option in options:
                    yield from self.fits(option, n, names)
            case (Named(name=a, pattern=inner), Named(name=b, pattern=other)):
                for found in self.fits(inner, other, names):
                    yield from _bind(found, a, b)
            case (Named(pattern=inner), _):
                yield from self.fits(inner, n, names)
            case (_, Named(pattern=inner)):
                yield from self.fits(w, inner, names)
            case (Capture(name=a), Capture(name=b)) if self._typed(a, b):
                yield from _bind(names, a, b)
            case (Capture(name=a), Literal()) if self._takes_literal(a):
                yield from _bind(names, a, "")
            case (Anything(), Anything() | Capture() | Literal() | Absent()) | (Absent(), Absent()):
                yield names
            case (Literal(value=a), Literal(value=b)) if a == b:
                yield names
            case (Rearrange(text=a), Rearrange(text=b)) if a == b:
                yield from self.fits(w.operand, n.operand, names)
            case (OpPattern(), OpPattern()) if self._same_operator(w, n):
                yield from self._operator(w, n, names)

    def _all(self, w: Pattern, options: tuple[Pattern, ...], names: Names) -> Iterator[Names]:
        if not options:
            yield names
            return
        for found in self.fits(w, options[0], names):
            yield from self._all(w, options[1:], found)

    def _typed(self, wide: str, narrow: str) -> bool:
        type_ = self.wide.get(wide)
        if type_ is None:
            return True
        other = self.narrow.get(narrow)
        return other is not None and capture_type_text(type_) == capture_type_text(other)

    def _takes_literal(self, wide: str) -> bool:
        type_ = self.wide.get(wide)
        return type_ is None or type_.dims is None

    def _same_operator(self, w: OpPattern, n: OpPattern) -> bool:
        same = (w.op, w.callee, w.op_class) == (n.op, n.callee, n.op_class)
        member = w.op_class is not None and n.op in self.classes.get(w.op_class, ())
        alike = w.output == n.output and len(w.inputs) == len(n.inputs) and (w.rest is None) == (n.rest is None)
        return (same or member) and alike and w.defaults == n.defaults

    def _operator(self, w: OpPattern, n: OpPattern, names: Names) -> Iterator[Names]:
        captured = _attributes(w.attrs, n.attrs, names)
        if captured is None:
            return
        orders = [n.inputs, (n.inputs[1], n.inputs[0])] if w.commutative and len(n.inputs) == 2 else [n.inputs]
        for inputs in orders:
            yield from self._inputs(w.inputs, inputs, captured)

    def _inputs(self, w: tuple[Pattern, ...], n: tuple[Pattern, ...], names: Names) -> Iterator[Names]:
        if not w:
            yield names
            return
        for found in self.fits(w[0], n[0], names):
            yield from self._inputs(w[1:], n[1:], found)


def _bind(names: Names, wide: str, narrow: str) -> Iterator[Names]:
    if names.get(wide, narrow) == narrow:
        yield {**names, wide: narrow}


def _attributes(wide: tuple[AttrPattern, ...], narrow: tuple[AttrPattern, ...], names: Names) -> Names | None:
    """Attributes that only one of them mentions must be left at their default by that one: not decided, so no."""
    by_name = {a.name: a for a in narrow}
    if set(by_name) != {a.name for a in wide}:
        return None
    found = dict(names)
    for a in wide:
        other = by_name[a.name]
        if a.capture is None and a.literal != other.literal:
            return None
        if a.capture is not None and found.setdefault(a.capture, other.capture or "") != (other.capture or ""):
            return None
    return found
