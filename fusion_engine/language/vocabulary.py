"""The closed vocabulary of rule expressions (`let`, `where`, `when`, emit arguments) and their evaluation over numpy.

Evaluation is three-valued: what cannot be known at compile time is an `Unknown` with its reason, never an exception.
Floating constants are computed with in float64; the kernel's signature says what they are cast to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fusion_engine import fixed_point
from fusion_engine.covering.types import ValueRef
from fusion_engine.language import quantised, tensors
from fusion_engine.language.arithmetic import OPERATORS
from fusion_engine.language.types import EApply, EList, ELiteral, EName, Expression
from fusion_engine.language.values import (
    Binding,
    Environment,
    NotKnownError,
    Unknown,
    Value,
    array_of,
    as_attribute,
    as_condition,
    as_operand,
    elements_of,
    integer_of,
    integers_of,
    item,
    numeric,
    scalar_of,
    simple,
    truth_of,
)

__all__ = [
    "FUNCTIONS",
    "OPERATORS",
    "Binding",
    "Environment",
    "Function",
    "NotKnownError",
    "Unknown",
    "Value",
    "as_attribute",
    "as_condition",
    "as_operand",
    "evaluate_expression",
]


@dataclass(frozen=True, slots=True)
class Function:
    """One word of the vocabulary: how it is written, and a sentence about it. `most` None: any number of arguments."""

    call: Callable[..., Value]
    usage: str
    doc: str
    least: int = 1
    most: int | None = 1
    keywords: bool = False


def evaluate_expression(expr: Expression, env: Environment) -> Value:
    """The value of `expr` where `env` binds its names, or `Unknown` with the reason.

    A bare name of a non-constant tensor gives its Binding; `stored(x)` of one gives a `ValueRef` to the integers.
    """
    try:
        if not isinstance(expr, EApply):  # entering errstate takes longer than a name
            return _evaluate(expr, env)
        with np.errstate(all="ignore"):
            return _evaluate(expr, env)
    except NotKnownError as e:
        return Unknown(e.reason)
    except (ArithmeticError, ValueError, IndexError, TypeError) as e:
        return Unknown(f"not computable: {e}")


def _evaluate(expr: Expression, env: Environment) -> Value:
    match expr:
        case EName():
            return _lookup(expr.name, env)
        case EApply():
            lazily = LAZY.get(expr.fn)
            return lazily(expr.args, env) if lazily is not None else _apply(expr.fn, expr.args, env)
        case ELiteral():
            return expr.value
        case EList():
            return tuple(item(_evaluate(i, env)) for i in expr.items)


def _lookup(name: str, env: Environment) -> Value:
    if name not in env:
        raise NotKnownError(f"`{name}` is not bound")
    value = env[name]
    if isinstance(value, Unknown):
        raise NotKnownError(value.reason)
    return value


def _apply(fn: str, args: tuple[Expression, ...], env: Environment) -> Value:
    operator = OPERATORS.get(fn)
    if operator is not None:
        return operator(*[_evaluate(a, env) for a in args])
    word = FUNCTIONS[fn]
    if not word.keywords:
        return word.call(*[_evaluate(a, env) for a in args])
    words = {_keyword(a): _evaluate(a.args[1], env) for a in args if isinstance(a, EApply) and a.fn == "="}
    plain = [_evaluate(a, env) for a in args if not (isinstance(a, EApply) and a.fn == "=")]
    return word.call(*plain, **words)


def _keyword(arg: EApply) -> str:
    name = arg.args[0]
    assert isinstance(name, ELiteral)
    return str(name.value)


def _junction(every: bool, args: tuple[Expression, ...], env: Environment) -> bool:
    """Three-valued `and`/`or`: one decisive operand is enough, however unknown the others."""
    reason: str | None = None
    for arg in args:
        try:
            if truth_of(_evaluate(arg, env)) != every:
                return not every
        except NotKnownError as e:
            reason = reason or e.reason
    if reason is not None:
        raise NotKnownError(reason)
    return every


def _ifelse(args: tuple[Expression, ...], env: Environment) -> Value:
    test, then, other = args
    return _evaluate(then if truth_of(_evaluate(test, env)) else other, env)


def _given(args: tuple[Expression, ...], env: Environment) -> Value:
    value, default = args
    found = _evaluate(value, env)
    return _evaluate(default, env) if found is None else found


# What does not read all of its arguments.
LAZY: Mapping[str, Callable[[tuple[Expression, ...], Environment], Value]] = {
    "and": lambda args, env: _junction(True, args, env),
    "or": lambda args, env: _junction(False, args, env),
    "ifelse": _ifelse,
    "given": _given,
}


def _round(value: Value) -> Value:
    return simple(np.rint(array_of(value).astype(np.float64)))


def _is_const(value: Value) -> bool:
    return not isinstance(value, (Binding, ValueRef)) or (isinstance(value, Binding) and value.const is not None)


FUNCTIONS: Mapping[str, Function] = {
    "sqrt": Function(numeric(np.sqrt), "sqrt(v)", "Square root, elementwise."),
    "exp": Function(numeric(np.exp), "exp(v)", "e to the power v, elementwise."),
    "log": Function(numeric(np.log), "log(v)", "Natural logarithm, elementwise."),
    "abs": Function(numeric(np.abs), "abs(v)", "Absolute value, elementwise."),
    "floor": Function(numeric(np.floor), "floor(v)", "Next whole number below, elementwise."),
    "round": Function(_round, "round(v)", "Nearest whole number, halves to even, elementwise."),
    "isinf": Function(numeric(np.isinf), "isinf(v)", "Whether infinite, elementwise."),
    "clip": Function(
        numeric(lambda v, lo, hi: np.minimum(np.maximum(v, lo), hi)), "clip(v, lo, hi)", "v within [lo, hi].", 3, 3
    ),
    "min": Function(
        tensors.reduced(np.min, np.minimum),
        "min(v) or min(a, b, ...)",
        "The least element, or elementwise.",
        1,
        None,
    ),
    "max": Function(
        tensors.reduced(np.max, np.maximum),
        "max(v) or max(a, b, ...)",
        "The greatest element, or elementwise.",
        1,
        None,
    ),
    "sum": Function(numeric(lambda v: v.sum() if v.size else 0), "sum(v)", "The sum of all elements."),
    "product": Function(numeric(lambda v: v.prod() if v.size else 1), "product(v)", "The product of all elements."),
    "range": Function(lambda n: np.arange(integer_of(n)), "range(n)", "0, 1, ..., n - 1."),
    "all": Function(lambda v: bool(np.all(array_of(v))), "all(v)", "Whether every element is true."),
    "any": Function(lambda v: bool(np.any(array_of(v))), "any(v)", "Whether some element is true."),
    "number": Function(scalar_of, "number(v)", "The one element of v, whatever its shape."),
    "given": Function(
        lambda v, d: d if v is None else v, "given(v, default)", "v, or the default where v is absent.", 2, 2
    ),
    "present": Function(lambda v: v is not None, "present(v)", "Whether an optional capture or attribute is there."),
    "constant": Function(_is_const, "constant(v)", "Whether v is known at compile time."),
    "dtype": Function(tensors.dtype_of, "dtype(x)", "numpy's name of the element type."),
    "shape": Function(tensors.shape_of, "shape(x)", "The extents, as a list."),
    "rank": Function(tensors.rank_of, "rank(x)", "The number of axes."),
    "dim": Function(tensors.dim_of, "dim(x, i)", "The extent of axis i; negative i counts from the end.", 2, 2),
    "size": Function(lambda v: tensors.product_of(tensors.shape_of(v)), "size(x)", "The number of elements."),
    "length": Function(tensors.length_of, "length(v)", "The number of entries of a list."),
    "broadcasts": Function(
        tensors.broadcasts, "broadcasts(a, b)", "Whether b broadcasts to the shape of a without enlarging it.", 2, 2
    ),
    "reshape": Function(
        lambda v, s: elements_of(v).reshape(integers_of(s)),
        "reshape(v, shape)",
        "The same elements in another shape; -1 is what is left.",
        2,
        2,
    ),
    "transpose": Function(
        lambda v, p: np.transpose(elements_of(v), integers_of(p)),
        "transpose(v, perm)",
        "Axes permuted, as ONNX Transpose.",
        2,
        2,
    ),
    "concat": Function(
        tensors.concat, "concat(a, b, ...)", "Lists, or tensors along the first axis, one after the other.", 1, None
    ),
    "take": Function(tensors.take, "take(v, indices, axis)", "The elements at the indices along an axis (0).", 2, 3),
    "place": Function(tensors.place, "place(v, at, entries)", "The list v with the entries at these positions.", 3, 3),
    "exchange": Function(
        tensors.exchange, "exchange(rank, i, j)", "The permutation that exchanges axes i and j.", 3, 3
    ),
    "axes_last": Function(tensors.axes_last, "axes_last(rank, axes)", "The permutation that puts axes last.", 2, 2),
    "lower": Function(tensors.lower, "lower(v)", "Text in lower case."),
    "tree": Function(tensors.tree, 'tree("Op", "x0", a)', "A call in the text of an elementwise tree.", 1, None),
    "tree_over": Function(tensors.tree_over, 'tree_over("Op", xs)', "A call over a variadic capture.", 2, 2),
    "along": Function(
        tensors.along,
        "along(v, axis, rank)",
        "[n] shaped to run along `axis` of something with `rank` axes (4); a scalar stays.",
        2,
        3,
    ),
    "along_inputs": Function(
        tensors.along_inputs,
        "along_inputs(v, w, group)",
        "[C] shaped to multiply convolution weights w, channel by channel of the input.",
        3,
        3,
    ),
    "row_sums": Function(tensors.row_sums, "row_sums(v)", "The sums over all axes but the first."),
    "repeat": Function(
        tensors.repeat,
        "repeat(v, n)",
        "n values: v where it has n, else its one value n times.",
        2,
        2,
    ),
    "cast": Function(tensors.cast, "cast(v, dtype)", "Another element type, numpy's name as text.", 2, 2),
    "zeros": Function(
        lambda s: np.zeros(integers_of(s)), "zeros(shape)", "Zeros (float64; the kernel's type in the end)."
    ),
    "ones": Function(lambda s: np.ones(integers_of(s)), "ones(shape)", "Ones."),
    "scale": Function(
        quantised.scale_of,
        "scale(x)",
        "What one stored step is worth: one number, or one per index of the axis.",
    ),
    "zero": Function(quantised.zero_of, "zero(x)", "The stored integer that means 0."),
    "stored": Function(
        quantised.stored_of,
        "stored(x) or stored(b, scale)",
        "The integers behind x; with a scale, the constant b as int32 at that scale.",
        1,
        2,
    ),
    "quantised": Function(
        quantised.steps_of, "quantised(v, y)", "v as stored integer of y, halves to even, saturated to int8.", 2, 2
    ),
    "multiplier": Function(
        quantised.fixed_part(fixed_point.multiplier),
        "multiplier(f)",
        "The 31-bit integer of the real factor f = multiplier / 2**shift.",
    ),
    "shift": Function(quantised.fixed_part(fixed_point.shift), "shift(f)", "The right shift beside multiplier(f)."),
    "table_i8": Function(
        quantised.table_i8,
        'table_i8("Op", x, y, alpha=a)',
        "int8[256]: the unary operator between the quantisations of x and y.",
        3,
        3,
        True,
    ),
    "same_as": Function(quantised.same_as, "same_as(a, b)", "Whether two captures have the same quantisation.", 2, 2),
}
