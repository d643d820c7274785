"""The closed vocabulary of rule expressions (`let`, `where`, `when`, emit arguments) and their evaluation over numpy.

Evaluation is three-valued: what cannot be known at compile time is an `Unknown` with its reason, never an exception.
Floating constants are computed with in float64; the kernel's signature says what they are cast to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_engine import fixed_point
from fusion_engine.covering.types import ValueRef
from fusion_engine.graph import CallAttr, Quantisation
from fusion_engine.language.types import EApply, EList, ELiteral, EName, Expression
from fusion_engine.language.unary import UNARY
from fusion_engine.view.types import Dim


@dataclass(frozen=True, slots=True)
class Unknown:
    """The third truth value: the expression has no value, and why (`shape of x unknown`, `lo is not constant`)."""

    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A captured tensor as expressions see it.

    `value` names the real-valued view value, `shape` and `dtype` are its, `const` its value (dequantised) where
    known at compile time.
    `stored` names the integer view value behind it, `quantisation` says what those integers mean (None: not quantised),
    `stored_const` their value where known. An absent optional capture is not a Binding but None.
    """

    name: str
    value: str
    dtype: str | None = None
    shape: tuple[Dim, ...] | None = None
    const: np.ndarray | None = None
    stored: str | None = None
    stored_const: np.ndarray | None = None
    quantisation: Quantisation | None = None


Value = Any  # Binding, ValueRef, numpy array, int, float, str, bool, tuple of numbers, None (absent) or Unknown
Environment = Mapping[str, Value]


class NotKnownError(Exception):
    """Inside an evaluation only: becomes `Unknown(reason)` at its edge."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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
        with np.errstate(all="ignore"):
            return _evaluate(expr, env)
    except NotKnownError as e:
        return Unknown(e.reason)
    except (ArithmeticError, ValueError, IndexError, TypeError) as e:
        return Unknown(f"not computable: {e}")


def as_condition(value: Value) -> bool | Unknown:
    """A truth value out of what a `where` line gave; arrays of one element count as scalars."""
    if isinstance(value, Unknown):
        return value
    try:
        return _truth(value)
    except NotKnownError as e:
        return Unknown(e.reason)


def as_operand(value: Value) -> ValueRef | np.ndarray | Unknown | None | tuple[Value, ...]:
    """A kernel operand: a reference to a tensor, a constant in logical ONNX order, None (absent), or several (variadic)."""
    if isinstance(value, tuple) and any(isinstance(v, (Binding, ValueRef)) for v in value):
        return tuple(as_operand(v) for v in value)
    if value is None or isinstance(value, (Unknown, ValueRef, np.ndarray)):
        return value
    if isinstance(value, Binding):
        return value.const if value.const is not None else ValueRef(value.value)
    return np.asarray(value)


def as_attribute(value: Value) -> CallAttr | Unknown:
    """A kernel attribute out of an expression's value: a number, a string or a flat tuple of numbers."""
    if isinstance(value, (Unknown, str)):
        return value
    if value is None:
        return Unknown("the attribute is absent")
    try:
        array = _array(value)
    except NotKnownError as e:
        return Unknown(e.reason)
    if array.ndim == 0:
        return _scalar(array)
    return tuple(_scalar(v) for v in array.reshape(-1))


# ---- evaluation ----


def _evaluate(expr: Expression, env: Environment) -> Value:
    match expr:
        case ELiteral(value=value):
            return value
        case EName(name=name):
            return _lookup(name, env)
        case EList(items=items):
            return tuple(_item(_evaluate(i, env)) for i in items)
        case EApply(fn=("and" | "or") as fn, args=args):
            return _junction(fn == "and", args, env)
        case EApply(fn="ifelse", args=(test, then, other)):
            return _evaluate(then if _truth(_evaluate(test, env)) else other, env)
        case EApply(fn="given", args=(value, default)):
            found = _evaluate(value, env)
            return _evaluate(default, env) if found is None else found
        case EApply(fn=fn, args=args):
            return _apply(fn, args, env)
    raise AssertionError(expr)


def _lookup(name: str, env: Environment) -> Value:
    if name not in env:
        raise NotKnownError(f"`{name}` is not bound")
    value = env[name]
    if isinstance(value, Unknown):
        raise NotKnownError(value.reason)
    return value


