"""Unifies a kernel's signature with concrete shapes: every size, the output shapes, the attributes filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fusion_engine.diagnostics import counted
from fusion_engine.expr import Expr, Name, evaluate, names
from fusion_engine.graph import CallAttr
from fusion_engine.kernels.descriptor import AttrType, Kernel, OperandType

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a signature's names stand for in one call.

    `sizes` maps symbols to ints and groups (without the star) to tuples; what differs between the parts of a variadic
    operand is a tuple of them, in order. `shapes`/`dtypes` are those of the outputs; `attrs` has every attribute,
    defaults filled in; `present` says of every optional operand whether it is given (1) or absent (0).
    """

    sizes: Mapping[str, Any]
    shapes: Mapping[str, Shape]
    dtypes: Mapping[str, str]
    attrs: Mapping[str, CallAttr]
    present: Mapping[str, int]

    @property
    def environment(self) -> dict[str, Any]:
        """Sizes, attributes and which optional operands are there, for expressions."""
        return {**self.sizes, **self.attrs, **self.present}


class MisfitError(ValueError):
    """Why a signature does not fit; becomes the returned reason."""


def solve_sizes(
    kernel: Kernel, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], attrs: Mapping[str, CallAttr]
) -> Sizes | str:
    """Fit `shapes` and `dtypes` of the operands and `attrs` to the signature.

    Variadic operands are named x0, x1, ...; absent optional ones left out; outputs may be given where they are known.
    Returns the sizes, or one sentence that says why they do not fit."""
    try:
        return _solve(kernel, shapes, dtypes, attrs)
    except MisfitError as e:
        return str(e)


def _solve(
    kernel: Kernel, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], attrs: Mapping[str, CallAttr]
) -> Sizes:
    filled = fill_attrs(kernel, attrs)
    env: dict[str, Any] = {}
    variables: dict[str, str] = {}
    for operand in kernel.inputs:
        names_of = _instances(operand, shapes)
        for name in names_of:
            _unify_dtype(kernel, operand, dtypes.get(name), variables)
        if operand.variadic:
            _unify_variadic(operand, [shapes[n] for n in names_of], filled, env)
        elif names_of:
            _merge(operand.name, env, _unify(operand, shapes[operand.name], filled))
    _unify_given_outputs(kernel, shapes, filled, env)
    _evaluate_sizes(kernel, filled, env)
    _check_where(kernel, filled, env)
    results = {o.name: _shape_of(o, env, shapes) for o in kernel.outputs}
    for o in kernel.outputs:
        _unify_dtype(kernel, o, dtypes.get(o.name), variables)
    result_dtypes = {o.name: variables.get(o.dtype, o.dtype) for o in kernel.outputs}
    present = {o.name: int(o.name in shapes) for o in kernel.inputs if o.optional}
    return Sizes(env, results, result_dtypes, filled, present)


# ---- attributes and element types ----


def fill_attrs(kernel: Kernel, attrs: Mapping[str, CallAttr]) -> dict[str, CallAttr]:
    """Every attribute of the signature, defaults filled in. Raises MisfitError: unknown, missing, of another length."""
    known = {a.name: a for a in kernel.attrs}
    for name in attrs:
        if name not in known:
            raise MisfitError(f"the kernel {kernel.name} has no attribute {name}")
    return {name: _attr(kernel, a, attrs.get(name)) for name, a in known.items()}


def _attr(kernel: Kernel, a: AttrType, value: CallAttr | None) -> CallAttr:
    if value is None and a.required:
        raise MisfitError(f"the attribute {a.name} of {kernel.name} has no value")
    if value is None:
        assert a.default is not None
        return a.default
    if a.dtype == "str":
        return str(value)
    is_array = not isinstance(value, (int, float, str)) and not _is_number(value)
    if is_array != (a.length is not None):
        raise MisfitError(
            f"the attribute {a.name} of {kernel.name} must be {'a list' if a.length is not None else 'one number'}"
        )
    cast = float if a.dtype.startswith("float") else int
    if not is_array:
        return cast(value)  # type: ignore[arg-type]
    items = tuple(cast(v) for v in value)  # type: ignore[union-attr]
    if a.length not in (None, -1) and len(items) != a.length:
        raise MisfitError(
            f"the attribute {a.name} of {kernel.name} has {counted(len(items), 'element')}, not {a.length}"
        )
    return items


def _is_number(value: object) -> bool:
    return hasattr(value, "shape") and getattr(value, "shape", None) == ()


def _unify_dtype(kernel: Kernel, o: OperandType, dtype: str | None, variables: dict[str, str]) -> None:
    if dtype is None:
        return
    options = kernel.dtypes.get(o.dtype)
    if options is None:
        if dtype != o.dtype:
            raise MisfitError(f"{kernel.name} takes {o.name} as {o.dtype}, not {dtype}")
        return
    if dtype not in options:
        raise MisfitError(f"{kernel.name} takes {o.name} as {' or '.join(options)}, not {dtype}")
    if variables.setdefault(o.dtype, dtype) != dtype:
        raise MisfitError(f"{o.name} of {kernel.name} is {dtype}, another operand of that type {variables[o.dtype]}")


# ---- shapes ----


def _instances(o: OperandType, shapes: Mapping[str, Shape]) -> list[str]:
    if not o.variadic:
        if o.name not in shapes and not o.optional:
            raise MisfitError(f"the operand {o.name} is missing")
        return [o.name] if o.name in shapes else []
    result: list[str] = []
    while f"{o.name}{len(result)}" in shapes:
        result.append(f"{o.name}{len(result)}")
    if not result:
        raise MisfitError(f"the variadic operand {o.name} has no part")
    return result


