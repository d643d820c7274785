"""Small models written node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL


class Graph:
    """A model under construction."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.inputs: dict[str, tuple[int, tuple[int, ...]]] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.nodes: list[onnx.NodeProto] = []

    def input(self, name: str, shape: tuple[int, ...], kind: int = FLOAT) -> str:
        self.inputs[name] = (kind, shape)
        return name

    def constant(self, value: Any, dtype: str = "float32") -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def node(self, op: str, *inputs: str, **attrs: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        return name

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "drawn",
            [helper.make_tensor_value_info(n, k, s) for n, (k, s) in self.inputs.items()],
            [helper.make_tensor_value_info(self.nodes[-1].output[0], FLOAT, None)],
            [numpy_helper.from_array(v, n) for n, v in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
