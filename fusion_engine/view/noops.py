"""Nodes that change nothing: which of their operands stands for the result."""

from __future__ import annotations

import numpy as np

from fusion_engine.view.draft import Draft, Node

_SINGLE = frozenset({"Concat", "Sum", "Max", "Min", "Mean"})
_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
SAME_SHAPE = frozenset({"Expand", "Slice", "Pad", "Tile", "Resize", "Split"})
_PASSING = _SINGLE | _RESHAPES | SAME_SHAPE | {"Identity", "Cast", "Dropout", "Transpose"}


def passed_through(draft: Draft, node: Node) -> str | None:
    """The operand that equals the node's only result, or None. The node is canonical and its result's type known."""
    if node.op not in _PASSING or not node.inputs or node.inputs[0] is None or len(node.outputs) != 1:
        return None
    x = node.inputs[0]
    if node.op == "Identity" or (node.op in _SINGLE and len(node.inputs) == 1):
        return x
    if node.op in _RESHAPES or node.op in SAME_SHAPE:
        return _same_shape(draft, node, x)
    if node.op == "Cast":
        return x if draft.dtype(x) is not None and draft.dtype(x) == draft.dtype(node.outputs[0]) else None
    if node.op == "Dropout":
        training = draft.const(node.input(2))
        return x if node.input(2) is None or (training is not None and not training.any()) else None
    if node.op == "Transpose":
        return _transposed(draft, node, x)
    return None


def _same_shape(draft: Draft, node: Node, x: str) -> str | None:
    before, after = draft.shape(x), draft.shape(node.outputs[0])
    if before is None or after is None or None in after:
        return None
    if node.op in _RESHAPES:
        return _root(draft, x, after)
    if before != after:
        return None
    if node.op == "Slice":
        steps = draft.const(node.inputs[4])
        return x if steps is not None and bool((steps == 1).all()) else None
    if node.op == "Pad":
        pads = draft.const(node.inputs[1])
        return x if pads is not None and not pads.any() else None
    if node.op == "Tile":
        repeats = draft.const(node.inputs[1])
        return x if repeats is not None and bool((repeats == 1).all()) else None
    if node.op == "Resize":
        scales = draft.const(node.inputs[2])
        return x if scales is not None and bool((np.asarray(scales) == 1).all()) else None
    return x


def _root(draft: Draft, x: str, shape: tuple[object, ...]) -> str | None:
    """The nearest value up a chain of reshapes that already has this shape (every extent known or the same symbol)."""
    name: str | None = x
    while name is not None:
        if draft.shape(name) == shape:
            return name
        maker = draft.producer.get(name)
        name = maker.inputs[0] if maker is not None and maker.op in _RESHAPES else None
    return None


def _transposed(draft: Draft, node: Node, x: str) -> str | None:
    perm = node.attrs["perm"]
    if perm is None:
        return None
    if perm == tuple(range(len(perm))):
        return x
    inner = draft.made_by(x, "Transpose")
    if inner is None or inner.attrs["perm"] is None:
        return None
    back = tuple(inner.attrs["perm"][p] for p in perm) == tuple(range(len(perm)))
    return inner.inputs[0] if back else None
