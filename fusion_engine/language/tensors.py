"""The vocabulary over shapes, lists and tensors, and the texts of elementwise trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusion_engine.language.values import (
    Binding,
    NotKnownError,
    Value,
    array_of,
    elements_of,
    integer_of,
    integers_of,
    scalar_of,
    simple,
)
from fusion_engine.view.types import Dim


def shape_of(value: Value) -> tuple[int, ...]:
    if isinstance(value, Binding):
        return _known_shape(value.shape, value.name)
    return tuple(array_of(value).shape)


def _known_shape(shape: tuple[Dim, ...] | None, name: str) -> tuple[int, ...]:
    known = tuple(d for d in shape or () if isinstance(d, int))
    if shape is None or len(known) != len(shape):
        raise NotKnownError(f"shape of {name} unknown")
    return known


def rank_of(value: Value) -> int:
    if isinstance(value, Binding):
        if value.shape is None:
            raise NotKnownError(f"rank of {value.name} unknown")
        return len(value.shape)
    return array_of(value).ndim


def dim_of(value: Value, axis: Value) -> int:
    rank, i = rank_of(value), integer_of(axis)
    if not -rank <= i < rank:
        raise NotKnownError(f"there is no axis {i} among {rank}")
    if isinstance(value, Binding):
        extent = (value.shape or ())[i]
        if not isinstance(extent, int):
            raise NotKnownError(f"extent {i} of {value.name} unknown")
        return extent
    return int(array_of(value).shape[i])


def dtype_of(value: Value) -> str:
    if isinstance(value, Binding):
        if value.dtype is None:
            raise NotKnownError(f"element type of {value.name} unknown")
        return value.dtype
    return str(array_of(value).dtype)


def product_of(values: tuple[int, ...]) -> int:
    result = 1
    for v in values:
        result *= v
    return result


def length_of(value: Value) -> int:
    if isinstance(value, (tuple, str)):
        return len(value)
    return dim_of(value, 0)


def broadcasts(a: Value, b: Value) -> bool:
    """b fits under a by broadcasting and the result is of a's shape."""
    try:
        return bool(np.broadcast_shapes(shape_of(a), shape_of(b)) == shape_of(a))
    except ValueError:
        return False


def along(value: Value, axis: Value, rank: Value = None) -> np.ndarray:
    """[n] shaped so that it runs along `axis` of something with `rank` axes (4, as a Conv weight has)."""
    array = array_of(value)
    if array.ndim == 0:
        return array
    total = 4 if rank is None else integer_of(rank)
    i = integer_of(axis) % total
    return array.reshape([-1 if k == i else 1 for k in range(total)])


def along_inputs(value: Value, weight: Value, group: Value) -> np.ndarray:
    """[C] shaped so that it multiplies convolution weights [K, C / group, ...] channel by channel of the input."""
    k, c, *window = shape_of(weight)
    groups = integer_of(group)
    by_group = array_of(value).reshape(groups, 1, c)
    return np.broadcast_to(by_group, (groups, k // groups, c)).reshape(k, c, *(1 for _ in window))


def row_sums(value: Value) -> np.ndarray:
    array = array_of(value)
    return np.asarray(array.sum(axis=tuple(range(1, array.ndim))))


def repeat(value: Value, count: Value) -> np.ndarray:
    array = elements_of(value).reshape(-1)
    n = integer_of(count)
    if array.size not in (1, n):
        raise NotKnownError(f"{array.size} values cannot stand for {n}")
    return np.array(np.broadcast_to(array, (n,)))


def concat(*values: Value) -> Value:
    if all(isinstance(v, tuple) for v in values):
        return tuple(x for v in values for x in v)
    return np.concatenate([np.atleast_1d(array_of(v)) for v in values])


def take(value: Value, indices: Value, axis: Value = 0) -> Value:
    taken = np.take(array_of(value), np.asarray(integers_of(indices), np.int64), axis=integer_of(axis))
    return tuple(scalar_of(v) for v in taken) if isinstance(value, tuple) else taken


def place(values: Value, positions: Value, entries: Value) -> tuple[int | float, ...]:
    """A list with some of its entries replaced."""
    result = [scalar_of(v) for v in np.atleast_1d(array_of(values))]
    where = integers_of(positions)
    for at, entry in zip(where, np.broadcast_to(array_of(entries), (len(where),)), strict=True):
        result[at] = scalar_of(entry)
    return tuple(result)


def exchange(rank: Value, i: Value, j: Value) -> tuple[int, ...]:
    perm = list(range(integer_of(rank)))
    a, b = integer_of(i), integer_of(j)
    perm[a], perm[b] = perm[b], perm[a]
    return tuple(perm)


def axes_last(rank: Value, axes: Value) -> tuple[int, ...]:
    n = integer_of(rank)
    last = tuple(a % n for a in integers_of(axes))
    return (*(i for i in range(n) if i not in last), *last)


def tree(function: Value, *args: Value) -> str:
    """Text of one call in an elementwise tree: operands are texts, numbers are written with all their digits."""
    if not isinstance(function, str):
        raise NotKnownError("tree(function, ...) needs the function's name as text")
    return f"{function.lower()}({', '.join(a if isinstance(a, str) else repr(scalar_of(a)) for a in args)})"


def tree_over(function: Value, operands: Value) -> str:
    """One call over as many operands as a variadic capture has: max(x0, x1, x2)."""
    return tree(function, *(f"x{i}" for i in range(length_of(operands))))


def lower(value: Value) -> str:
    if not isinstance(value, str):
        raise NotKnownError("lower(v) needs text")
    return value.lower()


def cast(value: Value, dtype: Value) -> np.ndarray:
    if not isinstance(dtype, str):
        raise NotKnownError("cast(v, dtype) needs the dtype as text")
    return array_of(value).astype(np.dtype(dtype))


def reduced(fn: Callable[[np.ndarray], Any], pair: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    def reduced(*args: Value) -> Value:
        if len(args) == 1:
            return simple(fn(array_of(args[0])))
        result: Any = array_of(args[0])
        for a in args[1:]:
            result = pair(result, array_of(a))
        return simple(result)

    return reduced
