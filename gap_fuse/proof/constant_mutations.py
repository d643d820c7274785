"""Mutations of a model's constants and element types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Made = Iterator[tuple[str, onnx.ModelProto]]


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that may be changed."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def _constants(model: onnx.ModelProto) -> list[tuple[int, str, np.ndarray]]:
    return [(i, t.name, numpy_helper.to_array(t)) for i, t in enumerate(model.graph.initializer)]


def _with_constant(model: onnx.ModelProto, at: int, value: np.ndarray) -> onnx.ModelProto:
    made = copied(model)
    made.graph.initializer[at].CopyFrom(numpy_helper.from_array(value, model.graph.initializer[at].name))
    return made


def literal(model: onnx.ModelProto) -> Made:
    """A constant of one element times 1 + 1e-3 and 1 - 1e-3; an integer plus and minus 1."""
    for i, name, value in _constants(model):
        if value.size != 1 or value.dtype.kind not in "fiu":
            continue
        changed = (
            [value * value.dtype.type(f) for f in (1.001, 0.999)]
            if value.dtype.kind == "f"
            else [value + value.dtype.type(1), value - value.dtype.type(1)]
        )
        for v in changed:
            yield f"{name} = {v.item()}", _with_constant(model, i, np.asarray(v, value.dtype))


def integers(model: onnx.ModelProto) -> Made:
    """One element of a list of integers (axes, pads, starts) plus and minus 1."""
    for i, name, value in _constants(model):
        if value.size < 2 or value.dtype != np.int64 or value.ndim != 1:
            continue
        for at in range(min(value.size, 4)):
            for d in (1, -1):
                moved = value.copy()
                moved[at] += d
                yield f"{name} = {moved.tolist()}", _with_constant(model, i, moved)


def shape(model: onnx.ModelProto) -> Made:
    """A float constant of other extents: [1], [D, 1], [N, D], one rank more, and those of the result."""
    rng = np.random.default_rng(0)
    whole = [tuple(d.dim_value for d in o.type.tensor_type.shape.dim) for o in model.graph.output]
    results = [s for extents in whole for s in (extents, (1, *extents[1:])) if extents]
    for i, name, value in _constants(model):
        if value.dtype != np.float32:
            continue
        d = value.shape[-1] if value.ndim else 1
        for extents in dict.fromkeys(((1,), (d, 1), (d, d), (1, *value.shape), (2, *value.shape), *results)):
            if extents != value.shape:
                drawn = rng.permutation(np.resize(value, extents).ravel()).reshape(extents) * 0.75
                yield f"{name}: {list(extents)}", _with_constant(model, i, drawn.astype(np.float32))


def rank(model: onnx.ModelProto) -> Made:
    """A graph input with one axis more in front."""
    for i, info in enumerate(model.graph.input):
        for extent in (1, 2):
            made = copied(model)
            dims = made.graph.input[i].type.tensor_type.shape.dim
            old = [d.dim_value for d in dims]
            del dims[:]
            for d in (extent, *old):
                dims.add().dim_value = d
            yield f"{info.name}: {[extent, *old]}", made


def not_constant(model: onnx.ModelProto) -> Made:
    """A constant made a graph input."""
    for i, name, value in _constants(model):
        made = copied(model)
        del made.graph.initializer[i]
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        made.graph.input.append(helper.make_tensor_value_info(name, kind, value.shape))
        yield name, made


def dtype(model: onnx.ModelProto) -> Made:
    """Every float32 of the model float16 or float64; a graph input of another integer type."""
    for kind, numpy in ((TensorProto.FLOAT16, np.float16), (TensorProto.DOUBLE, np.float64)):
        made = copied(model)
        for info in made.graph.input:
            if info.type.tensor_type.elem_type == TensorProto.FLOAT:
                info.type.tensor_type.elem_type = kind
        for i, _, value in _constants(model):
            if value.dtype == np.float32:
                made = _with_constant(made, i, value.astype(numpy))
        yield str(np.dtype(numpy)), made
    for i, info in enumerate(model.graph.input):
        for kind in (TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64):
            if info.type.tensor_type.elem_type not in (kind, TensorProto.FLOAT):
                made = copied(model)
                made.graph.input[i].type.tensor_type.elem_type = kind
                yield f"{info.name}: {TensorProto.DataType.Name(kind).lower()}", made
