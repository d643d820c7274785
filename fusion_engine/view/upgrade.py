"""From the interface an operator had in an older operator set to the newest one, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from fusion_engine.view.draft import Draft, Node, element_type, numpy_dtype
from fusion_engine.view.operators import operator

Step = Callable[[Draft, Node], list[Node] | None]
_LOWEST = float(np.finfo(np.float32).min)
_HIGHEST = float(np.finfo(np.float32).max)


def upgrade(draft: Draft, node: Node) -> list[Node] | None:
    """Apply every change of interface after `node.version`, oldest first; a list replaces the node.

    The attributes that the old version would have defaulted are written out first, since defaults changed too.
    """
    _old_defaults(node)
    for before, step in _STEPS.get(node.op, ()):
        if node.version < before:
            replaced = step(draft, node)
            if replaced is not None:
                return replaced
    return None


def _old_defaults(node: Node) -> None:
    old = operator(node.op, node.version)
    if old is not None:
        node.attrs = {**old.written, **node.attrs}
    node.attrs.pop("consumed_inputs", None)


def _ints(draft: Draft, node: Node, values: Sequence[int], what: str) -> str:
    return draft.put_const(np.asarray(values, np.int64), f"{node.outputs[0]}_{what}")


def _set_input(node: Node, index: int, name: str | None) -> None:
    node.inputs += [None] * (index + 1 - len(node.inputs))
    node.inputs[index] = name


def _axes_input(draft: Draft, node: Node) -> None:
    axes = node.attrs.pop("axes", None)
    if axes is not None:
        _set_input(node, 1, _ints(draft, node, axes, "axes"))


def _split(draft: Draft, node: Node) -> None:
    sizes = node.attrs.pop("split", None)
    if sizes is not None:
        _set_input(node, 1, _ints(draft, node, sizes, "split"))


def _split_equally(_: Draft, node: Node) -> None:
    if node.input(1) is None:
        node.attrs["num_outputs"] = len(node.outputs)


def _clip(draft: Draft, node: Node) -> None:
    dtype = numpy_dtype(draft.dtype(node.inputs[0]) or "float32")
    for index, key, absent in ((1, "min", _LOWEST), (2, "max", _HIGHEST)):
        bound = node.attrs.pop(key, absent)
        if bound != absent:
            _set_input(node, index, draft.put_const(np.asarray(bound, dtype), f"{node.outputs[0]}_{key}"))


def _pad_1(_: Draft, node: Node) -> None:
    if "paddings" in node.attrs:
        node.attrs["pads"] = node.attrs.pop("paddings")


def _pad(draft: Draft, node: Node) -> None:
    dtype = numpy_dtype(draft.dtype(node.inputs[0]) or "float32")
    _set_input(node, 1, _ints(draft, node, node.attrs.pop("pads"), "pads"))
    value = draft.put_const(np.asarray(node.attrs.pop("value", 0.0), dtype), f"{node.outputs[0]}_value")
    _set_input(node, 2, value if node.attrs.get("mode", "constant") == "constant" else None)


def _slice(draft: Draft, node: Node) -> None:
    starts, ends = node.attrs.pop("starts"), node.attrs.pop("ends")
    axes = node.attrs.pop("axes", None) or tuple(range(len(starts)))
    for index, (values, what) in enumerate(((starts, "starts"), (ends, "ends"), (axes, "axes")), start=1):
        _set_input(node, index, _ints(draft, node, values, what))


def _top_k(draft: Draft, node: Node) -> None:
    _set_input(node, 1, _ints(draft, node, [node.attrs.pop("k")], "k"))


def _dft(draft: Draft, node: Node) -> None:
    _set_input(node, 2, draft.put_const(np.asarray(node.attrs.pop("axis", 1), np.int64), f"{node.outputs[0]}_axis"))


def _reshape_1(draft: Draft, node: Node) -> None:
    _set_input(node, 1, _ints(draft, node, node.attrs.pop("shape", ()), "shape"))


def _cast_1(_: Draft, node: Node) -> None:
    to = node.attrs.get("to")
    if isinstance(to, str):
        import onnx

        node.attrs["to"] = onnx.TensorProto.DataType.Value(to.upper())


def _grid_sample(_: Draft, node: Node) -> None:
    mode = node.attrs.get("mode")
    node.attrs["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(str(mode), mode)


def _batch_norm(draft: Draft, node: Node) -> None:
    if not node.attrs.pop("spatial", 1):
        raise draft.fail(node, "normalises every position by itself (spatial = 0), which no newer operator set has")
    if node.attrs.pop("is_test", 1) == 0 and node.version < 7:
        raise draft.fail(node, "is in training mode", "export the model for inference")
    node.attrs["training_mode"] = 0
    del node.outputs[1:]


def _batch_norm_14(draft: Draft, node: Node) -> None:
    """In inference the momentum means nothing: exporters write that of their framework."""
    del draft
    if not node.attrs.get("training_mode"):
        node.attrs.pop("momentum", None)
        del node.outputs[1:]


def _dropout(_: Draft, node: Node) -> None:
    node.attrs.pop("ratio", None)
    node.attrs.pop("is_test", None)


def _group_norm(draft: Draft, node: Node) -> None:
    """Scale and bias per group become per channel."""
    shape = draft.shape(node.inputs[0])
    groups = node.attrs["num_groups"]
    for index in (1, 2):
        value = draft.const(node.inputs[index])
        if value is None or shape is None or not isinstance(shape[1], int):
            raise draft.fail(node, "has a scale or bias per group that is not constant")
        spread = np.repeat(value, shape[1] // groups)
        node.inputs[index] = draft.put_const(spread, f"{node.inputs[index]}_per_channel")


def _coerced_softmax(draft: Draft, node: Node) -> list[Node] | None:
    """Before operator set 13 the axes from `axis` on were one: the last axis alone is today's operator."""
    x, axis = node.inputs[0], node.attrs.pop("axis", 1)
    shape = draft.shape(x)
    if shape is None:
        raise draft.fail(node, "needs the rank of its operand, which is unknown")
    axis = axis + len(shape) if axis < 0 else axis
    if all(d == 1 for d in shape[axis + 1 :]) and axis < len(shape):
        node.attrs["axis"] = axis
        return None
    y = node.outputs[0]
    flat, soft = draft.fresh(f"{y}_flat"), draft.fresh(f"{y}_2d")
    back, extra = _same_shape(draft, node, x, f"{y}_shape")
    return [
        node.derive("Flatten", [x], [flat], axis=axis),
        node.derive(node.op, [flat], [soft], axis=1),
        *extra,
        node.derive("Reshape", [soft, back], [y]),
    ]


