"""Attributes of a drawn node: literals as the pattern has them, captured ones legal for the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import TensorProto

from fusion_engine.language.operators import operators
from fusion_engine.language.types import AttrPattern
from gap_fuse.proof.draft import Draft
from gap_fuse.proof.sizes import one

FLOATS = {"epsilon": (1e-5, 1e-2), "alpha": (0.2, 1.5), "beta": (0.2, 1.5), "gamma": (0.5, 1.5)}
SWITCHES = (
    "ceil_mode",
    "count_include_pad",
    "keepdims",
    "select_last_index",
    "exclude_outside",
    "is_causal",
    "linear_before_reset",
)
WORDS: Mapping[str, tuple[str, ...]] = {
    "coordinate_transformation_mode": ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"),
    "nearest_mode": ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
    "approximate": ("none", "tanh"),
    "mode": ("constant", "reflect", "edge"),
    "direction": ("forward", "reverse", "bidirectional", "LEFT", "RIGHT"),
}
CASTS = (TensorProto.FLOAT, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL)


def draw_attributes(draft: Draft, op: str, patterns: tuple[AttrPattern, ...], shape: tuple[int, ...]) -> dict[str, Any]:
    """Values by name, for a node whose first operand has that shape; absent where the operator lacks the attribute."""
    found: dict[str, Any] = {}
    for a in patterns:
        if a.name not in operators()[op].attributes:
            continue
        value = a.literal if a.capture is None else _captured(draft, op, a.name, a.capture, shape)
        if value is not None:
            found[a.name] = value
    return found


def _captured(draft: Draft, op: str, name: str, capture: str, shape: tuple[int, ...]) -> Any:
    if capture not in draft.attrs:
        draft.attrs[capture] = _value(draft, op, name, capture, shape)
    return draft.attrs[capture]


def _value(draft: Draft, op: str, name: str, capture: str, shape: tuple[int, ...]) -> Any:
    spatial = max(len(shape) - 2, 0)
    lists = {"strides": spatial, "dilations": spatial, "kernel_shape": spatial, "pads": 2 * spatial}
    wish = draft.rule.draw.get(capture)
    if name in lists and isinstance(wish, str):
        return [one(draft, wish) for _ in range(lists[name])]
    if capture in draft.sizes:
        return draft.sizes[capture]
    return legal_value(draft, op, name, shape)


def legal_value(draft: Draft, op: str, name: str, shape: tuple[int, ...]) -> Any:
    """A value that the operator takes, or None to leave it out."""
    schema = operators()[op].attributes[name]
    choices = draft.choices
    if name == "axis" and schema.type == onnx.defs.OpSchema.AttrType.INT:
        return _axis(draft, op, len(shape))
    if name == "perm":
        return _permutation(draft, len(shape))
    if name in FLOATS and schema.type == onnx.defs.OpSchema.AttrType.FLOAT:
        low, high = FLOATS[name]
        plain = high > 1.0 and choices.chance()
        return 1.0 if plain else low + (high - low) * choices.between(0, 16) / 16
    if name == "direction" and op == "BitShift":
        return choices.pick(("LEFT", "RIGHT"), (op, name))
    if name == "direction":
        both = draft.sizes.get("D") == 2
        return "bidirectional" if both else choices.pick(("forward", "reverse"), (op, name))
    if name == "activations" and op == "RNN":
        word = choices.pick(("", "Relu", "Tanh"), (op, name))
        return [word] * int(draft.sizes.get("D", 1)) if word else None
    if name in SWITCHES:
        return choices.below(2, (op, name))
    if name in WORDS:
        return choices.pick(WORDS[name], (op, name))
    if name == "to":
        return int(choices.pick(CASTS, (op, name)))
    return None


def _axis(draft: Draft, op: str, rank: int) -> int | None:
    if op == "Split":
        return 0 if draft.choices.chance() else -rank
    if op in ("QuantizeLinear", "DequantizeLinear"):
        return int(draft.sizes.get("axis", 0))
    return draft.choices.between(-rank, rank - 1) if rank else None


def _permutation(draft: Draft, rank: int) -> list[int]:
    left = list(range(rank))
    return [left.pop(draft.choices.below(len(left))) for _ in range(rank)]
