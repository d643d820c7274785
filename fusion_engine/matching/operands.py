"""Operands and attributes of a kernel call: the rule's expressions evaluated, constants in the kernel's types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from fusion_engine.covering.types import Cause, Constant, Operand, ValueRef
from fusion_engine.graph import CallAttr
from fusion_engine.kernels.descriptor import Kernel, OperandType
from fusion_engine.language.printing import expression_text
from fusion_engine.language.types import Emit, EName, Expression
from fusion_engine.language.vocabulary import Unknown, as_attribute, as_operand, evaluate_expression
from fusion_engine.matching.environment import Environment

PLAIN = frozenset((int, float, str))


class DeclinedError(Exception):
    """This entry does not take this match, and why."""

    def __init__(self, cause: Cause | str, of_kernel: bool = True) -> None:
        self.cause = Cause(cause) if isinstance(cause, str) else cause
        self.of_kernel = of_kernel  # False: no entry of the variant would take it
        self.kernel: str | None = None  # the one call of several that would not do
        super().__init__(self.cause.reason)


def operands_of(kernel: Kernel, call: Emit, env: Environment) -> tuple[tuple[str, Operand], ...]:
    """Operands in the kernel's sequence, absent ones left out, parts of a variadic one numbered."""
    args = dict(call.args)
    found: list[tuple[str, Operand]] = []
    for o in kernel.inputs:
        expression = args.pop(o.name, None)
        if expression is None:
            if not o.optional:
                raise DeclinedError(f"the operand {o.name} of {kernel.name} has no value")
            continue
        found.extend(_one_operand(o, expression, env))
    if args:
        raise DeclinedError(f"the kernel {kernel.name} has no operand {next(iter(args))}")
    return tuple(found)


def _one_operand(o: OperandType, expression: Expression, env: Environment) -> list[tuple[str, Operand]]:
    value = _value(expression, env)
    if isinstance(value, tuple) and o.variadic:
        return [(f"{o.name}{i}", _operand(o, part)) for i, part in enumerate(value)]
    if value is None:
        if o.optional:
            return []
        raise DeclinedError(f"{o.name} is absent")
    return [(f"{o.name}0" if o.variadic else o.name, _operand(o, value, expression))]


def _operand(o: OperandType, value: Any, expression: Expression | None = None) -> Operand:
    operand = as_operand(value)
    if isinstance(operand, Unknown):
        raise DeclinedError(_unworked(operand, f"the operand {o.name}", expression))
    if operand is None:
        raise DeclinedError(f"{o.name} is absent")
    if isinstance(operand, ValueRef):
        if o.const:
            change = "make it an initializer of the model"
            span = None if expression is None else expression.span
            raise DeclinedError(Cause(f"{o.name} is not constant", operand.name, "a constant", change, span))
        return operand
    if isinstance(operand, tuple):
        raise DeclinedError(f"{o.name} is several values")
    return Constant(operand)


def _unworked(value: Unknown, what: str, expression: Expression | None) -> Cause:
    """An expression that has no value when compiling, at its place."""
    want = what if expression is None else f"{what}: {expression_text(expression)}"
    change = "bind symbolic dimensions: --dim NAME=VALUE" if "unknown" in value.reason else ""
    return Cause(
        value.reason, "not known when compiling", want, change, None if expression is None else expression.span
    )


def cast_to_operand(kernel: Kernel, name: str, operand: Operand, dtypes: Mapping[str, str]) -> Operand:
    """A constant in the element type of its operand, if that keeps its value."""
    if not isinstance(operand, Constant):
        return operand
    o = next(i for i in kernel.inputs if i.name == name or (i.variadic and name[: len(i.name)] == i.name))
    dtype = _operand_dtype(kernel, o, operand.data, dtypes)
    if dtype_name(operand.data.dtype) == dtype:
        return operand
    with np.errstate(all="ignore"):
        data = operand.data.astype(np.dtype(dtype))
    if data.dtype.kind in "iub" and not np.array_equal(data.astype(np.float64), operand.data.astype(np.float64)):
        raise DeclinedError(f"{name} holds values that are no {dtype}")
    return Constant(data)


def _operand_dtype(kernel: Kernel, o: OperandType, data: np.ndarray, dtypes: Mapping[str, str]) -> str:
    options = kernel.dtypes.get(o.dtype)
    if options is None:
        return o.dtype
    for other in kernel.operands:
        if other.dtype == o.dtype:
            bound = dtypes.get(other.name) or dtypes.get(f"{other.name}0")
            if bound is not None:
                return bound
    own = dtype_name(data.dtype)
    return own if own in options else options[0]


# ---- attributes ----


def attributes_of(call: Emit, env: Environment) -> dict[str, CallAttr]:
    attrs: dict[str, CallAttr] = {}
    for name, expression in call.attrs:
        value = _value(expression, env)
        if type(value) not in PLAIN:
            value = as_attribute(value)
            if isinstance(value, Unknown):
                raise DeclinedError(_unworked(value, f"the attribute {name}", expression))
        attrs[name] = value
    return attrs


def _value(expression: Expression, env: Environment) -> Any:
    """Most arguments are bare names, which need no evaluation."""
    if isinstance(expression, EName) and expression.name in env:
        return env[expression.name]
    return evaluate_expression(expression, env)


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """numpy's name of an element type (which numpy works out anew each time)."""
    return str(dtype.name)