def _apply(fn: str, args: tuple[Expression, ...], env: Environment) -> Value:
    words = {_keyword(a): _evaluate(a.args[1], env) for a in args if isinstance(a, EApply) and a.fn == "="}
    plain = [_evaluate(a, env) for a in args if not (isinstance(a, EApply) and a.fn == "=")]
    if fn in OPERATORS:
        return OPERATORS[fn](*plain)
    return FUNCTIONS[fn].call(*plain, **words)


def _keyword(arg: EApply) -> str:
    name = arg.args[0]
    assert isinstance(name, ELiteral)
    return str(name.value)


def _junction(every: bool, args: tuple[Expression, ...], env: Environment) -> bool:
    """Three-valued `and`/`or`: one decisive operand is enough, however unknown the others."""
    reason: str | None = None
    for arg in args:
        try:
            if _truth(_evaluate(arg, env)) != every:
                return not every
        except NotKnownError as e:
            reason = reason or e.reason
    if reason is not None:
        raise NotKnownError(reason)
    return every


def _truth(value: Value) -> bool:
    if isinstance(value, (bool, int, float, str, tuple)):
        return bool(value)
    array = _array(value)
    if array.size != 1:
        raise NotKnownError(f"a condition over {array.size} elements: wrap it in all(...) or any(...)")
    return bool(array.reshape(()))


def _array(value: Value) -> np.ndarray:
    """Numbers of a value: floats as float64, everything else as it is."""
    if value is None:
        raise NotKnownError("a value that is absent; give it a meaning with given(v, default)")
    if isinstance(value, Binding):
        if value.const is None:
            raise NotKnownError(f"{value.name} is not constant")
        value = value.const
    if isinstance(value, ValueRef):
        raise NotKnownError(f"{value.name} is not constant")
    if isinstance(value, str):
        raise NotKnownError(f"{value!r} is text, not a number")
    if isinstance(value, tuple):
        value = [_scalar(v) if isinstance(v, (Binding, ValueRef)) else v for v in value]
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" or array.dtype.name == "bfloat16" else array


def _scalar(value: Value) -> int | float:
    array = _array(value)
    if array.size != 1:
        raise NotKnownError(f"one number is needed, not {array.size}")
    single = array.reshape(())
    return float(single) if array.dtype.kind == "f" else int(single)


def _item(value: Value) -> Value:
    """An entry of a list: a number, a text, or a tensor where the list is a variadic operand."""
    return value if isinstance(value, (str, bool, Binding, ValueRef)) else _scalar(value)


def _integer(value: Value) -> int:
    number = _scalar(value)
    if number != int(number):
        raise NotKnownError(f"a whole number is needed, not {number}")
    return int(number)


def _integers(value: Value) -> tuple[int, ...]:
    return tuple(int(v) for v in np.atleast_1d(_array(value)).reshape(-1))


def _simple(result: np.ndarray | np.generic) -> Value:
    """Scalars leave as Python numbers, so that they print and compare as such; arrays stay."""
    array = np.asarray(result)
    if array.ndim:
        return array
    return array.item()


def _numeric(fn: Callable[..., Any]) -> Callable[..., Value]:
    return lambda *args: _simple(fn(*(_array(a) for a in args)))


def _equal(a: Value, b: Value) -> Value:
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a is b if a is None or b is None else a == b
    x, y = _array(a), _array(b)
    if isinstance(a, tuple) or isinstance(b, tuple):
        return x.shape == y.shape and bool(np.all(x == y))
    return _simple(x == y)


def _not_equal(a: Value, b: Value) -> Value:
    same = _equal(a, b)
    return np.logical_not(same) if isinstance(same, np.ndarray) else not same


def _index(value: Value, at: Value) -> Value:
    array = _array(value)
    if array.ndim == 0:
        raise NotKnownError("a single number has no elements")
    i = _integer(at)
    if not -array.shape[0] <= i < array.shape[0]:
        raise NotKnownError(f"there is no element {i} among {array.shape[0]}")
    return _simple(array[i])


