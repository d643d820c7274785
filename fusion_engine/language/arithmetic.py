"""The operators of rule expressions: arithmetic, comparisons, elements and parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fusion_engine.language.values import (
    NotKnownError,
    Value,
    array_of,
    integer_of,
    numeric,
    simple,
    truth_of,
)


def _equal(a: Value, b: Value) -> Value:
    if type(a) is type(b) and type(a) in (int, float):  # most are sizes
        return bool(a == b)
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a is b if a is None or b is None else a == b
    x, y = array_of(a), array_of(b)
    if isinstance(a, tuple) or isinstance(b, tuple):
        return x.shape == y.shape and bool(np.all(x == y))
    return simple(x == y)


def _not_equal(a: Value, b: Value) -> Value:
    same = _equal(a, b)
    return np.logical_not(same) if isinstance(same, np.ndarray) else not same


def _index(value: Value, at: Value) -> Value:
    array = array_of(value)
    if array.ndim == 0:
        raise NotKnownError("a single number has no elements")
    i = integer_of(at)
    if not -array.shape[0] <= i < array.shape[0]:
        raise NotKnownError(f"there is no element {i} among {array.shape[0]}")
    return value[i] if isinstance(value, tuple) else simple(array[i])


def _section(value: Value, start: Value, stop: Value) -> Value:
    part = slice(None if start is None else integer_of(start), None if stop is None else integer_of(stop))
    return value[part] if isinstance(value, (str, tuple)) else array_of(value)[part]


def _contains(item: Value, many: Value) -> bool:
    if not isinstance(many, tuple):
        raise NotKnownError("`in` needs a list")
    return any(truth_of(_equal(item, m)) for m in many)


def _whole(fn: Callable[..., Any]) -> Callable[..., Value]:
    def divided(a: Value, b: Value) -> Value:
        x, y = array_of(a), array_of(b)
        if np.any(y == 0):
            raise NotKnownError("division by zero")
        return simple(fn(x, y))

    return divided


OPERATORS: Mapping[str, Callable[..., Value]] = {
    "+": numeric(lambda a, b: a + b),
    "-": numeric(lambda a, b: a - b),
    "*": numeric(lambda a, b: a * b),
    "/": numeric(lambda a, b: np.true_divide(a, b)),
    "//": _whole(np.floor_divide),
    "%": _whole(np.mod),
    "**": numeric(lambda a, b: np.power(a.astype(np.float64), b)),
    "neg": numeric(lambda a: -a),
    "==": _equal,
    "!=": _not_equal,
    "<": numeric(lambda a, b: a < b),
    "<=": numeric(lambda a, b: a <= b),
    ">": numeric(lambda a, b: a > b),
    ">=": numeric(lambda a, b: a >= b),
    "in": _contains,
    "not": lambda v: not truth_of(v),
    "[]": _index,
    "[:]": _section,
}
