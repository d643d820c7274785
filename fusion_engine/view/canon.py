"""One spelling for each meaning: defaults written out, axes non-negative, padding explicit, bounds that bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx

from fusion_engine.view.draft import Draft, Node, numpy_dtype
from fusion_engine.view.empty import without_empty_operands, without_empty_parts
from fusion_engine.view.operators import operator
from fusion_engine.view.windows import pool, window


def canonical(draft: Draft, node: Node) -> None:
    """Bring a node that has the newest interface to the view's spelling, in place."""
    _fill(node)
    for step in _steps(node.op):
        step(draft, node)


def _fill(node: Node) -> None:
    """Every attribute of the schema, absent inputs up to its arity, no trailing absent output."""
    while len(node.outputs) > 1 and not node.outputs[-1]:
        node.outputs.pop()
    node.inputs = [i or None for i in node.inputs]
    known = operator(node.op, node.version)
    if known is None:
        return
    attrs = dict(known.defaults)
    for key, value in node.attrs.items():
        if value is not None and key in attrs:  # the schema does not know leftovers of older operator sets
            attrs[key] = value
    node.attrs = attrs
    if not known.variadic:
        node.inputs += [None] * (known.arity - len(node.inputs))


_AXIS_FIRST = {"ArgMax", "ArgMin", "Compress", "Concat", "DequantizeLinear", "Flatten", "Gather", "GatherElements"}
_AXIS_SECOND = {"Hardmax", "LayerNormalization", "LogSoftmax", "LpNormalization", "OneHot", "QuantizeLinear"}
_AXIS_THIRD = {"RMSNormalization", "ScatterElements", "Softmax", "Split", "TopK"}
_AXIS = frozenset(_AXIS_FIRST | _AXIS_SECOND | _AXIS_THIRD)


def _axis_attribute(draft: Draft, node: Node) -> None:
    axis = node.attrs.get("axis")
    if isinstance(axis, int) and axis < 0 and (rank := draft.rank(node.inputs[0])) is not None:
        node.attrs["axis"] = axis + rank + (node.op == "OneHot")


def _ints(draft: Draft, name: str | None) -> list[int] | None:
    array = draft.stored(name)
    return None if array is None else [int(v) for v in array.ravel()]


def _put(draft: Draft, node: Node, index: int, values: Sequence[int], what: str) -> None:
    node.inputs += [None] * (index + 1 - len(node.inputs))
    node.inputs[index] = draft.put_const(np.asarray(values, np.int64), f"{node.outputs[0]}_{what}")


def _axes(draft: Draft, node: Node, index: int, rank: int | None) -> list[int] | None:
    """The axes operand, sorted and non-negative where the rank is known; None where it is absent or not constant."""
    axes = _ints(draft, node.input(index))
    if axes is None or rank is None:
        return axes
    return [a + rank if a < 0 else a for a in axes]


def _reduce(draft: Draft, node: Node) -> None:
    rank = draft.rank(node.inputs[0])
    axes = _axes(draft, node, 1, rank)
    absent = node.input(1) is None or axes == []
    if absent and not node.attrs.get("noop_with_empty_axes") and rank is not None:
        axes = list(range(rank))
    if axes:
        _put(draft, node, 1, sorted(axes), "axes")
        node.attrs["noop_with_empty_axes"] = 0


def _squeeze(draft: Draft, node: Node) -> None:
    shape = draft.shape(node.inputs[0])
    axes = _axes(draft, node, 1, None if shape is None else len(shape))
    if node.input(1) is None and shape is not None and all(isinstance(d, int) for d in shape):
        axes = [i for i, d in enumerate(shape) if d == 1]
    if axes is not None:
        _put(draft, node, 1, sorted(axes), "axes")


def _unsqueeze(draft: Draft, node: Node) -> None:
    rank, given = draft.rank(node.inputs[0]), _ints(draft, node.input(1))
    if given is not None:
        axes = _axes(draft, node, 1, None if rank is None else rank + len(given))
        _put(draft, node, 1, sorted(axes or []), "axes")


