"""Quantisation going down: uint8 becomes int8, DequantizeLinear sinks over movement, equal pairs cancel.

Each rewriting looks at a node and at the nodes that make its operands, so that one walk in topological order finds all.
"""

from __future__ import annotations

from fusion_engine.view.draft import Draft, Node
from fusion_engine.view.movement import data_inputs, moved_axis, moves, on_integers
from fusion_engine.view.operators import FLIP_SIGN


def sink(draft: Draft, node: Node) -> list[Node] | None:
    """The nodes to put in the place of `node`, or None where nothing applies."""
    if node.op == "QuantizeLinear":
        return _cancelled(draft, node) or _signed_q(draft, node)
    if node.op == "DequantizeLinear":
        return _signed_dq(draft, node)
    if node.op == FLIP_SIGN:
        return _flip_above(draft, node)
    if not moves(node):
        return None
    return _flip_below(draft, node) or _dq_below(draft, node)


def _flipped(draft: Draft, node: Node, name: str | None) -> tuple[str, Node]:
    result = draft.fresh(f"{name}_flipped")
    return result, node.derive(FLIP_SIGN, [name], [result])


def _signed_dq(draft: Draft, node: Node) -> list[Node] | None:
    x, scale, zero = node.inputs[:3]
    if draft.dtype(x) != "uint8" or draft.const(zero) is None:
        return None
    signed, flip = _flipped(draft, node, x)
    centre, shift = _flipped(draft, node, zero)
    return [flip, shift, node.moved([signed, scale, centre], node.outputs)]


def _signed_q(draft: Draft, node: Node) -> list[Node] | None:
    x, scale, zero = node.inputs[:3]
    if draft.dtype(zero) != "uint8" or draft.const(zero) is None:
        return None
    signed = draft.fresh(f"{node.outputs[0]}_int8")
    centre, shift = _flipped(draft, node, zero)
    return [shift, node.moved([x, scale, centre], [signed]), node.derive(FLIP_SIGN, [signed], node.outputs)]


def _cancelled(draft: Draft, node: Node) -> list[Node] | None:
    """Q(DQ(x)) with equal parameters is x."""
    dq = draft.made_by(node.inputs[0], "DequantizeLinear")
    if dq is None or dq.inputs[1:] != node.inputs[1:] or node.attrs.get("block_size"):
        return None
    if draft.rank(node.inputs[1]) != 0 and dq.attrs["axis"] != node.attrs["axis"]:
        return None
    if draft.dtype(dq.inputs[0]) != draft.dtype(node.inputs[2]) or draft.const(node.inputs[1]) is None:
        return None
    return [node.derive("Identity", [dq.inputs[0]], node.outputs)]


def _flip_above(draft: Draft, node: Node) -> list[Node] | None:
    """A flip to int8 goes up over movement, so that movement runs on the int8 tensor; two flips cancel."""
    x = node.inputs[0]
    inner = draft.made_by(x, FLIP_SIGN)
    if inner is not None:
        return [node.derive("Identity", [inner.inputs[0]], node.outputs)]
    maker = draft.producer.get(x or "")
    if maker is None or len(maker.outputs) > 1 or draft.dtype(x) != "uint8" or not moves(maker):
        return None
    inputs, flips = list(maker.inputs), []
    for i in data_inputs(maker):
        inputs[i], flip = _flipped(draft, node, maker.inputs[i])
        flips.append(flip)
    return [*flips, maker.moved(inputs, node.outputs)]


def _flip_below(draft: Draft, node: Node) -> list[Node] | None:
    """A flip back to uint8 sinks below movement, looking for the flip that undoes it."""
    flips = [draft.made_by(node.inputs[i], FLIP_SIGN) for i in data_inputs(node)]
    inner = [f.inputs[0] for f in flips if f is not None]
    if len(inner) < len(flips) or any(draft.dtype(i) != "int8" for i in inner):
        return None
    signed = [draft.fresh(f"{o}_int8") for o in node.outputs]
    moved = node.moved(_replaced(node, inner), signed)
    return [moved, *(node.derive(FLIP_SIGN, [s], [o]) for s, o in zip(signed, node.outputs, strict=True))]


def _replaced(node: Node, data: list[str | None]) -> list[str | None]:
    inputs = list(node.inputs)
    for i, name in zip(data_inputs(node), data, strict=True):
        inputs[i] = name
    return inputs


def _dq_below(draft: Draft, node: Node) -> list[Node] | None:
    """M(DQ(x)) is DQ(M(x)) where M moves elements; Concat needs equal parameters on all operands."""
    makers = [draft.made_by(node.inputs[i], "DequantizeLinear") for i in data_inputs(node)]
    dqs = [dq for dq in makers if dq is not None]
    if not dqs or len(dqs) < len(makers):
        return None
    first = dqs[0]
    same = all(dq.inputs[1:] == first.inputs[1:] and dq.attrs == first.attrs for dq in dqs)
    if not same or len({draft.dtype(dq.inputs[0]) for dq in dqs}) > 1:
        return None
    axis = _axis_below(draft, node, first)
    if axis is None:
        return None
    stored = [draft.fresh(f"{o}_stored") for o in node.outputs]
    moved = node.moved(_replaced(node, [dq.inputs[0] for dq in dqs]), stored)
    below = [first.moved([s, *first.inputs[1:]], [o]) for s, o in zip(stored, node.outputs, strict=True)]
    for dq in below:
        dq.attrs["axis"] = axis
    return [moved, *below]


def _axis_below(draft: Draft, node: Node, dq: Node) -> int | None:
    """The axis of the scale below the movement: 1 where there is one scale, None where it cannot sink."""
    if draft.rank(dq.inputs[1]) != 0:
        per_axis = draft.rank(dq.inputs[1]) == 1 and not dq.attrs.get("block_size") and node.op != "Concat"
        return moved_axis(draft, node, dq.attrs["axis"]) if per_axis else None
    if not on_integers(node, draft.dtype(dq.inputs[0])):
        return None
    scale = draft.const(dq.inputs[1])
    monotone = scale is not None and bool((scale > 0).all())
    return 1 if node.op != "MaxPool" or monotone else None
