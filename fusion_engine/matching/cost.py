"""What a call is taken to cost where the caller brings no target: cycles of its cheapest implementation plus bytes made."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from fusion_engine.covering.types import EmittedCall
from fusion_engine.expr import ExprError, evaluate, parse_expr
from fusion_engine.kernels.descriptor import Implementation, Kernel
from fusion_engine.kernels.sizes import Sizes

CORES = 8
CALL = 100.0  # starting a call
UNREADABLE = (ExprError, ArithmeticError, IndexError, KeyError, TypeError, ValueError)


def default_cost(_: EmittedCall, kernel: Kernel, sizes: Sizes) -> float:
    """Cycles over 8 cores with the whole call as one tile, plus bytes of the results; a view costs next to nothing.

    Where no implementation's formula reads so (any-rank ones go by axes yet to be merged), points of the iteration space.
    """
    if kernel.view is not None:
        return 1.0
    made = sum(prod(shape) * np.dtype(sizes.dtypes[name]).itemsize for name, shape in sizes.shapes.items())
    extents = {axis: _extent(text, sizes) for axis, text in kernel.axes}
    env = {**sizes.environment, **extents, "cores": CORES}
    cycles = [c for i in kernel.implementations if (c := _cycles(i, env)) is not None]
    return CALL + min(cycles, default=prod(extents.values()) / CORES) + made


def _cycles(implementation: Implementation, env: dict[str, Any]) -> float | None:
    try:
        if not all(evaluate(condition, env) for _, condition in implementation.when):
            return None
        return float(evaluate(implementation.cycles, env))
    except UNREADABLE:
        return None


def _extent(text: str, sizes: Sizes) -> int:
    name = text.lstrip("*")
    value = sizes.environment.get(name)
    if value is None:
        try:
            value = evaluate(parse_expr(text), sizes.environment)
        except UNREADABLE:
            return 1
    return prod(value) if isinstance(value, (tuple, list)) else int(value)
