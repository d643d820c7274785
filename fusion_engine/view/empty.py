"""Tensors without an element: constants, whatever they are computed of."""

from __future__ import annotations

import numpy as np

from fusion_engine.view.draft import Draft, Node, numpy_dtype


def settle_empty(draft: Draft, node: Node) -> bool:
    """Make the node's results constants if none of them has an element; whether that is so. Their types are known."""
    names = [n for n in node.outputs if n]
    shapes = [draft.static(n) for n in names]
    if not names or any(s is None or 0 not in s for s in shapes) or any(draft.dtype(n) is None for n in names):
        return False
    for name in names:
        _settle(draft, name, draft.static(name) or (), draft.dtype(name))
    return True


def without_empty_operands(draft: Draft, node: Node) -> None:
    """A Concat's operands that add nothing are none of it, unless all are."""
    axis = node.attrs["axis"]
    shapes = [draft.shape(i) for i in node.inputs]
    kept = [i for i, s in zip(node.inputs, shapes, strict=True) if s is None or axis >= len(s) or s[axis] != 0]
    node.inputs = kept or node.inputs


def without_empty_parts(draft: Draft, node: Node, sizes: list[int]) -> list[int]:
    """The sizes of a Split's parts that have an element; the others become constants, unless all are empty."""
    shape, dtype = draft.static(node.inputs[0]), draft.dtype(node.inputs[0])
    if shape is None or dtype is None or 0 not in sizes or not any(sizes) or len(sizes) != len(node.outputs):
        return sizes
    axis = node.attrs["axis"]
    for name in (n for n, size in zip(node.outputs, sizes, strict=True) if n and not size):
        _settle(draft, name, (*shape[:axis], 0, *shape[axis + 1 :]), dtype)
    node.outputs = [n for n, size in zip(node.outputs, sizes, strict=True) if size]
    return [size for size in sizes if size]


def _settle(draft: Draft, name: str, shape: tuple[int, ...], dtype: str | None) -> None:
    assert dtype is not None
    draft.values.pop(name, None)
    draft.name_const(name, np.zeros(shape, numpy_dtype(dtype)))
