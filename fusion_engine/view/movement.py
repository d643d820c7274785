"""Operators that only move elements: what quantisation may slide over."""

from __future__ import annotations

from math import prod

import numpy as np

from fusion_engine.view.draft import Draft, Node

_SHAPES = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile", "DepthToSpace", "SpaceToDepth"}
_ALWAYS = frozenset(_SHAPES | {"Slice", "Split", "Gather", "GatherElements", "GatherND"})


def moves(node: Node) -> bool:
    """Does the node compute nothing that a monotone function of the elements could not be moved across?

    Holds for movement, nearest Resize, and MaxPool without indices; Concat is one with several operands.
    """
    if node.op in _ALWAYS or node.op == "Concat":
        return True
    if node.op == "MaxPool":
        return len(node.outputs) == 1
    return node.op == "Resize" and _is_nearest(node)


def _is_nearest(resize: Node) -> bool:
    mode, coordinates = resize.attrs["mode"], resize.attrs["coordinate_transformation_mode"]
    return bool(mode == "nearest" and coordinates != "tf_crop_and_resize")


def on_integers(node: Node, dtype: str | None) -> bool:
    """Does the mover exist for integers of this type? ONNX's MaxPool and onnxruntime's Resize know 8 bits alone."""
    return node.op not in ("MaxPool", "Resize") or dtype in ("int8", "uint8")


def data_inputs(node: Node) -> list[int]:
    """Indices of the operands whose elements are moved."""
    return list(range(len(node.inputs))) if node.op == "Concat" else [0]


def moved_axis(draft: Draft, node: Node, axis: int) -> int | None:
    """Where the axis of a per-axis scale goes when the node moves the tensor; None where it does not survive."""
    shape = draft.shape(node.inputs[0])
    if shape is None:
        return None
    if node.op == "Transpose":
        perm = node.attrs["perm"]
        return None if perm is None else list(perm).index(axis)
    extents = [d if isinstance(d, int) else None for d in shape]
    if None in extents or node.op not in ("Reshape", "Flatten", "Squeeze", "Unsqueeze"):
        return None
    return _same_place([d for d in extents if d is not None], _new_shape(draft, node), axis)


def _new_shape(draft: Draft, node: Node) -> list[int] | None:
    shape = draft.static(node.inputs[0])
    if shape is None:
        return None
    if node.op == "Flatten":
        at = node.attrs["axis"]
        return [prod(shape[:at]), prod(shape[at:])]
    operand = draft.const(node.input(1))
    if operand is None:
        return None
    numbers = [int(v) for v in operand.ravel()]
    if node.op == "Squeeze":
        return [d for i, d in enumerate(shape) if i not in numbers]
    if node.op == "Unsqueeze":
        return list(np.expand_dims(np.empty(shape, np.bool_), tuple(numbers)).shape)
    numbers = [shape[i] if d == 0 and not node.attrs.get("allowzero") else d for i, d in enumerate(numbers)]
    if -1 in numbers:
        rest = prod(d for d in numbers if d != -1)
        numbers[numbers.index(-1)] = prod(shape) // rest if rest else 0
    return numbers


def _same_place(old: list[int], new: list[int] | None, axis: int) -> int | None:
    """The axis of `new` with the same extent and as many elements before it."""
    if new is None or 0 in old:
        return None
    before = prod(old[:axis])
    return next((i for i, d in enumerate(new) if d == old[axis] and prod(new[:i]) == before), None)
