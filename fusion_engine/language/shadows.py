"""Variants that another variant makes needless: whatever they match, the other matches too, and emits the same calls.

A sufficient test, by the structure of the patterns and the texts of the conditions: where it cannot tell, nothing is
reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fusion_engine.language.bindings import own_axes
from fusion_engine.language.printing import capture_type_text, expression_text, literal_text, stored_type_text
from fusion_engine.language.trees import rename_expression, walk
from fusion_engine.language.types import (
    Absent,
    Alternatives,
    Anything,
    Capture,
    CaptureType,
    EApply,
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

Names = Mapping[str, str]  # names of the wider pattern to what they are in the narrower; see OTHER
OTHER = ""  # what the narrower has no name for: no text with it is equal to any


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
    asked = _Written(narrow_rule, narrow, None)
    return any(
        _takes_all(_Written(wide_rule, wide, names), asked) for names in fit.fits(wide.pattern, narrow.pattern, {})
    )


def _takes_all(wide: _Written, narrow: _Written) -> bool:
    """Whether nothing more is asked by the wider, and each entry of the narrower is one of its own, asked no more."""
    return wide.where <= narrow.where and all(
        any(calls == own and when <= narrow.where | asked for own, when in wide.entries)
        for calls, asked in narrow.entries
    )


class _Written:
    """Conditions and entries of a variant as texts, in the names of the narrower pattern (`names` None: its own).

    `where` has each part of an `and` by itself; `entries` what each entry that takes the variant calls, `let` included,
    with the conditions of its own.
    """

    def __init__(self, rule: Rule, variant: Variant, names: Names | None) -> None:
        self.names, self.let = names, frozenset(n for n, _ in variant.let)
        let = ";".join(sorted(f"{n}={self._text(e)}" for n, e in variant.let))
        entries = [e for e in rule.emit if not e.variants or variant.name in e.variants]
        self.where = self._conditions(variant.where)
        self.entries = tuple((f"{let}|{self._entry(e)}", self._conditions(e.when)) for e in entries)

    def _entry(self, e: EmitEntry) -> str:
        own = frozenset(t for c in e.calls for _, t in c.results)  # temporaries, and results that have names
        calls = [
            (
                c.kernel,
                [(n, self._text(v, own)) for n, v in (*c.args, *c.attrs)],
                [(n, self._name(r, own)) for n, r in c.results],
            )
            for c in e.calls
        ]
        stored = sorted((self._name(n), stored_type_text(t)) for n, t in e.stored.items())
        return repr((calls, stored, sorted((self._name(a), self._name(b)) for a, b in e.inner)))

    def _conditions(self, conditions: Sequence[tuple[str, Expression]]) -> frozenset[str]:
        return frozenset(self._text(part) for _, c in conditions for part in _parts(c))

    def _text(self, e: Expression, own: frozenset[str] = frozenset()) -> str:
        return expression_text(rename_expression(e, lambda n: self._name(n, own)))

    def _name(self, name: str, own: frozenset[str] = frozenset()) -> str:
        """Sizes, `let` and temporaries keep theirs: types, `let` and calls are compared with them."""
        kept = self.names is None or name[:1].isupper() or name in self.let
        return name if kept else (self.names or {}).get(name, name if name in own else OTHER)


def _parts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, EApply) and condition.fn == "and":
        for part in condition.args:
            yield from _parts(part)
        return
    yield condition


@dataclass(frozen=True, eq=False)
class _Fit:
    wide: Mapping[str, CaptureType]
    narrow: Mapping[str, CaptureType]
    classes: Mapping[str, tuple[str, ...]]

    def fits(self, w: Pattern, n: Pattern, names: Names) -> Iterator[Names]:
        """Ways in which everything that `n` matches is matched by `w` with the same nodes."""
        match w, n:
            case (_, Alternatives(options=options)):
                yield from self._all(w, options, names)
            case (Alternatives(options=options), _):
                for option in options:
                    yield from self.fits(option, n, names)
            case (With(), With()):
                for found in self.fits(w.pattern, n.pattern, names):
                    yield from _bound_alike(w, n, found)
            case (With(pattern=inner, bindings=bindings), _):
                for found in self.fits(inner, n, names):
                    yield {**found, **{name: OTHER for name, _ in bindings}}
            case (_, With(pattern=inner)):
                yield from self.fits(w, inner, names)
            case (Named(name=a, pattern=inner), Named(name=b, pattern=other)):
                for found in self.fits(inner, other, names):
                    yield from _bind(found, a, b)
            case (Named(name=a, pattern=inner), _):
                for found in self.fits(inner, n, names):
                    yield from _bind(found, a, OTHER)
            case (_, Named(pattern=inner)):
                yield from self.fits(w, inner, names)
            case (Capture(name=a), Capture(name=b)) if self._typed(a, b):
                yield from _bind(names, a, b)
            case (Capture(name=a), Literal()) if self._takes_literal(a):
                yield from _bind(names, a, OTHER)
            case (Anything(), Anything() | Capture() | Literal() | Absent()) | (Absent(), Absent()):
                yield names
            case (Literal(value=a), Literal(value=b)) if a == b:
                yield names
            case (Rearrange(text=a), Rearrange(text=b)) if a == b:
                yield from self.fits(w.operand, n.operand, {**names, **{a: a for a in own_axes(w)}})
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
        captured = _attributes(w, n, names)
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


def _bound_alike(wide: With, narrow: With, names: Names) -> Iterator[Names]:
    """Names that both bind to the same; those that only the wider binds, or to something else, are OTHER."""
    others = {expression_text(e): n for n, e in narrow.bindings}
    same = {
        n: others.get(expression_text(rename_expression(e, lambda m: names.get(m, OTHER))), OTHER)
        for n, e in wide.bindings
    }
    if all(names.get(n, m) == m for n, m in same.items()):
        yield {**names, **same}


def _attributes(wide: OpPattern, narrow: OpPattern, names: Names) -> Names | None:
    """Names with the captured attributes; None where the wider asks for a value that the narrower need not have.

    An attribute that is not mentioned is at its default, those that repeat a shape aside.
    """
    found, theirs = dict(names), {a.name: a for a in narrow.attrs}
    if not theirs.keys() <= {a.name for a in wide.attrs}:
        return None
    for a in wide.attrs:
        other = theirs.get(a.name)
        if a.capture is None and (other is None or other.capture is not None or a.literal != other.literal):
            return None
        value = OTHER if other is None else other.capture or literal_text(other.literal)
        if a.capture is not None and found.setdefault(a.capture, value) != value:
            return None
    return found
