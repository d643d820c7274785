"""Patterns into closures: `matcher(state, value)` calls its continuation once for every way to match.

Continuations are fixed when compiling, so a search makes no closures; whatever is bound is unbound when the call
returns, so every alternative is tried with exactly the bindings of its own branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fusion_engine.covering.types import Cause
from fusion_engine.language.types import (
    Absent,
    Alternatives,
    Anything,
    Capture,
    CaptureType,
    Expression,
    Literal,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    With,
)
from fusion_engine.language.vocabulary import Unknown, evaluate_expression
from fusion_engine.matching.environment import free_names
from fusion_engine.matching.facts import DEQUANTIZE, Facts, Known, Tensor, Virtual
from fusion_engine.matching.literals import constant_equals
from fusion_engine.matching.moved import rearranging
from fusion_engine.matching.neighbourhoods import told_by_content
from fusion_engine.matching.operators import AXES_INPUT, AXES_OF_RESULT, compile_operator
from fusion_engine.matching.state import Deferred, State
from fusion_engine.matching.words import absence, another_literal, describe, makers, mistyped, two_values

Value = Tensor | Known | None  # None: an absent input
Matcher = Callable[[State, Value], None]
Continue = Callable[[State], None]
Check = Callable[[State, Value], str | None]


@dataclass(eq=False)
class Layout:
    """Slots of one variant: names to places in `State.values`, operator patterns to places in `State.nodes`."""

    facts: Facts
    classes: Mapping[str, tuple[str, ...]]
    given: Mapping[str, CaptureType]
    checks: Mapping[str, Check]  # the same, ready to ask
    inner: frozenset[str]
    slots: dict[str, int] = field(default_factory=dict)
    operators: int = 0

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))

    def operator(self) -> int:
        self.operators += 1
        return self.operators - 1


def compile_pattern(p: Pattern, then: Continue, layout: Layout, label: str = "", moved: bool = False) -> Matcher:
    """`label` names the value for messages and `inner:`; `moved`: only movements lie between it and the root."""
    match p:
        case Capture():
            return _capture(p, then, layout)
        case Anything():
            return lambda st, _: then(st)
        case Absent():
            return _absent(p, then)
        case Literal():
            return _literal(p, then)
        case Named(name=name, pattern=inner):
            return _named(p, compile_pattern(inner, then, layout, name, moved), then, layout)
        case Alternatives(options=options):
            return _alternatives(tuple(compile_pattern(o, then, layout, label, moved) for o in options))
        case With(pattern=inner, bindings=bindings):
            for name, expression in reversed(bindings):
                then = _bind_expression(layout.slot(name), _meaning(expression), then)
            return compile_pattern(inner, then, layout, label, moved)
        case Rearrange(operand=operand):
            return rearranging(p, compile_pattern(operand, then, layout, label, moved), layout.slots)
        case OpPattern():
            return _operator(p, then, layout, label, moved)
    raise AssertionError(p)


# ---- captures ----


def _capture(p: Capture, then: Continue, layout: Layout) -> Matcher:
    name = p.name
    slot, check, inner = layout.slot(name), layout.checks.get(name), name in layout.inner

    def capture(st: State, value: Value) -> None:
        if value is None:
            if st.explain:
                st.fail(absence(p))
            return
        bound = st.values[slot]
        if bound is not None:
            _again(st, p, bound, value, inner, then)
            return
        reason = check(st, value) if check is not None else None
        if reason is not None:
            if st.explain:
                st.fail(mistyped(st, p, value, reason, layout.given), *makers(st, value))
            return
        st.values[slot] = value
        then(st)
        st.values[slot] = None

    return capture


def _again(st: State, p: Capture | Named, bound: object, value: Value, inner: bool, then: Continue) -> None:
    """The second occurrence of a name: the same value. An inner value's own DequantizeLinear is inside too."""
    if bound != value and value is not None and st.facts.const(value) is not None:  # type: ignore[arg-type]
        st.numbers = True
    if not st.facts.same(bound, value):
        if st.explain:
            st.fail(two_values(st, p, bound, value), *makers(st, value))
        return
    made = st.facts.maker(value) if inner and isinstance(value, str) and value != bound else None
    if made is None or made.op != DEQUANTIZE:
        then(st)
        return
    st.inside.append(made.index)
    then(st)
    st.inside.pop()


def _named(p: Named, matcher: Matcher, then: Continue, layout: Layout) -> Matcher:
    slot, check = layout.slot(p.name), layout.checks.get(p.name)

    def named(st: State, value: Value) -> None:
        bound = st.values[slot]
        if bound is not None:
            _again(st, p, bound, value, True, then)
            return
        if value is None:
            if st.explain:
                st.fail(absence(p))
            return
        reason = check(st, value) if check is not None else None
        if reason is not None:
            if st.explain:
                st.fail(mistyped(st, p, value, reason, layout.given), *makers(st, value))
            return
        st.values[slot] = value
        matcher(st, value)
        st.values[slot] = None

    return named