def _transpose(draft: Draft, node: Node) -> None:
    rank = draft.rank(node.inputs[0])
    if node.attrs["perm"] is None and rank is not None:
        node.attrs["perm"] = tuple(reversed(range(rank)))


def _clip(draft: Draft, node: Node) -> None:
    """A bound that bounds nothing is absent."""
    dtype = draft.dtype(node.inputs[0])
    for index, extreme in ((1, "min"), (2, "max")):
        bound = draft.stored(node.input(index))
        if bound is None or dtype is None or bound.size != 1:
            continue
        kind = numpy_dtype(dtype)
        info = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind) if kind.kind in "iu" else None
        value = bound.ravel()[0]
        beyond = info is not None and (value <= info.min if extreme == "min" else value >= info.max)
        node.inputs[index] = None if beyond else draft.put_const(bound.reshape(()), f"{node.outputs[0]}_{extreme}")


def _pad(draft: Draft, node: Node) -> None:
    """Pads over every axis, no axes operand; the value written out."""
    rank, pads = draft.rank(node.inputs[0]), _ints(draft, node.inputs[1])
    axes = _axes(draft, node, 3, rank)
    if pads is not None and rank is not None and (axes is not None or node.input(3) is None):
        axes = list(range(rank)) if axes is None else axes
        before, after = [0] * rank, [0] * rank
        for i, axis in enumerate(axes):
            before[axis], after[axis] = pads[i], pads[i + len(axes)]
        _put(draft, node, 1, before + after, "pads")
        node.inputs[3] = None
    dtype = draft.dtype(node.inputs[0])
    if node.attrs["mode"] != "constant":
        node.inputs[2] = None
    elif node.inputs[2] is None and dtype is not None:
        node.inputs[2] = draft.put_const(np.zeros((), numpy_dtype(dtype)), f"{node.outputs[0]}_value")
    elif (value := draft.stored(node.inputs[2])) is not None and value.size == 1:
        node.inputs[2] = draft.put_const(value.reshape(()), f"{node.outputs[0]}_value")


def _slice(draft: Draft, node: Node) -> None:
    """Axes and steps written out; bounds clamped to the extents where they are known."""
    shape = draft.shape(node.inputs[0])
    starts, ends = _ints(draft, node.inputs[1]), _ints(draft, node.inputs[2])
    if starts is None or ends is None or shape is None:
        return
    axes = list(range(len(starts))) if node.input(3) is None else _axes(draft, node, 3, len(shape))
    steps = [1] * len(starts) if node.input(4) is None else _ints(draft, node.input(4))
    if axes is None or steps is None:
        return
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    bounds = [_bounds(starts[i], ends[i], steps[i], shape[axes[i]]) for i in order]
    _put(draft, node, 1, [b[0] for b in bounds], "starts")
    _put(draft, node, 2, [b[1] for b in bounds], "ends")
    _put(draft, node, 3, [axes[i] for i in order], "axes")
    _put(draft, node, 4, [steps[i] for i in order], "steps")


def _bounds(start: int, end: int, step: int, extent: Any) -> tuple[int, int]:
    if not isinstance(extent, int) or step == 0:
        return start, end
    first, last, _ = slice(start, end if end > -extent - 1 or step > 0 else None, step).indices(extent)
    return first, (last if last >= 0 else -extent - 1)


