"""A model in float64: who is right where the C and onnxruntime's float32 differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from fusion_engine import read_model, view
from fusion_engine.view import view_to_model


def in_float64(
    model: onnx.ModelProto, outputs: Sequence[str], feeds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray] | None:
    """Outputs by name with every float32 of the model widened, Q and DQ kept; None where onnx's reference evaluator
    cannot.

    It evaluates the view: of the newest operators it is right, of old ones not always (BatchNormalization before 15).
    """
    return as_written_in_float64(view_to_model(view(read_model(model))), outputs, feeds)


def as_written_in_float64(
    model: onnx.ModelProto, outputs: Sequence[str], feeds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray] | None:
    """The same without the view: its operators as the file has them."""
    from onnx.reference import ReferenceEvaluator  # slow to load, and hardly ever needed

    try:
        with np.errstate(all="ignore"):
            live = ReferenceEvaluator(widened(model))
            found = live.run(list(outputs), {n: _wide(np.asarray(v)) for n, v in feeds.items()})
    except Exception:  # it lacks operators and raises whatever numpy does: then there is no such reference
        return None
    return {n: np.asarray(f) for n, f in zip(outputs, found, strict=True)}


def _wide(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float64) if value.dtype == np.float32 else value


def widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with float64 in place of every float32."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for info in (*wide.graph.input, *wide.graph.output):
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = TensorProto.DOUBLE
    _widen_graph(wide.graph)
    for function in wide.functions:
        _widen_nodes(function.node)
    return wide


def _widen_graph(graph: onnx.GraphProto) -> None:
    del graph.value_info[:]
    for t in graph.initializer:
        _widen_tensor(t)
    _widen_nodes(graph.node)


def _widen_nodes(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        for a in node.attribute:
            if a.name == "to" and node.op_type == "Cast" and a.i == TensorProto.FLOAT:
                a.i = TensorProto.DOUBLE
            if a.HasField("t"):
                _widen_tensor(a.t)
            if a.HasField("g"):
                _widen_graph(a.g)


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
