"""What a failed attempt is told in: values as a reader of the model knows them, and what could change."""

from __future__ import annotations

from collections.abc import Mapping

from fusion_engine.covering.types import Cause
from fusion_engine.language.printing import capture_type_text
from fusion_engine.language.types import Capture, CaptureType, Literal, Named
from fusion_engine.matching.facts import Known, Virtual
from fusion_engine.matching.state import State


def absence(p: Capture | Named) -> Cause:
    change = f"write `{p.name} | None`, typed `| none` in given, if the kernel can do without"
    return Cause(f"{p.name} is absent", "no input", "a value", change, p.span)


def mistyped(st: State, p: Capture | Named, value: object, reason: str, types: Mapping[str, CaptureType]) -> Cause:
    given = types[p.name]
    return Cause(reason, describe_type(st, value), capture_type_text(given), _retype(given, reason), p.span)


def _retype(given: CaptureType, reason: str) -> str:
    if reason.endswith("is not constant"):
        return "make it an initializer of the model"
    if reason.endswith("unknown"):
        return "say what the symbolic dimensions are: --dim NAME=VALUE"
    return f"line {given.span.line} of the rule types it" if given.span.line else ""


def two_values(st: State, p: Capture | Named, bound: object, value: object) -> Cause:
    first, second = describe(st, bound), describe(st, value)
    change = f"the same value in both places, or two names if `{p.name}` may be two values"
    return Cause(f"{p.name} would be two values, {first} and {second}", second, first, change, p.span)


def another_literal(p: Literal, had: str) -> Cause:
    wanted = _say(p.value)
    change = "a name in place of the number captures any value"
    return Cause(f"the pattern wants {wanted}, the graph has {had}", had, wanted, change, p.span)


def describe_type(st: State, value: object) -> str:
    """A value with its type: `Relu `r`: float32[1, 8]`."""
    words = describe(st, value)
    if not isinstance(value, (str, Virtual)):
        return words
    shape = st.facts.shape(value)
    extents = "?" if shape is None else ", ".join("?" if d is None else str(d) for d in shape)
    return f"{words}, {st.facts.dtype(value) or '?'}[{extents}]"


def describe(st: State, value: object) -> str:
    """A value as a reader of the model knows it: the operator that makes it, or a constant, or an input."""
    if value is None:
        return "no input"
    if isinstance(value, Known):
        return _say(value.value)
    name = value.stored if isinstance(value, Virtual) else value
    if not isinstance(name, str):
        return "several values"
    const = st.facts.const(value) if isinstance(value, (str, Virtual)) else None
    if const is not None:
        return f"the constant {_say(const.item())}" if const.size == 1 else f"a constant of shape {list(const.shape)}"
    node = st.facts.maker(name)
    if node is None:
        return f"the graph input `{name}`"
    origin = node.origins[0] if node.origins and node.origins[0] else name
    return f"{node.op} `{origin}`"


def _say(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(list(value) if isinstance(value, tuple) else value)


def makers(st: State, value: object) -> tuple[int, ...]:
    name = value.stored if isinstance(value, Virtual) else value
    node = st.facts.maker(name) if isinstance(name, str) else None
    return () if node is None else (node.index,)