def _meaning(expression: Expression) -> Known | Deferred:
    """An expression without names is worked out once, when compiling."""
    if any(True for _ in free_names(expression)):
        return Deferred(expression)
    value = evaluate_expression(expression, {})
    return Deferred(expression) if isinstance(value, (Unknown, np.ndarray)) else Known(value)


def _bind_expression(slot: int, what: Known | Deferred, then: Continue) -> Continue:
    """`with name = expression`. `None` is only what a name means that nothing else has bound."""
    absent = what == Known(None)

    def bind(st: State) -> None:
        bound = st.values[slot]
        if bound is not None:
            if absent or bound == what:
                then(st)
            return
        st.values[slot] = what
        then(st)
        st.values[slot] = None

    return bind


def _alternatives(options: tuple[Matcher, ...]) -> Matcher:
    def alternatives(st: State, value: Value) -> None:
        for option in options:
            option(st, value)

    return alternatives


def _absent(p: Absent, then: Continue) -> Matcher:
    def absent(st: State, value: Value) -> None:
        if value is None:
            then(st)
        elif st.explain:
            had = describe(st, value)
            reason, change = f"the pattern wants no input, the graph has {had}", "drop the input, or capture it"
            st.fail(Cause(reason, had, "no input", change, p.span), *makers(st, value))

    return absent


def _literal(p: Literal, then: Continue) -> Matcher:
    wanted = p.value
    size = len(wanted) if isinstance(wanted, tuple) else 1

    def literal(st: State, value: Value) -> None:
        const = st.facts.const(value) if isinstance(value, (str, Virtual)) else None
        if const is not None and const.size == size and not told_by_content(st.facts, value):
            st.numbers = True
        if (const is not None and constant_equals(const, wanted, None)) or (
            isinstance(value, Known) and value.value == wanted
        ):
            then(st)
        elif st.explain:
            st.fail(another_literal(p, describe(st, value)), *makers(st, value))

    return literal


def _axes_literal(p: Literal, parent: int, of_result: bool, then: Continue) -> Matcher:
    """A literal of axes: negative ones count from the rank of the operator's operand (or result, for Unsqueeze)."""
    plain = _literal(p, then)
    wanted = p.value

    def axes(st: State, value: Value) -> None:
        node = st.node(parent)
        rank = st.facts.rank((node.outputs[0] if of_result else node.inputs[0]) or "")
        const = st.facts.const(value) if isinstance(value, str) and rank is not None else None
        if const is not None and constant_equals(const, wanted, rank):
            then(st)
            return
        plain(st, value)

    return axes


# ---- operators ----


def _operator(p: OpPattern, then: Continue, layout: Layout, label: str, moved: bool) -> Matcher:
    parent = layout.operator()
    defaults = dict(p.defaults)
    if p.rest is not None:
        then = _rest(p, p.rest, parent, then, layout)
    for i in reversed(range(len(p.inputs))):
        then = _operand(p, i, parent, defaults.get(i), then, layout)
    accepted = layout.classes[p.op_class] if p.op_class is not None else ()
    return compile_operator(p, parent, frozenset(accepted), then, layout.slot, label or p.op or "", moved)


def _operand(p: OpPattern, i: int, parent: int, default: float | None, then: Continue, layout: Layout) -> Continue:
    pattern = p.inputs[i]
    axes_at = AXES_INPUT.get(p.op or "")
    if isinstance(pattern, Literal) and axes_at == i:
        matcher = _axes_literal(pattern, parent, p.op in AXES_OF_RESULT, then)
    else:
        matcher = compile_pattern(pattern, then, layout)
    missing = None if default is None else Known(default)

    def operand(st: State) -> None:
        node = st.nodes[parent]
        at = 1 - i if st.swapped[parent] and i < 2 else i
        inputs = node.inputs  # type: ignore[union-attr]
        value = inputs[at] if at < len(inputs) else None
        matcher(st, missing if value is None else value)

    return operand


def _rest(p: OpPattern, name: str, parent: int, then: Continue, layout: Layout) -> Continue:
    start, slot, check = len(p.inputs), layout.slot(name), layout.checks.get(name)

    def rest(st: State) -> None:
        parts = tuple(v for v in st.node(parent).inputs[start:] if v is not None)
        bound = st.values[slot]
        if bound is not None and bound != parts:
            return
        for part in parts:
            reason = check(st, part) if check is not None else None
            if reason is not None:
                if st.explain:
                    st.fail(mistyped(st, Capture(name, p.span), part, reason, layout.given), *makers(st, part))
                return
        st.values[slot] = parts
        then(st)
        st.values[slot] = bound

    return rest