def _same_shape(draft: Draft, node: Node, x: str | None, base: str) -> tuple[str, list[Node]]:
    static = draft.static(x)
    if static is not None:
        return draft.put_const(np.asarray(static, np.int64), base), []
    name = draft.fresh(base)
    return name, [node.derive("Shape", [x], [name])]


def _upsample(draft: Draft, node: Node) -> list[Node]:
    scales = node.attrs.pop("scales", None)
    name = node.input(1)
    if scales is not None:
        name = draft.put_const(np.asarray(scales, np.float32), f"{node.outputs[0]}_scales")
    return [_asymmetric(draft, node, name)]


def _resize_10(draft: Draft, node: Node) -> list[Node]:
    return [_asymmetric(draft, node, node.input(1))]


def _asymmetric(draft: Draft, node: Node, scales: str | None) -> Node:
    """Resize as operator set 10 meant it: asymmetric coordinates; nearest rounds down to grow, up to shrink."""
    mode = node.attrs.get("mode", "nearest")
    factors = draft.const(scales)
    nearest = "floor"
    if mode == "nearest" and factors is not None and (factors < 1).any():
        if (factors > 1).any():
            raise draft.fail(node, "grows one axis and shrinks another, which the newest Resize cannot say")
        nearest = "ceil"
    attrs = {"mode": "nearest" if mode == "nearest" else "linear", "nearest_mode": nearest}
    return node.derive(
        "Resize", [node.inputs[0], None, scales], node.outputs, coordinate_transformation_mode="asymmetric", **attrs
    )


