"""Further results of a variant: found by walking up from a value that the first pattern bound, in linear time."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_engine.covering.types import Cause
from fusion_engine.language.types import (
    Alternatives,
    Capture,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    Variant,
    With,
)
from fusion_engine.matching.compile import Continue, Layout, Matcher, compile_pattern
from fusion_engine.matching.facts import DEQUANTIZE, QUANTIZE, Virtual
from fusion_engine.matching.state import ExhaustedError, State

REACH = 256  # values looked at from one anchor


def compile_extras(variant: Variant, layout: Layout, then: Continue) -> Continue:
    """A continuation that matches every further result before `then`."""
    names = _names(variant.pattern)
    bound: list[frozenset[str]] = []
    for extra in variant.extra:
        bound.append(names)
        names |= _names(extra)
    for name, extra, known in reversed(list(zip(variant.results[1:], variant.extra, bound, strict=True))):
        rooted = extra if isinstance(extra, Named) and extra.name == name else Named(name, extra, extra.span)
        matcher = compile_pattern(rooted, then, layout, name)
        anchors = sorted(_heights(extra, known), key=lambda pair: (pair[1], pair[0]))
        then = _anchored(matcher, tuple((layout.slot(n), h) for n, h in anchors))
    return then


def _names(p: Pattern) -> frozenset[str]:
    match p:
        case Capture(name=name):
            return frozenset((name,))
        case Named(name=name, pattern=inner):
            return _names(inner) | {name}
        case With(pattern=inner) | Rearrange(operand=inner):
            return _names(inner)
        case OpPattern(inputs=inputs):
            return frozenset().union(*(_names(i) for i in inputs))
        case Alternatives(options=options):
            return frozenset().union(*(_names(o) for o in options))
    return frozenset()


def _heights(p: Pattern, known: frozenset[str], height: int = 0) -> set[tuple[str, int]]:
    """Names bound already, with the number of operators between them and the pattern's root."""
    match p:
        case Capture(name=name):
            return {(name, height)} if name in known else set()
        case Named(name=name, pattern=inner):
            own = {(name, height)} if name in known else set()
            return own | _heights(inner, known, height)
        case With(pattern=inner):
            return _heights(inner, known, height)
        case Rearrange(operand=inner):
            return _heights(inner, known, height + 4)
        case OpPattern(inputs=inputs):
            return set().union(*(_heights(i, known, height + 1) for i in inputs))
        case Alternatives(options=options):
            return set().union(*(_heights(o, known, height) for o in options))
    return set()


def _anchored(matcher: Matcher, anchors: tuple[tuple[int, int], ...]) -> Continue:
    """Try each value that lies at most so many operators above the first anchor that is no constant."""

    def anchored(st: State) -> None:
        for slot, height in anchors:
            value = st.values[slot]
            if not isinstance(value, (str, Virtual)) or st.facts.is_const(value):
                continue
            for candidate in _above(st, value, height):
                st.step()
                matcher(st, candidate)
            return
        if st.explain:
            st.fail(Cause("the results share no value"))

    return anchored


def _above(st: State, value: str | Virtual, height: int) -> Iterator[str]:
    """Values that are made from `value` by at most `height` operators, nearest first; Q-DQ pairs do not count.

    Raises ExhaustedError where there are more than REACH.
    """
    view = st.facts.view
    start = st.facts.stored(value)
    seen: dict[str, int] = {value.stored if isinstance(value, Virtual) else value: 0}
    if start is not None:
        seen[start.name] = 0
    queue = list(seen)
    while queue:
        if len(seen) >= REACH:
            raise ExhaustedError
        name = queue.pop(0)
        for index in view.users.get(name, ()):
            node = view.nodes[index]
            far = seen[name] + (node.op not in (DEQUANTIZE, QUANTIZE))
            for output in node.outputs:
                if not output or output in seen or far > height:
                    continue
                seen[output] = far
                queue.append(output)
                if far:
                    yield output