def _section(value: Value, start: Value, stop: Value) -> Value:
    if isinstance(value, str):
        return value[slice(None if start is None else _integer(start), None if stop is None else _integer(stop))]
    array = _array(value)
    part = array[slice(None if start is None else _integer(start), None if stop is None else _integer(stop))]
    return tuple(_scalar(v) for v in part) if isinstance(value, tuple) else part


def _contains(item: Value, many: Value) -> bool:
    if not isinstance(many, tuple):
        raise NotKnownError("`in` needs a list")
    return any(_truth(_equal(item, m)) for m in many)


def _subtract(a: np.ndarray, b: np.ndarray) -> Any:
    return a - b


OPERATORS: Mapping[str, Callable[..., Value]] = {
    "+": _numeric(lambda a, b: a + b),
    "-": _numeric(_subtract),
    "*": _numeric(lambda a, b: a * b),
    "/": _numeric(lambda a, b: np.true_divide(a, b)),
    "//": _numeric(lambda a, b: np.floor_divide(a, b)),
    "%": _numeric(lambda a, b: np.mod(a, b)),
    "**": _numeric(lambda a, b: np.power(a.astype(np.float64), b)),
    "neg": _numeric(lambda a: -a),
    "==": _equal,
    "!=": _not_equal,
    "<": _numeric(lambda a, b: a < b),
    "<=": _numeric(lambda a, b: a <= b),
    ">": _numeric(lambda a, b: a > b),
    ">=": _numeric(lambda a, b: a >= b),
    "in": _contains,
    "not": lambda v: not _truth(v),
    "[]": _index,
    "[:]": _section,
}


# ---- shapes ----


def _shape(value: Value) -> tuple[int, ...]:
    if isinstance(value, Binding):
        return _known_shape(value.shape, value.name)
    return tuple(_array(value).shape)


def _known_shape(shape: tuple[Dim, ...] | None, name: str) -> tuple[int, ...]:
    known = tuple(d for d in shape or () if isinstance(d, int))
    if shape is None or len(known) != len(shape):
        raise NotKnownError(f"shape of {name} unknown")
    return known


def _rank(value: Value) -> int:
    if isinstance(value, Binding):
        if value.shape is None:
            raise NotKnownError(f"rank of {value.name} unknown")
        return len(value.shape)
    return _array(value).ndim


def _dim(value: Value, axis: Value) -> int:
    rank, i = _rank(value), _integer(axis)
    if not -rank <= i < rank:
        raise NotKnownError(f"there is no axis {i} among {rank}")
    if isinstance(value, Binding):
        extent = (value.shape or ())[i]
        if not isinstance(extent, int):
            raise NotKnownError(f"extent {i} of {value.name} unknown")
        return extent
    return int(_array(value).shape[i])


def _dtype(value: Value) -> str:
    if isinstance(value, Binding):
        if value.dtype is None:
            raise NotKnownError(f"element type of {value.name} unknown")
        return value.dtype
    return str(_array(value).dtype)


def _product(values: tuple[int, ...]) -> int:
    result = 1
    for v in values:
        result *= v
    return result


def _length(value: Value) -> int:
    if isinstance(value, (tuple, str)):
        return len(value)
    return _dim(value, 0)


def _broadcasts(a: Value, b: Value) -> bool:
    """b fits under a by broadcasting and the result is of a's shape."""
    try:
        return bool(np.broadcast_shapes(_shape(a), _shape(b)) == _shape(a))
    except ValueError:
        return False


# ---- arrays ----


def _along(value: Value, axis: Value, rank: Value = None) -> np.ndarray:
    """[n] shaped so that it runs along `axis` of something with `rank` axes (4, as a Conv weight has)."""
    array = _array(value)
    if array.ndim == 0:
        return array
    total = 4 if rank is None else _integer(rank)
    i = _integer(axis) % total
    return array.reshape([-1 if k == i else 1 for k in range(total)])


def _repeat(value: Value, count: Value) -> np.ndarray:
    array = _array(value).reshape(-1)
    n = _integer(count)
    if array.size not in (1, n):
        raise NotKnownError(f"{array.size} values cannot stand for {n}")
    return np.array(np.broadcast_to(array, (n,)))


