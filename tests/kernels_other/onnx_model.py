"""Single-operator models run by onnxruntime with its optimisations off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime as ort
from onnx import NodeProto, helper

OPSET = 21


def node(op: str, inputs: Sequence[str], output: str = "y", **attributes: object) -> NodeProto:
    return helper.make_node(op, list(inputs), [output], **attributes)


def run_nodes(
    nodes: Sequence[NodeProto], inputs: Mapping[str, np.ndarray], dtype: str, opset: int = OPSET
) -> np.ndarray:
    """`y` of the nodes; every input is a graph input."""
    element = {n: helper.np_dtype_to_tensor_dtype(v.dtype) for n, v in inputs.items()}
    given = [helper.make_tensor_value_info(n, element[n], v.shape) for n, v in inputs.items()]
    result = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)
    graph = helper.make_graph(list(nodes), "g", given, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["y"], dict(inputs))[0])


def run_operator(op: str, inputs: Mapping[str, np.ndarray], dtype: str = "float32", **attributes: object) -> np.ndarray:
    """One operator whose inputs are all present, in the order of `inputs`."""
    return run_nodes([node(op, list(inputs), **attributes)], inputs, dtype)


def run_quantised(
    op: str,
    inputs: Mapping[str, tuple[np.ndarray, float, int]],
    result: tuple[float, int],
    plain: Mapping[str, np.ndarray] | None = None,
    **attributes: object,
) -> np.ndarray:
    """Q(op(DQ(...))): int8 inputs with (values, scale, zero point), then plain ones; the result's scale and zero
    point."""
    feeds: dict[str, np.ndarray] = {}
    nodes: list[NodeProto] = []
    for name, (values, scale, zero) in inputs.items():
        feeds |= {name: values, f"{name}_s": np.array(scale, np.float32), f"{name}_z": np.array(zero, np.int8)}
        nodes.append(node("DequantizeLinear", (name, f"{name}_s", f"{name}_z"), f"{name}_f"))
    feeds |= dict(plain or {})
    feeds |= {"y_s": np.array(result[0], np.float32), "y_z": np.array(result[1], np.int8)}
    nodes.append(node(op, [*(f"{n}_f" for n in inputs), *(plain or {})], "y_f", **attributes))
    nodes.append(node("QuantizeLinear", ("y_f", "y_s", "y_z")))
    return run_nodes(nodes, feeds, "int8")