def _unify(o: OperandType, shape: Shape, attrs: Mapping[str, CallAttr]) -> dict[str, Any]:
    """Symbols of one operand bound to one shape. With two groups, the attribute `axis` says how long the first is."""
    groups = [d for d in o.dims if d.startswith("*")]
    spare = len(shape) - (len(o.dims) - len(groups))
    if spare < 0 or (not groups and spare):
        raise MisfitError(f"{o.name} has rank {len(shape)}, the signature [{', '.join(o.dims)}]")
    lengths = _group_lengths(o, groups, spare, attrs)
    bound: dict[str, Any] = {}
    position = 0
    for d in o.dims:
        length = lengths.pop(0) if d.startswith("*") else 1
        extent: Any = tuple(shape[position : position + length]) if d.startswith("*") else shape[position]
        position += length
        if d.isdigit():
            if extent != int(d):
                raise MisfitError(f"{o.name} has {extent} where the signature has {d}")
            continue
        _merge(o.name, bound, {d.lstrip("*"): extent})
    return bound


def _group_lengths(o: OperandType, groups: list[str], spare: int, attrs: Mapping[str, CallAttr]) -> list[int]:
    if len(groups) <= 1:
        return [spare] * len(groups)
    axis = attrs.get("axis")
    if len(groups) > 2 or not isinstance(axis, int) or not 0 <= axis <= spare:
        raise MisfitError(f"the groups of {o.name} need an attribute `axis` within its rank")
    return [axis, spare - axis]


def _unify_variadic(o: OperandType, shapes: list[Shape], attrs: Mapping[str, CallAttr], env: dict[str, Any]) -> None:
    parts = [_unify(o, s, attrs) for s in shapes]
    for name in parts[0]:
        values = tuple(p[name] for p in parts)
        single = name not in {d.lstrip("*") for d in o.dims if d.startswith("*")} and len(set(values)) == 1
        shared = name in env or (single and f"*{name}" not in o.dims)
        if f"*{name}" in o.dims and len([d for d in o.dims if d.startswith("*")]) > 1:
            shared = True
        if shared and not _sums(o, name):
            for value in values:
                _merge(o.name, env, {name: value})
        else:
            env[name] = values


def _sums(o: OperandType, name: str) -> bool:
    """The dim between two groups is the axis that parts are joined along: always a tuple."""
    groups = [i for i, d in enumerate(o.dims) if d.startswith("*")]
    return len(groups) == 2 and name in o.dims[groups[0] + 1 : groups[1]]


def _merge(operand: str, env: dict[str, Any], new: Mapping[str, Any]) -> None:
    for name, value in new.items():
        if env.setdefault(name, value) != value:
            raise MisfitError(f"{name} is {env[name]} elsewhere, but {value} in {operand}")


def _unify_given_outputs(
    kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, CallAttr], env: dict[str, Any]
) -> None:
    """Sizes that are `given` come from the output's known shape."""
    given = {symbol.lstrip("*") for symbol, expr in kernel.sizes if expr == Name("given")}
    for o in kernel.outputs:
        if given and o.name in shapes:
            bound = _unify(o, shapes[o.name], attrs)
            _merge(o.name, env, {k: v for k, v in bound.items() if k in given})


def _evaluate_sizes(kernel: Kernel, attrs: Mapping[str, CallAttr], env: dict[str, Any]) -> None:
    waiting = [(s.lstrip("*"), e) for s, e in kernel.sizes if e != Name("given")]
    while waiting:
        ready = [(s, e) for s, e in waiting if names(e) <= {*env, *attrs}]
        if not ready:
            raise MisfitError(f"the size {waiting[0][0]} of {kernel.name} depends on an operand that is absent")
        for symbol, expr in ready:
            value = _value(symbol, expr, {**attrs, **env})
            if symbol in env and env[symbol] != value:
                raise MisfitError(f"{symbol} is {env[symbol]}, but must be {value}")
            env[symbol] = value
        waiting = [w for w in waiting if w not in ready]


def _value(symbol: str, expr: Expr, env: Mapping[str, Any]) -> Any:
    try:
        value = evaluate(expr, env)
    except (ValueError, ArithmeticError, IndexError, TypeError) as e:
        raise MisfitError(f"the size {symbol} cannot be computed: {e}") from e
    if isinstance(value, (tuple, list)):
        return tuple(int(v) for v in value)
    if value < 0:
        raise MisfitError(f"the size {symbol} would be {value}")
    return int(value)


def _check_where(kernel: Kernel, attrs: Mapping[str, CallAttr], env: Mapping[str, Any]) -> None:
    for text, condition in kernel.where:
        try:
            holds = bool(evaluate(condition, {**attrs, **env}))
        except (ValueError, ArithmeticError, IndexError, TypeError, KeyError) as e:
            raise MisfitError(f"`{text}` cannot be decided: {e}") from e
        if not holds:
            raise MisfitError(f"{kernel.name} needs {text}")


def _shape_of(o: OperandType, env: Mapping[str, Any], shapes: Mapping[str, Shape]) -> Shape:
    result: list[int] = []
    for d in o.dims:
        if d.isdigit():
            result.append(int(d))
            continue
        if d.lstrip("*") not in env:
            raise MisfitError(f"the size {d} of {o.name} is not known")
        value = env[d.lstrip("*")]
        result.extend(value if d.startswith("*") else (value,))
    shape = tuple(result)
    if o.name in shapes and tuple(shapes[o.name]) != shape:
        raise MisfitError(f"{o.name} would have the shape {list(shape)}, not {list(shapes[o.name])}")
    return shape
