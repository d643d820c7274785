"""What a rule may say about ONNX operators: the newest schemas of onnx.defs, which are the form the view shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx.defs

COMMUTATIVE = frozenset(
    ("Add", "Mul", "Max", "Min", "Sum", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
)

MOVEMENT = (
    "DepthToSpace",
    "Flatten",
    "Gather",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
"""The operators that a `rearrange` pattern looks through."""


@cache
def operators() -> Mapping[str, onnx.defs.OpSchema]:
    """Every operator of the default domain by name, newest version, deprecated ones left out."""
    return {s.name: s for s in onnx.defs.get_all_schemas() if not s.domain and not s.deprecated}


def most_inputs(schema: onnx.defs.OpSchema) -> int | None:
    """The greatest number of inputs, None where the last is variadic."""
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return None if schema.inputs and schema.inputs[-1].option == variadic else len(schema.inputs)


def too_many_inputs(op: str, most: int) -> str:
    """The sentence."""
    return f"`{op}` has at most {most} input{'' if most == 1 else 's'}"
