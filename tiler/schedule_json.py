"""Schedules as JSON text and back: every field by its name, index maps as text of the expression language."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import Apply, Expr, ExprError, Item, ListOf, Name, Num, parse_expr, substitute
from tiler.schedule import Schedule

FORMAT = 1
_INFIX = ("+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=")
_EXPRESSIONS = (Num, Name, Item, ListOf, Apply)


def schedule_to_json(schedule: Schedule) -> str:
    """The schedule as JSON text; equal schedules give equal text."""
    return json.dumps({"format": FORMAT, **_encode(schedule)}, indent=1) + "\n"


def schedule_from_json(text: str) -> Schedule:
    """The schedule that `schedule_to_json` wrote. Raises GapFuseError for any other text."""
    try:
        value = json.loads(text)
        if value.pop("format") != FORMAT:
            raise GapFuseError("the schedule has another format than this version reads")
        result = _decode(value, Schedule)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise GapFuseError(f"not a schedule: {e}") from e
    assert isinstance(result, Schedule)
    return result


def expr_text(expr: Expr) -> str:
    """An expression as text that `parse_expr` reads back."""
    match expr:
        case Num(value):
            return str(value)
        case Name(name):
            return name
        case Item(name, index):
            return f"{name}[{index}]"
        case ListOf(items):
            return f"[{', '.join(expr_text(i) for i in items)}]"
        case Apply(fn, (a, b)) if fn in _INFIX:
            return f"({expr_text(a)} {fn} {expr_text(b)})"
        case Apply(fn, args):
            return f"{fn}({', '.join(expr_text(a) for a in args)})"
    raise AssertionError(expr)


def _encode(value: Any) -> Any:
    if isinstance(value, _EXPRESSIONS):
        return expr_text(value)
    if is_dataclass(value):
        return {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _encode(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_encode(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value.item() if hasattr(value, "item") else value


def _decode(value: Any, kind: Any) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if kind == Expr or (origin in (Union, UnionType) and set(args) - {NoneType} == set(get_args(Expr))):
        return None if value is None else _expression(value)
    if origin in (Union, UnionType):
        return None if value is None else _decode(value, next(a for a in args if a is not NoneType))
    if is_dataclass(kind) and isinstance(kind, type):
        return _decode_fields(value, kind)
    if origin is tuple:
        parts = [args[0]] * len(value) if len(args) == 2 and args[1] is Ellipsis else args
        return tuple(_decode(v, p) for v, p in zip(value, parts, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {k: _decode(v, args[1]) for k, v in value.items()}
    if kind is object:
        return _plain(value)
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value


def _decode_fields(value: Any, kind: type) -> Any:
    hints = get_type_hints(kind)
    unknown = set(value) - set(hints)
    if unknown:
        raise ValueError(f"unknown key {sorted(unknown)[0]}")
    return kind(**{name: _decode(value[name], hint) for name, hint in hints.items()})


def _plain(value: Any) -> Any:
    """An attribute: lists are tuples, floats that JSON lacks are marked."""
    if isinstance(value, list):
        return tuple(_plain(v) for v in value)
    return float(value["float"]) if isinstance(value, dict) else value


def _expression(text: str) -> Expr:
    try:
        return substitute(parse_expr(text), {})
    except ExprError as e:
        raise ValueError(e.message) from e