def _concat(*values: Value) -> Value:
    if all(isinstance(v, tuple) for v in values):
        return tuple(x for v in values for x in v)
    return np.concatenate([np.atleast_1d(_array(v)) for v in values])


def _take(value: Value, indices: Value, axis: Value = 0) -> Value:
    taken = np.take(_array(value), np.asarray(_integers(indices)), axis=_integer(axis))
    return tuple(_scalar(v) for v in taken) if isinstance(value, tuple) else taken


def _place(values: Value, positions: Value, entries: Value) -> tuple[int | float, ...]:
    """A list with some of its entries replaced."""
    result = [_scalar(v) for v in np.atleast_1d(_array(values))]
    where = _integers(positions)
    for at, entry in zip(where, np.broadcast_to(_array(entries), (len(where),)), strict=True):
        result[at] = _scalar(entry)
    return tuple(result)


def _exchange(rank: Value, i: Value, j: Value) -> tuple[int, ...]:
    perm = list(range(_integer(rank)))
    a, b = _integer(i), _integer(j)
    perm[a], perm[b] = perm[b], perm[a]
    return tuple(perm)


def _axes_last(rank: Value, axes: Value) -> tuple[int, ...]:
    n = _integer(rank)
    last = tuple(a % n for a in _integers(axes))
    return (*(i for i in range(n) if i not in last), *last)


def _tree(function: Value, *args: Value) -> str:
    """Text of one call in an elementwise tree: operands are texts, numbers are written with all their digits."""
    if not isinstance(function, str):
        raise NotKnownError("tree(function, ...) needs the function's name as text")
    return f"{function.lower()}({', '.join(a if isinstance(a, str) else repr(_scalar(a)) for a in args)})"


def _tree_list(function: Value, operands: Value) -> str:
    """One call over as many operands as a variadic capture has: max(x0, x1, x2)."""
    return _tree(function, *(f"x{i}" for i in range(_length(operands))))


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise NotKnownError("lower(v) needs text")
    return value.lower()


def _cast(value: Value, dtype: Value) -> np.ndarray:
    if not isinstance(dtype, str):
        raise NotKnownError("cast(v, dtype) needs the dtype as text")
    return _array(value).astype(np.dtype(dtype))