def _split(draft: Draft, node: Node) -> None:
    """The sizes written out where the extent is known; no parts that are empty."""
    shape, parts = draft.shape(node.inputs[0]), node.attrs.get("num_outputs") or len(node.outputs)
    extent = shape[node.attrs["axis"]] if shape is not None else None
    if node.input(1) is None and isinstance(extent, int):
        size = -(-extent // parts)
        sizes = [max(0, min(size, extent - i * size)) for i in range(parts)]
        _put(draft, node, 1, sizes, "split")
    given = _ints(draft, node.input(1))
    if given is not None and (sizes := without_empty_parts(draft, node, given)) != given:
        _put(draft, node, 1, sizes, "split")
    if node.input(1) is not None:
        node.attrs["num_outputs"] = None


def _resize(draft: Draft, node: Node) -> None:
    """roi only where it counts; scales and sizes over every axis; an empty tensor is an absent one."""
    for index in (1, 2, 3):
        array = draft.stored(node.input(index))
        if array is not None and array.size == 0:
            node.inputs[index] = None
    if node.attrs["coordinate_transformation_mode"] != "tf_crop_and_resize":
        node.inputs[1] = None
    shape, axes = draft.static(node.inputs[0]), node.attrs.get("axes")
    if axes is None or shape is None:
        return
    scales, sizes = draft.stored(node.inputs[2]), _ints(draft, node.inputs[3])
    where = [a % len(shape) for a in axes]
    if scales is not None:
        full = np.ones(len(shape), np.float32)
        full[where] = scales
        node.inputs[2] = draft.put_const(full, f"{node.outputs[0]}_scales")
    elif sizes is not None and node.attrs["keep_aspect_ratio_policy"] == "stretch":
        extents = list(shape)
        for axis, size in zip(where, sizes, strict=True):
            extents[axis] = size
        _put(draft, node, 3, extents, "sizes")
    else:
        return
    node.attrs["axes"] = None


def _recurrent(draft: Draft, node: Node) -> None:
    shape = draft.static(node.input(2))
    if node.attrs.get("hidden_size") is None and shape is not None:
        node.attrs["hidden_size"] = shape[-1]


def _quantise(draft: Draft, node: Node) -> None:
    """A zero point always; a lone scale is a scalar whose axis means nothing."""
    scale = draft.stored(node.inputs[1])
    if node.input(2) is None:
        _fill_zero(draft, node)
    zero = draft.stored(node.input(2))
    if scale is not None and scale.size == 1:
        node.attrs.update(axis=1, block_size=0)
        if scale.ndim:
            node.inputs[1] = draft.put_const(scale.reshape(()), f"{node.outputs[0]}_scale")
        if zero is not None and zero.ndim and zero.size == 1:
            node.inputs[2] = draft.put_const(zero.reshape(()), f"{node.outputs[0]}_zero")
    elif draft.shape(node.inputs[1]) == ():
        node.attrs.update(axis=1, block_size=0)


def _fill_zero(draft: Draft, node: Node) -> None:
    shape = draft.static(node.inputs[1])
    wanted = node.attrs.get("output_dtype") or onnx.TensorProto.UINT8
    dtype = draft.dtype(node.inputs[0])
    if node.op == "QuantizeLinear":
        dtype = onnx.helper.tensor_dtype_to_np_dtype(wanted).name
    if shape is None or dtype is None or not (dtype.startswith(("int", "uint"))):
        return
    node.inputs += [None] * (3 - len(node.inputs))
    node.inputs[2] = draft.put_const(np.zeros(shape, numpy_dtype(dtype)), f"{node.outputs[0]}_zero")


def _quantise_linear(draft: Draft, node: Node) -> None:
    _quantise(draft, node)
    if node.input(2) is not None:
        node.attrs["output_dtype"] = 0


def _dequantise_linear(draft: Draft, node: Node) -> None:
    _quantise(draft, node)
    scale, wanted = draft.dtype(node.inputs[1]), node.attrs.get("output_dtype")
    if scale is not None and wanted and onnx.helper.tensor_dtype_to_np_dtype(wanted).name == scale:
        node.attrs["output_dtype"] = 0


Step = Callable[[Draft, Node], None]
_STEPS: dict[str, Step] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger"), window),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pool),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _recurrent),
    "Clip": _clip,
    "Concat": without_empty_operands,
    "DequantizeLinear": _dequantise_linear,
    "Pad": _pad,
    "QuantizeLinear": _quantise_linear,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


@cache
def _steps(op: str) -> tuple[Step, ...]:
    """What an operator needs beside its defaults, in this order."""
    axis = (_axis_attribute,) if op in _AXIS else ()
    reduction = (_reduce,) if op.startswith("Reduce") and op != "ReduceScatter" else ()
    return (*axis, *reduction, *((_STEPS[op],) if op in _STEPS else ()))
