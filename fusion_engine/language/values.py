"""What rule expressions compute with: bindings of captures, constants, numbers, texts, lists, and what is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_engine.covering.types import ValueRef
from fusion_engine.graph import CallAttr, Quantisation
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
PLAIN = frozenset((bool, int, float, np.ndarray))  # numbers as they are


class NotKnownError(Exception):
    """Inside an evaluation only: becomes `Unknown(reason)` at its edge."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def as_condition(value: Value) -> bool | Unknown:
    """A truth value out of what a `where` line gave; arrays of one element count as scalars."""
    if isinstance(value, Unknown):
        return value
    try:
        return truth_of(value)
    except NotKnownError as e:
        return Unknown(e.reason)


def as_operand(value: Value) -> ValueRef | np.ndarray | Unknown | tuple[Value, ...] | None:
    """A kernel operand: a reference, a constant in logical ONNX order, None (absent), or several (variadic)."""
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
        array = array_of(value)
    except NotKnownError as e:
        return Unknown(e.reason)
    if array.ndim == 0:
        return scalar_of(array)
    return tuple(scalar_of(v) for v in array.reshape(-1))


def truth_of(value: Value) -> bool:
    if isinstance(value, (bool, int, float, str, tuple)):
        return bool(value)
    array = array_of(value)
    if array.size != 1:
        raise NotKnownError(f"a condition over {array.size} elements: wrap it in all(...) or any(...)")
    return bool(array.reshape(()))


def array_of(value: Value) -> np.ndarray:
    """Numbers of a value: floats as float64, everything else as it is."""
    array = elements_of(value)
    if array.dtype == np.float64:
        return array
    kind = array.dtype.kind  # bfloat16's is V; its name numpy works out anew each time
    return array.astype(np.float64) if kind == "f" or (kind == "V" and array.dtype.name == "bfloat16") else array


def elements_of(value: Value) -> np.ndarray:
    """Numbers of a value in their own element type: for what only moves them."""
    if type(value) in PLAIN:
        return np.asarray(value)
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
        value = [scalar_of(v) if isinstance(v, (Binding, ValueRef)) else v for v in value]
        return np.asarray(value) if value else np.zeros(0, np.int64)  # the shape of a scalar counts as integers
    return np.asarray(value)


def scalar_of(value: Value) -> int | float:
    array = array_of(value)
    if array.size != 1:
        raise NotKnownError(f"one number is needed, not {array.size}")
    single = array.reshape(())
    return float(single) if array.dtype.kind == "f" else int(single)


def item(value: Value) -> Value:
    """An entry of a list: a number, a text, or a tensor where the list is a variadic operand."""
    return value if isinstance(value, (str, bool, Binding, ValueRef)) else scalar_of(value)


def integer_of(value: Value) -> int:
    number = scalar_of(value)
    if number != int(number):
        raise NotKnownError(f"a whole number is needed, not {number}")
    return int(number)


def integers_of(value: Value) -> tuple[int, ...]:
    return tuple(int(v) for v in np.atleast_1d(array_of(value)).reshape(-1))


def simple(result: np.ndarray | np.generic) -> Value:
    """Scalars leave as Python numbers, so that they print and compare as such; arrays stay."""
    array = np.asarray(result)
    if array.ndim:
        return array
    return array.item()


def numeric(fn: Callable[..., Any]) -> Callable[..., Value]:
    return lambda *args: simple(fn(*(array_of(a) for a in args)))