def _reduce(fn: Callable[[np.ndarray], Any], pair: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    def reduced(*args: Value) -> Value:
        if len(args) == 1:
            return _simple(fn(_array(args[0])))
        result: Any = _array(args[0])
        for a in args[1:]:
            result = pair(result, _array(a))
        return _simple(result)

    return reduced


# ---- quantisation ----


def _quantisation(value: Value) -> Quantisation:
    if not isinstance(value, Binding):
        raise NotKnownError("scale, zero and stored need a capture or the result, not a computed value")
    if value.quantisation is None:
        raise NotKnownError(f"{value.name} is not quantised")
    return value.quantisation


def _scale(value: Value) -> Value:
    scale = _quantisation(value).scale
    return scale[0] if len(scale) == 1 else np.asarray(scale, dtype=np.float64)


def _zero(value: Value) -> Value:
    zero = _quantisation(value).zero
    return zero[0] if len(set(zero)) == 1 else np.asarray(zero, dtype=np.int64)


def _stored(value: Value, scale: Value = None) -> Value:
    """The integers of a capture; with a scale, a constant as int32 at that scale, as it is where it already is that."""
    if scale is not None:
        return _stored_at(value, np.asarray(_array(scale), dtype=np.float64))
    if isinstance(value, tuple):
        return tuple(_stored(v) for v in value)
    _quantisation(value)
    if value.stored_const is not None:
        return value.stored_const
    if value.stored is None:
        raise NotKnownError(f"{value.name} is not quantised")
    return ValueRef(value.stored)


def _stored_at(value: Value, scale: np.ndarray) -> np.ndarray:
    if isinstance(value, Binding) and value.stored_const is not None and _is_at(value, scale):
        return value.stored_const.astype(np.int32)
    steps = np.rint(_array(value).astype(np.float64) / scale)
    limit = 2**31 - 1
    if not np.all(np.abs(steps) <= limit):
        raise NotKnownError("a bias too large for int32 at scale(x) * scale(w)")
    return steps.astype(np.int32)


def _is_at(value: Binding, scale: np.ndarray) -> bool:
    q = value.quantisation
    if q is None or value.stored_const is None or any(q.zero) or value.stored_const.dtype != np.int32:
        return False
    own = np.asarray(q.scale, dtype=np.float64)
    return bool(np.all(np.abs(own - scale) <= 1e-6 * np.abs(scale)))


def _to_steps(real: np.ndarray, q: Quantisation) -> np.ndarray:
    if len(q.scale) != 1:
        raise NotKnownError("a quantisation per axis has no single step")
    steps = np.rint(real / q.scale[0]) + q.zero[0]
    return np.clip(np.where(np.isnan(steps), q.zero[0], steps), -128, 127)


def _quantised(value: Value, like: Value) -> Value:
    """`value` in steps of `like`, halves to even, saturated to int8 (an infinite bound is the end of the range)."""
    return _simple(_to_steps(_array(value).astype(np.float64), _quantisation(like)).astype(np.int64))


def _table_i8(op: Value, x: Value, y: Value, **attrs: Value) -> np.ndarray:
    """int8[256]: entry i is the result's integer where the operand's is i - 128."""
    if op not in UNARY:
        raise NotKnownError(f"no table for the operator {op}")
    qx, qy = _quantisation(x), _quantisation(y)
    if len(qx.scale) != 1:
        raise NotKnownError(f"{x.name} has a scale per axis")
    real = qx.scale[0] * (np.arange(-128, 128, dtype=np.float64) - qx.zero[0])
    words = {k: v if isinstance(v, str) else _scalar(v) for k, v in attrs.items() if v is not None}
    return _to_steps(np.asarray(UNARY[op](real, **words)), qy).astype(np.int8)


def _same_as(a: Value, b: Value) -> bool:
    return _quantisation(a) == _quantisation(b)


def _fixed(part: Callable[[Any], np.ndarray]) -> Callable[[Value], Value]:
    def split(factor: Value) -> Value:
        return _simple(part(_array(factor).astype(np.float64)))

    return split


def _round(value: Value) -> Value:
    return _simple(np.rint(_array(value).astype(np.float64)))


def _is_const(value: Value) -> bool:
    return not isinstance(value, (Binding, ValueRef)) or (isinstance(value, Binding) and value.const is not None)


FUNCTIONS: Mapping[str, Function] = {
    "sqrt": Function(_numeric(np.sqrt), "sqrt(v)", "Square root, elementwise."),
    "exp": Function(_numeric(np.exp), "exp(v)", "e to the power v, elementwise."),
    "log": Function(_numeric(np.log), "log(v)", "Natural logarithm, elementwise."),
    "abs": Function(_numeric(np.abs), "abs(v)", "Absolute value, elementwise."),
    "floor": Function(_numeric(np.floor), "floor(v)", "Next whole number below, elementwise."),
    "round": Function(_round, "round(v)", "Nearest whole number, halves to even, elementwise."),
    "isinf": Function(_numeric(np.isinf), "isinf(v)", "Whether infinite, elementwise."),
    "clip": Function(
        _numeric(lambda v, lo, hi: np.minimum(np.maximum(v, lo), hi)), "clip(v, lo, hi)", "v within [lo, hi].", 3, 3
    ),
    "min": Function(
        _reduce(np.min, np.minimum), "min(v) or min(a, b, ...)", "The least element, or the elementwise least.", 1, None
    ),
    "max": Function(
        _reduce(np.max, np.maximum),
        "max(v) or max(a, b, ...)",
        "The greatest element, or the elementwise greatest.",
        1,
        None,
    ),
    "sum": Function(_numeric(lambda v: v.sum() if v.size else 0), "sum(v)", "The sum of all elements."),
    "product": Function(_numeric(lambda v: v.prod() if v.size else 1), "product(v)", "The product of all elements."),
    "range": Function(lambda n: np.arange(_integer(n)), "range(n)", "0, 1, ..., n - 1."),
    "all": Function(lambda v: bool(np.all(_array(v))), "all(v)", "Whether every element is true."),
    "any": Function(lambda v: bool(np.any(_array(v))), "any(v)", "Whether some element is true."),
    "given": Function(
        lambda v, d: d if v is None else v, "given(v, default)", "v, or the default where v is absent.", 2, 2
    ),
    "present": Function(lambda v: v is not None, "present(v)", "Whether an optional capture or attribute is there."),
    "constant": Function(_is_const, "constant(v)", "Whether v is known at compile time."),
    "dtype": Function(_dtype, "dtype(x)", "numpy's name of the element type."),
    "shape": Function(_shape, "shape(x)", "The extents, as a list."),
    "rank": Function(_rank, "rank(x)", "The number of axes."),
    "dim": Function(_dim, "dim(x, i)", "The extent of axis i; negative i counts from the end.", 2, 2),
    "size": Function(lambda v: _product(_shape(v)), "size(x)", "The number of elements."),
    "length": Function(_length, "length(v)", "The number of entries of a list, or of elements along the first axis."),
    "broadcasts": Function(
        _broadcasts, "broadcasts(a, b)", "Whether b broadcasts to the shape of a without enlarging it.", 2, 2
    ),
    "reshape": Function(
        lambda v, s: _array(v).reshape(_integers(s)),
        "reshape(v, shape)",
        "The same elements in another shape; -1 is what is left.",
        2,
        2,
    ),
    "transpose": Function(
        lambda v, p: np.transpose(_array(v), _integers(p)),
        "transpose(v, perm)",
        "Axes permuted, as ONNX Transpose.",
        2,
        2,
    ),
    "concat": Function(
        _concat, "concat(a, b, ...)", "Lists, or tensors along the first axis, one after the other.", 1, None
    ),
    "take": Function(_take, "take(v, indices, axis)", "The elements at the indices along an axis (0).", 2, 3),
    "place": Function(_place, "place(v, at, entries)", "The list v with its entries at the positions replaced.", 3, 3),
    "exchange": Function(_exchange, "exchange(rank, i, j)", "The permutation of axes that exchanges i and j.", 3, 3),
    "axes_last": Function(_axes_last, "axes_last(rank, axes)", "The permutation that brings axes to the end.", 2, 2),
    "lower": Function(_text, "lower(v)", "Text in lower case."),
    "tree": Function(_tree, 'tree("Op", "x0", a)', "A call in the text of an elementwise tree.", 1, None),
    "tree_over": Function(_tree_list, 'tree_over("Op", xs)', "A call over all operands of a variadic capture.", 2, 2),
    "along": Function(
        _along,
        "along(v, axis, rank)",
        "[n] shaped to run along `axis` of something with `rank` axes (4); a scalar stays.",
        2,
        3,
    ),
    "repeat": Function(
        _repeat, "repeat(v, n)", "n values: v itself where it has n, its one value n times where it has one.", 2, 2
    ),
    "cast": Function(_cast, "cast(v, dtype)", "Another element type, numpy's name as text.", 2, 2),
    "zeros": Function(
        lambda s: np.zeros(_integers(s)), "zeros(shape)", "Zeros (float64; the kernel's type in the end)."
    ),
    "ones": Function(lambda s: np.ones(_integers(s)), "ones(shape)", "Ones."),
    "scale": Function(
        _scale, "scale(x)", "What one step of the stored integers is worth: a number, or one per index of the axis."
    ),
    "zero": Function(_zero, "zero(x)", "The stored integer that means 0."),
    "stored": Function(
        _stored,
        "stored(x) or stored(b, scale)",
        "The integers behind x; with a scale, the constant b as int32 at that scale.",
        1,
        2,
    ),
    "quantised": Function(
        _quantised, "quantised(v, y)", "v as stored integer of y, halves to even, saturated to int8.", 2, 2
    ),
    "multiplier": Function(
        _fixed(fixed_point.multiplier),
        "multiplier(f)",
        "The 31-bit integer of the real factor f = multiplier / 2**shift.",
    ),
    "shift": Function(_fixed(fixed_point.shift), "shift(f)", "The right shift that goes with multiplier(f)."),
    "table_i8": Function(
        _table_i8,
        'table_i8("Op", x, y, alpha=a)',
        "int8[256]: the unary operator between the quantisations of x and y.",
        3,
        3,
        True,
    ),
    "same_as": Function(_same_as, "same_as(a, b)", "Whether two captures have the same quantisation.", 2, 2),
}
