"""A float model made ready: constants as initializers, weights dequantised, BatchNormalization folded into Conv."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx.inliner
from onnx import numpy_helper

from fusion_engine.diagnostics import Diagnostic, GapFuseError

MICROSOFT = "com.microsoft"


def prepare(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same function with plain constants, functions inlined, com.microsoft's fake quantisation taken out.

    Raises GapFuseError below opset 13, or for a model already quantised.
    """
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    if opset < 13:
        raise GapFuseError(
            Diagnostic(
                f"the model's opset is {opset}; per-channel quantisation needs 13 or newer",
                help="onnx.version_converter.convert_version(model, 13) raises it",
            )
        )
    copy = onnx.inliner.inline_local_functions(model)  # their nodes keep the scopes that an exporter wrote
    values = constants(copy)
    _fold_constants(copy.graph, values)
    _drop_annotations(copy.graph, values)
    if any(n.op_type in ("QuantizeLinear", "DequantizeLinear") for n in copy.graph.node):
        raise GapFuseError(
            Diagnostic(
                "the model is already quantised: it has QuantizeLinear or DequantizeLinear on activations",
                help="give the float model",
            )
        )
    _fold_batch_norms(copy.graph, values)
    return copy


def constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Initializers by name."""
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def store(graph: onnx.GraphProto, values: dict[str, np.ndarray], name: str, array: np.ndarray) -> str:
    """Add a constant to the graph; its name."""
    values[name] = array
    graph.initializer.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
    return name


def _fold_constants(graph: onnx.GraphProto, values: dict[str, np.ndarray]) -> None:
    for node in list(graph.node):
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            store(graph, values, node.output[0], numpy_helper.to_array(node.attribute[0].t))
        elif node.op_type == "Identity" and node.input[0] in values:
            store(graph, values, node.output[0], values[node.input[0]])
        elif node.op_type == "DequantizeLinear" and all(i in values for i in node.input if i):
            store(graph, values, node.output[0], _dequantised(node, values))
        else:
            continue
        graph.node.remove(node)


def _dequantised(node: onnx.NodeProto, values: dict[str, np.ndarray]) -> np.ndarray:
    q, scale = values[node.input[0]], values[node.input[1]]
    zero = values[node.input[2]] if len(node.input) > 2 and node.input[2] else np.zeros_like(scale, q.dtype)
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    shape = (
        [-1 if k == axis % q.ndim else 1 for k in range(q.ndim)] if scale.ndim == 1 and scale.size > 1 else [1] * q.ndim
    )
    wide: np.ndarray = q.astype(np.int64) - zero.reshape(shape).astype(np.int64)
    result: np.ndarray = (wide * scale.reshape(shape)).astype(np.float32)
    return result


def _drop_annotations(graph: onnx.GraphProto, values: dict[str, np.ndarray]) -> None:
    """com.microsoft Q and DQ in a row around float operators, which only state a range (`known_ranges` reads it)."""
    outputs = {o.name for o in graph.output}
    pairs = {n.output[0]: n for n in graph.node if n.domain == MICROSOFT and n.op_type == "QuantizeLinear"}
    renamed: dict[str, str] = {}
    for dq in [n for n in graph.node if n.domain == MICROSOFT and n.op_type == "DequantizeLinear"]:
        q = pairs.get(dq.input[0])
        if q is None or dq.output[0] in outputs or [values.get(i) is None for i in dq.input[1:]].count(True):
            continue
        renamed[dq.output[0]] = q.input[0]
        graph.node.remove(dq)
    for node in graph.node:
        node.input[:] = [_source(i, renamed) for i in node.input]
    read = {i for n in graph.node for i in n.input} | outputs
    for q in [q for name, q in pairs.items() if name not in read]:
        graph.node.remove(q)


def _source(name: str, renamed: dict[str, str]) -> str:
    while name in renamed:
        name = renamed[name]
    return name


def _fold_batch_norms(graph: onnx.GraphProto, values: dict[str, np.ndarray]) -> None:
    uses = Counter(i for n in graph.node for i in n.input) + Counter(o.name for o in graph.output)
    makers = {n.output[0]: n for n in graph.node if n.op_type == "Conv"}
    for bn in [n for n in graph.node if n.op_type == "BatchNormalization"]:
        conv = makers.get(bn.input[0])
        if conv is None or uses[bn.input[0]] > 1 or any(i not in values for i in [*conv.input[1:], *bn.input[1:]]):
            continue
        gamma, beta, mean, var = (values[i].astype(np.float64) for i in bn.input[1:5])
        factor = gamma / np.sqrt(var + next((a.f for a in bn.attribute if a.name == "epsilon"), 1e-5))
        weight = values[conv.input[1]]
        bias = values[conv.input[2]] if len(conv.input) > 2 else 0.0
        folded = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
        name = bn.output[0]
        inputs = [
            conv.input[0],
            store(graph, values, f"{name}/weight", folded.astype(np.float32)),
            store(graph, values, f"{name}/bias", ((bias - mean) * factor + beta).astype(np.float32)),
        ]
        del conv.input[:]
        conv.input.extend(inputs)
        conv.output[0] = name
        graph.node.remove(bn)
