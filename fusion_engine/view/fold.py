"""Evaluating nodes whose operands are all constants."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from fusion_engine.view.draft import Draft, Node, numpy_dtype
from fusion_engine.view.infer import node_proto
from fusion_engine.view.operators import FLIP_SIGN, operator, split_op

RANDOM = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
_LARGEST = 1 << 24  # elements: constants are not blown up past this


def evaluate(draft: Draft, node: Node) -> list[np.ndarray] | None:
    """The results of a node whose present operands are all constants; None where it must not or cannot be evaluated."""
    if node.op in RANDOM or node.captures or _too_large(draft, node):
        return None
    values = [draft.const(n) if n is not None else None for n in node.inputs]
    if any(v is None for v, n in zip(values, node.inputs, strict=True) if n is not None):
        return None
    direct = _DIRECT.get(node.op)
    try:
        with np.errstate(all="ignore"):
            if direct is not None:
                return [np.asarray(direct(node.attrs, *values))]
            return _by_reference(node, values)
    except Exception:  # what the evaluator cannot do stays a node, which a rule takes or an error names
        return None


def _too_large(draft: Draft, node: Node) -> bool:
    if node.op not in ("ConstantOfShape", "Expand"):
        return False
    extents = draft.const(node.inputs[1] if node.op == "Expand" else node.inputs[0])
    return extents is not None and prod(int(e) for e in extents.ravel()) > _LARGEST


def _by_reference(node: Node, values: list[np.ndarray | None]) -> list[np.ndarray] | None:
    if operator(node.op, node.version) is None:
        return None
    names = [f"i{i}" if v is not None else "" for i, v in enumerate(values)]
    outputs = [f"o{i}" if n else "" for i, n in enumerate(node.outputs)]
    proto = node_proto(node, names, outputs)
    graph = onnx.helper.make_graph(
        [proto],
        "fold",
        [onnx.ValueInfoProto(name=n) for n in names if n],
        [onnx.ValueInfoProto(name=n) for n in outputs if n],
    )
    imports = [onnx.helper.make_opsetid(split_op(node.op)[0], node.version)]
    if split_op(node.op)[0]:
        imports.append(onnx.helper.make_opsetid("", 18))
    model = onnx.helper.make_model(graph, opset_imports=imports)
    found = ReferenceEvaluator(model).run(None, {n: v for n, v in zip(names, values, strict=True) if n})
    results = iter(found)
    return [np.asarray(next(results)) if n else np.empty(0) for n in outputs]


def dequantised(x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, attrs: dict[str, Any]) -> np.ndarray:
    """What DequantizeLinear computes, in the scale's float type: (x - zero) * scale."""
    wide = np.int32 if x.dtype.kind in "iu" or x.dtype.name.endswith("int4") else np.float32
    difference = x.astype(wide)
    if zero is not None and np.count_nonzero(zero):
        difference = difference - _along(zero, x, attrs).astype(wide)
    scale = _along(scale, x, attrs)
    real = difference.astype(np.float32, copy=False) * scale.astype(np.float32, copy=False)
    result: np.ndarray = real.astype(scale.dtype, copy=False)
    return result


def _along(parameter: np.ndarray, x: np.ndarray, attrs: dict[str, Any]) -> np.ndarray:
    """A scale or zero point, spread so that it broadcasts against x."""
    if parameter.size == 1:
        return parameter.reshape(())
    axis = attrs.get("axis", 1) % x.ndim
    block = attrs.get("block_size") or 0
    if block:
        spread = np.repeat(parameter, block, axis=axis)
        return spread[tuple(slice(0, d) for d in x.shape)]
    return parameter.reshape([-1 if a == axis else 1 for a in range(x.ndim)])


def _quantised(attrs: dict[str, Any], x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None) -> np.ndarray:
    if attrs.get("block_size") or zero is None or zero.dtype.kind not in "iu" or zero.dtype.itemsize > 2:
        raise NotImplementedError
    limits = np.iinfo(zero.dtype)
    levels = np.rint(x.astype(np.float32) / _along(scale, x, attrs).astype(np.float32))
    shifted = levels + _along(zero, x, attrs).astype(np.float32)
    result: np.ndarray = np.clip(shifted, limits.min, limits.max).astype(zero.dtype)
    return result


def _reshape(attrs: dict[str, Any], x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    extents = [int(d) for d in shape]
    if not attrs.get("allowzero"):
        extents = [x.shape[i] if d == 0 else d for i, d in enumerate(extents)]
    return x.reshape(extents)


def _slice(
    _: dict[str, Any],
    x: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    axes: np.ndarray | None = None,
    steps: np.ndarray | None = None,
) -> np.ndarray:
    where = [slice(None)] * x.ndim
    axes = np.arange(len(starts)) if axes is None else axes
    steps = np.ones(len(starts), np.int64) if steps is None else steps
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist(), strict=True):
        extent = x.shape[axis]
        stop = None if step < 0 and end < -extent else end
        where[axis] = slice(start, stop, step)
    return x[tuple(where)]


def _cast(attrs: dict[str, Any], x: np.ndarray) -> np.ndarray:
    to = onnx.helper.tensor_dtype_to_np_dtype(attrs["to"])
    if to.kind not in "iufb" or x.dtype.kind not in "iufb":
        raise NotImplementedError
    result: np.ndarray = x.astype(to)
    return result


def _div(_: dict[str, Any], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    quotient: np.ndarray = (np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)).astype(a.dtype)
    return quotient


def _constant_of_shape(attrs: dict[str, Any], shape: np.ndarray) -> np.ndarray:
    value = attrs.get("value")
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return np.full(tuple(int(d) for d in shape), fill.reshape(-1)[0], fill.dtype)


def _flip(_: dict[str, Any], x: np.ndarray) -> np.ndarray:
    other = np.uint8 if x.dtype == np.int8 else np.int8
    return (x.view(np.uint8) ^ np.uint8(0x80)).view(other)


def _concat(attrs: dict[str, Any], *parts: np.ndarray) -> np.ndarray:
    return np.concatenate(parts, axis=attrs["axis"])


def _axes(axes: np.ndarray | None) -> tuple[int, ...] | None:
    return None if axes is None else tuple(int(a) for a in axes)


def _expand(_: dict[str, Any], x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    extents = np.broadcast_shapes(x.shape, tuple(int(d) for d in shape))
    return np.ascontiguousarray(np.broadcast_to(x, extents))


def _flatten(attrs: dict[str, Any], x: np.ndarray) -> np.ndarray:
    axis = attrs["axis"]
    return x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))


def _unsqueeze(_: dict[str, Any], x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return np.expand_dims(x, tuple(int(a) for a in axes.ravel()))


_DIRECT: dict[str, Callable[..., Any]] = {
    FLIP_SIGN: _flip,
    "Add": lambda _, a, b: a + b,
    "Sub": lambda _, a, b: a - b,
    "Mul": lambda _, a, b: a * b,
    "Div": _div,
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Equal": lambda _, a, b: a == b,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": lambda attrs, x, i: np.take(x, i, axis=attrs["axis"]),
    "Identity": lambda _, x: x,
    "QuantizeLinear": _quantised,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": lambda _, x, axes=None: np.squeeze(x, _axes(axes)),
    "Transpose": lambda attrs, x: np.ascontiguousarray(np.transpose(x, attrs["perm"])),
    "Unsqueeze": _unsqueeze,
    "Where": lambda _, c, a, b: np.where(c, a, b),
}

__all__ = ["RANDOM", "dequantised", "evaluate", "numpy_dtype"]
