"""A float model and its statistics -> standard QDQ: int8 activations, int8 weights per channel, int32 biases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper

from quantizer.grids import Grid, grid_of, grids
from quantizer.prepare import constants, prepare, store
from quantizer.statistics import TensorStatistics, constant_statistics

LINEAR = ("Conv", "Gemm", "MatMul")
CLAMPS = ("Relu", "Clip")
ARITHMETIC = ("Add", "Sub", "Mul")


def activations(model: onnx.ModelProto) -> tuple[str, ...]:
    """The float tensors whose statistics `quantise` reads: inputs and results that become integers."""
    return tuple(t for t in _float_tensors(prepare(model)) if t)


def quantise(model: onnx.ModelProto, statistics: Mapping[str, TensorStatistics]) -> onnx.ModelProto:
    """The model with QuantizeLinear/DequantizeLinear around its activations and DequantizeLinear on its constants.

    Activations are int8, asymmetric, zero representable; weights of Conv, Gemm and MatMul int8, symmetric, per output
    channel; biases int32 at (input scale * weight scale). Inputs and outputs of the model stay float. A range that a
    tensor's statistics carry (`known_range`) counts before what was measured; the parts and the result of a Concat have
    one scale. Raises GapFuseError for an opset below 13, a model already quantised, or a tensor without statistics.
    """
    result = prepare(model)
    graph, values = result.graph, constants(result)
    found = grids(graph, _float_tensors(result), statistics)
    _quantise_constants(graph, values, found)
    _place(graph, values, found)
    _drop_unused(graph)
    del graph.value_info[:]
    onnx.checker.check_model(result)
    return result


def _float_tensors(model: onnx.ModelProto) -> list[str]:
    inferred = onnx.shape_inference.infer_shapes(model)
    graph = inferred.graph
    types = {v.name: v.type.tensor_type.elem_type for v in [*graph.input, *graph.value_info, *graph.output]}
    held = {t.name for t in graph.initializer}
    absorbed = _absorbed(graph, held)
    made = [i.name for i in graph.input if i.name not in held] + [o for n in graph.node for o in n.output if o]
    return [t for t in made if types.get(t) == TensorProto.FLOAT and t not in absorbed]


def _absorbed(graph: onnx.GraphProto, held: set[str]) -> set[str]:
    """Results that never exist in integers: a sum before its only clamp, a product before its bias."""
    users: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            users[name].append(node)
    outputs = {o.name for o in graph.output}
    return {
        n.output[0]
        for n in graph.node
        if n.output[0] not in outputs and len(users[n.output[0]]) == 1 and _joins(n, users[n.output[0]][0], held)
    }


def _joins(node: onnx.NodeProto, user: onnx.NodeProto, held: set[str]) -> bool:
    if user.op_type in CLAMPS:
        return node.op_type in (*LINEAR, *ARITHMETIC)
    return (
        node.op_type == "MatMul"
        and user.op_type == "Add"
        and node.input[1] in held
        and any(i in held for i in user.input)
    )


def _quantise_constants(graph: onnx.GraphProto, values: dict[str, np.ndarray], grids: Mapping[str, Grid]) -> None:
    scales: dict[str, np.ndarray] = {}  # accumulator scale of each MatMul's result, by last axis
    for index, node in enumerate(list(graph.node)):
        if node.op_type in LINEAR and _has_weight(node, values) and node.input[0] in grids:
            total = _weight(graph, values, node, index, grids[node.input[0]].scale)
            if node.op_type == "MatMul":
                scales[node.output[0]] = total
        elif node.op_type in ARITHMETIC:
            _operand(graph, values, node, index, scales)
        elif node.op_type == "Concat" and node.output[0] in grids:
            _parts(graph, values, node, index, grids[node.output[0]])


def _weight(
    graph: onnx.GraphProto, values: dict[str, np.ndarray], node: onnx.NodeProto, index: int, input_scale: float
) -> np.ndarray:
    weight = values[node.input[1]].astype(np.float64)
    axis = _channel_axis(node, weight.ndim)
    others = tuple(k for k in range(weight.ndim) if k != axis)
    peak = np.abs(weight).max(axis=others)
    scale = np.where(peak > 0, peak / 127, 1.0).astype(np.float32)
    spread = scale.reshape([-1 if k == axis else 1 for k in range(weight.ndim)])
    q = np.clip(np.rint(weight / spread), -127, 127).astype(np.int8)
    node.input[1] = _dequantise(graph, values, f"{node.input[1]}/{index}", q, scale, axis)
    total = (np.float32(input_scale) * scale).astype(np.float32)
    if len(node.input) > 2 and node.input[2] in values and _is_bias(values[node.input[2]], total):
        node.input[2] = _bias(graph, values, f"{node.input[2]}/{index}", values[node.input[2]], total)
    return total


def _has_weight(node: onnx.NodeProto, values: Mapping[str, np.ndarray]) -> bool:
    return node.input[1] in values and values[node.input[1]].ndim > 1 and values[node.input[1]].size > 0


def _is_bias(constant: np.ndarray, scale: np.ndarray) -> bool:
    return constant.size == 1 or (constant.size == scale.size and constant.shape[-1] == scale.size)


def _channel_axis(node: onnx.NodeProto, rank: int) -> int:
    transposed = any(a.name == "transB" and a.i for a in node.attribute)
    return 0 if node.op_type == "Conv" or transposed else rank - 1


def _bias(graph: onnx.GraphProto, values: dict[str, np.ndarray], name: str, bias: np.ndarray, scale: np.ndarray) -> str:
    full = np.broadcast_to(bias.reshape(-1), scale.shape)
    q = np.clip(np.rint(full / scale.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int32)
    return _dequantise(graph, values, name, q, scale, 0)


def _operand(
    graph: onnx.GraphProto,
    values: dict[str, np.ndarray],
    node: onnx.NodeProto,
    index: int,
    scales: Mapping[str, np.ndarray],
) -> None:
    for k, name in enumerate(node.input):
        if name not in values or values[name].dtype != np.float32 or not values[name].size:
            continue
        constant, scale = values[name], scales.get(node.input[1 - k])
        if node.op_type == "Add" and scale is not None and _is_bias(constant, scale):
            node.input[k] = _bias(graph, values, f"{name}/{index}", constant, scale)
            continue
        node.input[k] = _on_grid(graph, values, f"{name}/{index}", constant, grid_of(constant_statistics(constant)))


def _parts(graph: onnx.GraphProto, values: dict[str, np.ndarray], node: onnx.NodeProto, index: int, grid: Grid) -> None:
    """Constant parts of a Concat, on the grid of its result."""
    for k, name in enumerate(node.input):
        if name in values and values[name].dtype == np.float32 and values[name].size:
            node.input[k] = _on_grid(graph, values, f"{name}/{index}.{k}", values[name], grid)


def _on_grid(graph: onnx.GraphProto, values: dict[str, np.ndarray], name: str, constant: np.ndarray, grid: Grid) -> str:
    q = np.clip(np.rint(constant / grid.scale) + grid.zero, -128, 127).astype(np.int8)
    return _dequantise(graph, values, name, q, np.float32(grid.scale), None, grid.zero)


def _dequantise(
    graph: onnx.GraphProto,
    values: dict[str, np.ndarray],
    name: str,
    q: np.ndarray,
    scale: np.ndarray | np.float32,
    axis: int | None,
    zero: int = 0,
) -> str:
    zeros = np.full(np.shape(scale), zero, q.dtype)
    parts = [
        store(graph, values, f"{name}/{part}", np.asarray(array))
        for part, array in (("q", q), ("scale", scale), ("zero", zeros))
    ]
    attributes = {} if axis is None else {"axis": axis}
    graph.node.insert(0, helper.make_node("DequantizeLinear", parts, [f"{name}/dq"], f"{name}/dq", **attributes))  # type: ignore[arg-type]
    return f"{name}/dq"


def _place(graph: onnx.GraphProto, values: dict[str, np.ndarray], grids: Mapping[str, Grid]) -> None:
    """Q and DQ after each tensor's maker; an input's users read NAME/dq, a result keeps its name on the DQ."""
    inputs = {i.name for i in graph.input} & set(grids)
    nodes = [n for name in sorted(inputs) for n in _pair(graph, values, name, name, f"{name}/dq", grids[name])]
    for node in list(graph.node):
        node.input[:] = [f"{i}/dq" if i in inputs else i for i in node.input]
        results = [o for o in node.output if o in grids]
        node.output[:] = [f"{o}/float" if o in grids else o for o in node.output]
        nodes += [node, *(n for o in results for n in _pair(graph, values, o, f"{o}/float", o, grids[o]))]
    del graph.node[:]
    graph.node.extend(nodes)


def _pair(
    graph: onnx.GraphProto, values: dict[str, np.ndarray], name: str, source: str, result: str, grid: Grid
) -> list[onnx.NodeProto]:
    scale = store(graph, values, f"{name}/scale", np.array(grid.scale, np.float32))
    zero = store(graph, values, f"{name}/zero", np.array(grid.zero, np.int8))
    return [
        helper.make_node("QuantizeLinear", [source, scale, zero], [f"{name}/q"], f"{name}/q"),
        helper.make_node("DequantizeLinear", [f"{name}/q", scale, zero], [result], f"{name}/dq"),
    ]


def _drop_unused(graph: onnx.GraphProto) -> None:
    used = {i for n in graph.node for i in n.input} | {o.name for o in graph.output}
    kept = [t for t in graph.initializer if t.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    inputs = {i.name for i in graph.input}
    names = {t.name for t in kept}
    for value in [i for i in graph.input if i.name in inputs - used and i.name not in names]:
        graph.input.remove(value)
