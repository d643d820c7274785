"""A model from a rule's variant: the pattern itself, one option of every choice, so that what is drawn is what the rule
claims to take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from fusion_engine.language.operators import most_inputs, operators
from fusion_engine.language.types import (
    Absent,
    Alternatives,
    Anything,
    Capture,
    Literal,
    Named,
    OpPattern,
    Pattern,
    Rearrange,
    Rule,
    Variant,
    With,
)
from gap_fuse.proof.attributes import draw_attributes
from gap_fuse.proof.captures import ANY_DTYPES, INTEGERS, capture, draw_values, dtype_of, tensor
from gap_fuse.proof.choices import Choices
from gap_fuse.proof.draft import Draft, NotDrawable
from gap_fuse.proof.operands import RECURRENT, SCALARS, index_limits, settings
from gap_fuse.proof.rearranging import draw_rearranged
from gap_fuse.proof.regions import draw_region
from gap_fuse.proof.sizes import broadcastable, draw_sizes


def draw_variant(
    rule: Rule,
    variant: Variant,
    classes: Mapping[str, tuple[str, ...]],
    choices: Choices,
    dtype: str | None = None,
) -> Draft:
    """One float model of the variant; captures of any type are of `dtype`, or of a drawn one. Raises NotDrawable."""
    draft = Draft(rule, classes, choices)
    if any(t.dtype == "any" for t in rule.given.values()):
        draft.dtype = dtype or choices.pick(ANY_DTYPES, "dtype")
    draft.integer = choices.pick(INTEGERS, "integer") if _has_integer_data(rule) else "int64"
    draw_sizes(draft)
    if variant.region is not None:
        draft.results = [draw_region(draft, variant)]
        return draft
    for pattern in (variant.pattern, *variant.extra):
        made = _build(draft, pattern)
        if made is None:
            raise NotDrawable("the pattern's root is absent", always=True)
        draft.results.append(made)
    if not draft.nodes:
        raise NotDrawable("the pattern holds no operator", always=True)
    return draft


def _has_integer_data(rule: Rule) -> bool:
    return any(t.dtype == "int" and not t.const for t in rule.given.values())


def _build(draft: Draft, p: Pattern) -> str | None:
    """The tensor that a pattern's value is (None: absent), with the nodes that make it."""
    match p:
        case Capture(name=name):
            return draft.names[name] if name in draft.names else capture(draft, name)
        case Anything():
            return tensor(draft, draft.fresh("any"), None)
        case Absent():
            return None
        case Literal(value=value):
            return draft.constant(np.asarray(value, np.float32))
        case Named(name=name, pattern=inner):
            if name not in draft.names:
                draft.names[name] = _build(draft, inner)
            return draft.names[name]
        case With(pattern=inner, bindings=bindings):
            made = _build(draft, inner)
            for name, _ in bindings:
                draft.names.setdefault(name, None)
            return made
        case Alternatives():
            return _build(draft, _option(draft, p))
        case OpPattern():
            return _node(draft, p)
        case Rearrange(operand=inner, text=text):
            below = _build(draft, inner)
            if below is None:
                raise NotDrawable("rearrange of an absent value", always=True)
            return draw_rearranged(draft, below, text)
    raise NotDrawable(f"{type(p).__name__} is not drawn", always=True)


def _option(draft: Draft, p: Alternatives) -> Pattern:
    """One alternative. An optional capture that was bound before is what it was."""
    for option in p.options:
        if isinstance(option, Capture) and option.name in draft.names:
            return option if draft.names[option.name] is not None else Absent(p.span)
    at = draft.choices.below(len(p.options), p.span)
    draft.used.append((p.span, at))
    chosen = p.options[at]
    if isinstance(chosen, Absent):
        for option in p.options:
            if isinstance(option, Capture):
                draft.names[option.name] = None
    return chosen


# ---- nodes ----


def _node(draft: Draft, p: OpPattern) -> str:
    op = _operator(draft, p)
    inputs: list[str | None] = []
    attrs: dict[str, object] | None = None
    if p.rest is not None:
        attrs = draw_attributes(draft, op, p.attrs, draft.base)
    most = most_inputs(operators()[op])
    for i, q in enumerate(p.inputs[:most]):
        inputs.append(_operand(draft, op, i, q, p, inputs, attrs or {}))
        if attrs is None:
            attrs = draw_attributes(draft, op, p.attrs, draft.shape(inputs[0]) if inputs[0] else draft.base)
    if p.rest is not None:
        inputs += _rest(draft, op, p.rest, attrs or {})
    if p.commutative and draft.choices.chance():
        inputs.reverse()
    while inputs and inputs[-1] is None:
        inputs.pop()
    if op in RECURRENT and len(inputs) > 2 and inputs[2]:
        attrs = {**(attrs or {}), "hidden_size": draft.shape(inputs[2])[-1]}
    return _made(draft, op, inputs, _spelling(draft, op, p, attrs or {}), p.output)


def _operator(draft: Draft, p: OpPattern) -> str:
    if p.op is not None:
        if p.op not in operators():
            raise NotDrawable(f"the operator {p.op} is not of ONNX itself: only the rule's own tests prove it", True)
        return p.op
    if p.op_class is not None:
        members = draft.classes[p.op_class]
        at = draft.choices.below(len(members), p.span)
        draft.used.append((p.span, at))
        return members[at]
    raise NotDrawable(f"the function {p.callee} has no body here: only the rule's own tests prove it", True)


