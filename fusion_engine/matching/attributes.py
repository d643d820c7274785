"""The attributes of one operator of a pattern: those it captures or wants, and those it says nothing about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import onnx.defs

from fusion_engine.covering.types import Cause
from fusion_engine.language.operators import operators
from fusion_engine.language.types import AttrPattern, OpPattern
from fusion_engine.matching.facts import Known
from fusion_engine.matching.literals import LiteralValue, attribute_equals, plain
from fusion_engine.matching.state import State
from fusion_engine.view.types import ViewNode

# Attributes that only repeat what the operands' shapes say: a pattern need not mention them.
IMPLIED = frozenset(("kernel_shape", "hidden_size", "num_outputs"))
UNIT, NOTHING = frozenset(("strides", "dilations")), frozenset(("pads", "output_padding"))
POOLS = frozenset(("MaxPool", "AveragePool", "LpPool"))


@cache
def schema_defaults(op: str) -> tuple[tuple[str, LiteralValue], ...]:
    """Every attribute of an operator with its default, None where there is none."""
    schema = operators().get(op)
    if schema is None:
        return ()
    return tuple((name, _default(attr)) for name, attr in sorted(schema.attributes.items()))


def _default(attr: onnx.defs.OpSchema.Attribute) -> LiteralValue:
    kind = attr.default_value.type
    if not kind:
        return None
    value = onnx.helper.get_attribute_value(attr.default_value)
    found = plain(value)
    return found if isinstance(found, (int, float, str, tuple)) else None


@cache
def silent_attributes(op: str, mentioned: frozenset[str]) -> tuple[tuple[str, LiteralValue], ...]:
    """Attributes that a pattern says nothing about: these must have their schema's default."""
    skipped = mentioned | (IMPLIED - {"kernel_shape"} if op in POOLS else IMPLIED)
    return tuple((n, d) for n, d in schema_defaults(op) if n not in skipped)


def silent(node: ViewNode, mentioned: frozenset[str]) -> tuple[str, str, str] | None:
    """The attribute that the pattern leaves at its default and the node does not: its name, value and default."""
    for name, default in silent_attributes(node.op, mentioned):
        found = node.attrs.get(name)
        if found is None or found == default or _neutral(name, found):
            continue
        if not attribute_equals(found, default):
            return name, say(found), say(default)
    return None


def unmentioned(p: OpPattern, name: str, had: str, default: str) -> Cause:
    reason = f"{name} is {had}, which the pattern does not mention (the default is {default})"
    return Cause(reason, f"{name}={had}", f"{name}={default}", f"write `{name}={name}` if the kernel takes it", p.span)


def _neutral(name: str, found: object) -> bool:
    """What the standard says of a window's attributes that have no default of fixed length."""
    if not isinstance(found, tuple):
        return False
    return all(v == 1 for v in found) if name in UNIT else name in NOTHING and not any(found)


Attributes = Sequence[tuple[AttrPattern, int | None]]


def attribute_slots(p: OpPattern, slot: Callable[[str], int]) -> Attributes:
    return tuple((a, None if a.capture is None else slot(a.capture)) for a in p.attrs)


def bind_attributes(st: State, node: ViewNode, attrs: Attributes) -> list[int] | None:
    """The slots newly bound, or None (nothing bound) where an attribute does not fit."""
    bound: list[int] = []
    for a, slot in attrs:
        found = plain(node.attrs.get(a.name))
        if slot is None:
            fits = attribute_equals(found, a.literal) or _same_axis(st, node, a, found)
        elif st.values[slot] is None:
            st.values[slot] = Known(found)
            bound.append(slot)
            continue
        else:
            fits = may_bind(st, slot, Known(found))
        if not fits:
            if st.explain:
                st.fail(_other_attribute(st, a, slot, found), node.index, near=True)
            for at in bound:
                st.values[at] = None
            return None
    return bound


def _other_attribute(st: State, a: AttrPattern, slot: int | None, found: object) -> Cause:
    bound = None if slot is None else st.values[slot]
    wanted = say(bound.value if isinstance(bound, Known) else a.literal)
    change = "a name in place of the value captures any" if slot is None else f"`{a.capture}` is bound already"
    return Cause(
        f"{a.name} is {say(found)}, not {wanted}", f"{a.name}={say(found)}", f"{a.name}={wanted}", change, a.span
    )


def may_bind(st: State, slot: int, value: Known) -> bool:
    return st.values[slot] is None or st.values[slot] == value


def _same_axis(st: State, node: ViewNode, a: AttrPattern, found: object) -> bool:
    """A negative axis of the pattern counts from the rank, where that is known."""
    if a.name not in ("axis", "axes") or not node.inputs:
        return False
    rank = st.facts.rank(node.inputs[0] or "")
    if rank is None:
        return False
    wanted = a.literal if isinstance(a.literal, tuple) else (a.literal,)
    have = found if isinstance(found, tuple) else (found,)
    if isinstance(a.literal, tuple) != isinstance(found, tuple) or len(wanted) != len(have):
        return False
    pairs = list(zip(wanted, have, strict=True))
    return all(isinstance(w, int) and isinstance(h, int) and w % rank == h % rank for w, h in pairs) if rank else False


def say(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return f"{value:.9g}"
    return "absent" if value is None else str(list(value) if isinstance(value, tuple) else value)
