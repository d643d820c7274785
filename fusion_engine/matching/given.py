"""The types that a rule gives its captures: element type and constness at once, shapes when all are bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fusion_engine.expr import Apply, Expr, Name, Num, names, parse_expr
from fusion_engine.language.captures import elements
from fusion_engine.language.types import CaptureType
from fusion_engine.matching.facts import Facts, Virtual
from fusion_engine.matching.state import State


@dataclass(frozen=True, slots=True)
class Dims:
    """The dims of one capture: an Expr each, except the group (at `group`, None where there is none)."""

    name: str
    dims: tuple[Expr | str, ...]
    group: int | None


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why the shapes do not fit together, and the capture at which that showed."""

    name: str
    reason: str


def compile_check(name: str, given: CaptureType) -> Callable[[State, object], str | None]:
    """What is known when a capture is bound: constness, element type, rank. Gives the reason against, or None."""
    family = elements(given.dtype)
    dims = None if given.dims is None else compile_dims(name, given.dims)
    const, kind = given.const, given.dtype

    def check(st: State, value: object) -> str | None:
        if not isinstance(value, (str, Virtual)):
            return None
        facts = st.facts
        if const and not facts.is_const(value):
            return f"{name} is not constant"
        dtype = facts.dtype(value)
        if family is not None and dtype not in family:
            return f"{name} is {dtype or 'of unknown type'}, not {kind}"
        return None if dims is None else _rank_misfit(dims, facts, value)

    return check


def _rank_misfit(dims: Dims, facts: Facts, value: str | Virtual) -> str | None:
    shape = facts.shape(value)
    if shape is None:
        return f"shape of {dims.name} unknown"
    fixed = len(dims.dims) - (dims.group is not None)
    if len(shape) < fixed or (dims.group is None and len(shape) != fixed):
        return f"{dims.name} has rank {len(shape)}, not {fixed}{' or more' if dims.group is not None else ''}"
    return None


def compile_dims(name: str, dims: tuple[str, ...]) -> Dims:
    """Texts into expressions; `C / group` divides exactly."""
    read = tuple(d[1:] if d.startswith("*") else parse_expr(d) for d in dims)
    groups = [i for i, d in enumerate(dims) if d.startswith("*")]
    return Dims(name, read, groups[0] if groups else None)


def solve_dims(
    typed: Iterable[tuple[Dims, tuple[int | str | None, ...]]], known: Mapping[str, Any]
) -> dict[str, Any] | Misfit:
    """Size symbols (ints, groups as tuples) from the shapes of the captures, or why they do not fit together.

    `known` are integer attributes that dims may read.
    """
    env: dict[str, Any] = {}
    waiting: list[tuple[str, Expr, int]] = []
    for dims, shape in typed:
        reason = _pair(dims, shape, env, waiting)
        if reason is not None:
            return Misfit(dims.name, reason)
    while waiting:
        left = []
        for item in waiting:
            reason = _solve_dim(*item, env, known)
            if reason is None:
                left.append(item)
            elif reason:
                return Misfit(item[0], reason)
        if len(left) == len(waiting):
            return Misfit(left[0][0], f"the sizes of {left[0][0]} cannot be solved")
        waiting = left
    return env


def _pair(
    dims: Dims, shape: tuple[int | str | None, ...], env: dict[str, Any], waiting: list[tuple[str, Expr, int]]
) -> str | None:
    """Each dim with its extent; plain symbols are bound at once."""
    extents = [d for d in shape if isinstance(d, int)]
    if len(extents) != len(shape):
        return f"shape of {dims.name} unknown"
    at, spare = 0, len(extents) - len(dims.dims) + 1
    for dim in dims.dims:
        if isinstance(dim, str):
            part = tuple(extents[at : at + spare])
            at += spare
            if env.setdefault(dim, part) != part:
                return f"*{dim} is {list(env[dim])} elsewhere, but {list(part)} in {dims.name}"
            continue
        extent = extents[at]
        at += 1
        if isinstance(dim, Name):
            if env.setdefault(dim.name, extent) != extent:
                return f"{dim.name} is {env[dim.name]} elsewhere, but {extent} in {dims.name}"
        elif isinstance(dim, Num):
            if dim.value != extent:
                return f"{dims.name} has {extent} where {dim.value} is needed"
        else:
            waiting.append((dims.name, dim, extent))
    return None


def _solve_dim(name: str, dim: Expr, extent: int, env: dict[str, Any], known: Mapping[str, Any]) -> str | None:
    """ "" where the dim holds (binding its one unknown), None where it must wait, else the reason against."""
    scope = {**known, **env}
    unknown = sorted(n for n in names(dim) if n not in scope)
    if len(unknown) > 1:
        return None
    if not unknown:
        value = _exact(dim, scope)
        return "" if value == extent else f"{name} has {extent} where {value} is needed"
    solved = _linear(dim, unknown[0], extent, scope)
    if solved is None:
        return f"{name} has {extent}, for which no {unknown[0]} fits"
    env[unknown[0]] = solved
    return ""


def _linear(dim: Expr, name: str, extent: int, scope: Mapping[str, Any]) -> int | None:
    """The whole number that `name` must be, dims being linear in it."""
    at0, at1, at2 = (_exact(dim, {**scope, name: v}) for v in (0, 1, 2))
    if at0 is None or at1 is None or at2 is None or at1 == at0 or at2 - at1 != at1 - at0:
        return None
    value = (extent - at0) / (at1 - at0)
    return int(value) if value.denominator == 1 and value >= 0 else None


def _exact(dim: Expr, scope: Mapping[str, Any]) -> Fraction | None:
    """Rational arithmetic, so that `C / group` equals an extent only where it divides."""
    match dim:
        case Num(value):
            return Fraction(value)
        case Name(name):
            value = scope[name]
            return Fraction(value) if isinstance(value, int) else None
        case Apply(fn, (a, b)):
            x, y = _exact(a, scope), _exact(b, scope)
            return None if x is None or y is None else _operate(fn, x, y)
    return None


def _operate(fn: str, x: Fraction, y: Fraction) -> Fraction | None:
    match fn:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case "/":
            return x / y if y else None
        case "//":
            return Fraction(x // y) if y else None
        case "%":
            return Fraction(x % y) if y else None
    return None
