"""What a call is taken to cost where the caller brings no target: iterations plus bytes of the results."""

from __future__ import annotations

from math import prod

import numpy as np

from fusion_engine.covering.types import EmittedCall
from fusion_engine.expr import ExprError, evaluate, parse_expr
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.sizes import Sizes

CALL = 100.0  # starting a call


def default_cost(_: EmittedCall, kernel: Kernel, sizes: Sizes) -> float:
    """Points of the iteration space over 8 cores, plus bytes of the results; a view costs next to nothing."""
    if kernel.view is not None:
        return 1.0
    made = sum(prod(shape) * np.dtype(sizes.dtypes[name]).itemsize for name, shape in sizes.shapes.items())
    return CALL + prod(_extent(text, sizes) for _, text in kernel.axes) / 8 + made


def _extent(text: str, sizes: Sizes) -> int:
    name = text.lstrip("*")
    value = sizes.environment.get(name)
    if value is None:
        try:
            value = evaluate(parse_expr(text), sizes.environment)
        except (ExprError, KeyError, TypeError, ValueError, ZeroDivisionError):
            return 1
    return prod(value) if isinstance(value, (tuple, list)) else int(value)