def _made(draft: Draft, op: str, inputs: list[str | None], attrs: Mapping[str, Any], output: int) -> str:
    if op != "Split":
        return draft.node(op, inputs, attrs, output)
    sizes = draft.constants.get(inputs[1] or "") if len(inputs) > 1 else None
    parts = output + 1 if sizes is None else len(sizes)
    if parts <= output:
        raise NotDrawable("the split has fewer parts")
    made = [draft.fresh(f"part{i}") for i in range(parts)]
    draft.nodes.append(onnx.helper.make_node(op, [i or "" for i in inputs], made, **attrs))
    return made[output]


def _spelling(draft: Draft, op: str, p: OpPattern, attrs: dict[str, object]) -> dict[str, object]:
    """A literal that is the schema's default is left out now and then."""
    defaults = operators()[op].attributes
    kept: dict[str, object] = {}
    for name, value in attrs.items():
        default = defaults[name].default_value
        literal = any(a.name == name and a.capture is None for a in p.attrs)
        plain = onnx.helper.get_attribute_value(default) if default.type else None
        plain = plain.decode() if isinstance(plain, bytes) else plain
        if not (literal and plain == value and draft.choices.chance((op, name))):
            kept[name] = value
    return kept


def _operand(
    draft: Draft,
    op: str,
    i: int,
    q: Pattern,
    p: OpPattern,
    inputs: list[str | None],
    attrs: Mapping[str, object],
) -> str | None:
    """Optional inputs with a meaning are there or not; bounds are ordered; what is no data is drawn to be legal."""
    if i in dict(p.defaults) and isinstance(q, Capture):
        return _bound(draft, q, dict(p.defaults)[i])
    if isinstance(q, Alternatives):
        return _operand(draft, op, i, _option(draft, q), p, inputs, attrs)
    if isinstance(q, Literal):
        return draft.constant(_literal(draft, op, i, q))
    if isinstance(q, Anything) or (isinstance(q, Capture) and q.name not in draft.names):
        return _drawn_operand(draft, op, i, q, inputs, attrs)
    return _build(draft, q)


def _drawn_operand(
    draft: Draft,
    op: str,
    i: int,
    q: Anything | Capture,
    inputs: list[str | None],
    attrs: Mapping[str, object],
) -> str | None:
    given = draft.rule.given.get(q.name) if isinstance(q, Capture) else None
    abstract = given is None or given.dtype in ("real", "any", "int")
    draw = settings(draft, op, i, inputs, None if given is None or abstract else given.dtype)
    if (op, i) in SCALARS and isinstance(q, Capture) and (given is None or given.dims is None):
        draft.scalars.add(q.name)
    if draw is None or (given is not None and given.low is not None):  # the rule's own range is as good
        made = _build(draft, q)
        axis = attrs.get("axis", 0)
        limits = index_limits(draft, op, inputs, axis if isinstance(axis, int) else 0) if i == 1 else None
        if limits is not None and made is not None:
            draft.limits[made] = limits
            if made in draft.constants:
                old = draft.constants[made]
                draft.constants[made] = draw_values(draft.choices.values, old.dtype, old.shape, limits)
        return made
    value = draw()
    name = None if value is None else draft.constant(value, q.name if isinstance(q, Capture) else "any")
    if isinstance(q, Capture):
        draft.names[q.name] = name
    return name


def _literal(draft: Draft, op: str, i: int, q: Literal) -> np.ndarray:
    """In an element type of the operand; a scalar with rank 0 or, where that is legal and lengthens nothing, as [1]."""
    types = _types(op, i)
    dtype = next((d for t, d in (("float", "float32"), ("int64", "int64")) if f"tensor({t})" in types), "bool")
    value = np.asarray(q.value, dtype)
    free = value.ndim == 0 and dtype == "float32" and (op, i) not in SCALARS
    return value.reshape(1) if free and draft.base and draft.choices.chance() else value


def _types(op: str, i: int) -> frozenset[str]:
    formal = operators()[op].inputs
    return frozenset(formal[min(i, len(formal) - 1)].types)


def _bound(draft: Draft, q: Capture, absent: float) -> str | None:
    draft.names[q.name] = None
    there = draft.choices.below(2, ("bound", q.span))
    if not there:
        return None
    sign = -1.0 if absent < 0 else 1.0
    draft.names[q.name] = draft.constant(np.asarray(sign * draft.choices.pick((0.5, 0.25, 1.0)), np.float32))
    return draft.names[q.name]


def _rest(draft: Draft, op: str, name: str, attrs: Mapping[str, object]) -> list[str | None]:
    dtype = dtype_of(draft, draft.rule.given.get(name))
    parts: list[str | None] = []
    for i in range(draft.choices.between(2, 4)):
        shape = _part(draft, attrs) if op == "Concat" else broadcastable(draft)
        draft.inputs[f"{name}{i}"] = (dtype, shape)
        parts.append(f"{name}{i}")
    return parts


def _part(draft: Draft, attrs: Mapping[str, object]) -> tuple[int, ...]:
    axis = attrs.get("axis")
    if not isinstance(axis, int):
        raise NotDrawable("a Concat without axis", always=True)
    shape = list(draft.base)
    shape[axis] = draft.choices.between(1, 4)
    return tuple(shape)