def _broadcast(draft: Draft, node: Node) -> list[Node] | None:
    """Before operator set 7 the second operand was laid onto the first from `axis` on."""
    axis = node.attrs.pop("axis", None)
    if not node.attrs.pop("broadcast", 0) or axis is None:
        return None
    a, b = (draft.rank(n) for n in node.inputs[:2])
    if a is None or b is None:
        raise draft.fail(node, "broadcasts along an axis of a value whose rank is unknown")
    after = a - (axis % a) - b
    if after <= 0:
        return None
    spread = draft.fresh(f"{node.inputs[1]}_spread")
    axes = _ints(draft, node, range(b, b + after), "axes")
    return [
        node.derive("Unsqueeze", [node.inputs[1], axes], [spread]),
        node.derive(node.op, [node.inputs[0], spread], node.outputs),
    ]


def _constant(draft: Draft, node: Node) -> list[Node]:
    """A Constant node becomes a constant value: no node is left."""
    kinds = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    key, value = next(((k, v) for k, v in node.attrs.items() if v is not None), (None, None))
    if key is None:
        raise draft.fail(node, "holds no value")
    dtype = kinds.get(key, object if key.startswith("value_string") else None)
    draft.name_const(node.outputs[0], np.asarray(value, dtype))
    return []


def _cast_like(draft: Draft, node: Node) -> list[Node] | None:
    dtype = draft.dtype(node.input(1))
    if dtype is None:
        return None
    rest = {k: v for k, v in node.attrs.items() if k in ("saturate", "round_mode")}
    return [node.derive("Cast", [node.inputs[0]], node.outputs, to=element_type(dtype), **rest)]


def _scatter(_: Draft, node: Node) -> list[Node]:
    return [node.derive("ScatterElements", node.inputs, node.outputs, axis=node.attrs.get("axis", 0))]


def _shape_of(draft: Draft, node: Node) -> list[Node] | None:
    """The shape of a value with a static shape is a constant."""
    shape = draft.shape(node.inputs[0])
    if shape is None:
        return None
    part = shape[node.attrs.get("start") or 0 : node.attrs.get("end")]
    if not all(isinstance(d, int) for d in part):
        return None
    draft.name_const(node.outputs[0], np.asarray(part, np.int64))
    return []


def _size_of(draft: Draft, node: Node) -> list[Node] | None:
    shape = draft.static(node.inputs[0])
    if shape is None:
        return None
    draft.name_const(node.outputs[0], np.asarray(prod(shape), np.int64))
    return []


_NEVER = 1 << 30  # a rewriting that every version takes
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
_BROADCASTING = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Less", "Greater", "PRelu")
_STEPS: dict[str, tuple[tuple[int, Step], ...]] = {
    **{f"Reduce{r}": ((18, _axes_input),) for r in _REDUCTIONS},
    **dict.fromkeys(_BROADCASTING, ((7, _broadcast),)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), ((13, _coerced_softmax),)),
    "BatchNormalization": ((14, _batch_norm), (_NEVER, _batch_norm_14)),
    "Cast": ((6, _cast_1),),
    "CastLike": ((_NEVER, _cast_like),),
    "Clip": ((11, _clip),),
    "Constant": ((_NEVER, _constant),),
    "DFT": ((20, _dft),),
    "Dropout": ((12, _dropout),),
    "GridSample": ((20, _grid_sample),),
    "GroupNormalization": ((21, _group_norm),),
    "Pad": ((2, _pad_1), (11, _pad)),
    "ReduceSum": ((13, _axes_input),),
    "Reshape": ((5, _reshape_1),),
    "Resize": ((11, _resize_10),),
    "Scatter": ((_NEVER, _scatter),),
    "Shape": ((_NEVER, _shape_of),),
    "Size": ((_NEVER, _size_of),),
    "Slice": ((10, _slice),),
    "Split": ((13, _split), (18, _split_equally)),
    "Squeeze": ((13, _axes_input),),
    "TopK": ((10, _top_k),),
    "Unsqueeze": ((13, _axes_input),),
    "Upsample": ((_NEVER, _upsample),),
}
