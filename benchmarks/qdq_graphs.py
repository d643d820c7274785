"""int8 QDQ networks of any size: inverted residual blocks as onnxruntime's quantiser writes them, every block with
scales and zero points of its own. One block = 3 convolutions with per-channel weights, 2 ReLUs, an addition: 20 nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, WIDE, SIDE = 8, 16, 6
NODES = 20  # of one block


class _Writer:
    """Nodes and initializers so far; every name is numbered."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(seed)

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{len(self.nodes)}", **attributes))
        return name

    def scale(self, shape: tuple[int, ...] = ()) -> np.ndarray:
        return self.random.uniform(0.01, 0.1, shape).astype(np.float32)

    def quantised(self, x: str, scale: np.ndarray) -> str:
        """QuantizeLinear and DequantizeLinear of an activation."""
        parameters = self.constant(scale), self.constant(np.asarray(self.random.integers(-20, 20), np.int8))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *parameters), *parameters)

    def conv(self, x: str, x_scale: np.ndarray, shape: tuple[int, ...], relu: bool, **attributes: Any) -> str:
        """A convolution on per-channel weights, its bias at the scale of the sums; its result quantised."""
        k = shape[0]
        scale = self.scale((k,))
        weight = self.random.integers(-127, 128, shape).astype(np.int8)
        bias = self.random.integers(-1000, 1000, k).astype(np.int32)
        w = self.node(
            "DequantizeLinear", self.constant(weight), self.constant(scale), self.constant(np.zeros(k, np.int8)), axis=0
        )
        b = self.node(
            "DequantizeLinear", self.constant(bias), self.constant((scale * x_scale).astype(np.float32)),
            self.constant(np.zeros(k, np.int32)), axis=0,
        )  # fmt: skip
        y = self.node("Conv", x, w, b, kernel_shape=list(shape[2:]), **attributes)
        return self.node("Relu", y) if relu else y

    def block(self, x: str, scale: np.ndarray) -> tuple[str, np.ndarray]:
        wide, deep, narrow, total = (self.scale() for _ in range(4))
        h = self.quantised(self.conv(x, scale, (WIDE, CHANNELS, 1, 1), relu=True), wide)
        h = self.quantised(self.conv(h, wide, (WIDE, 1, 3, 3), relu=True, group=WIDE, pads=[1, 1, 1, 1]), deep)
        h = self.quantised(self.conv(h, deep, (CHANNELS, WIDE, 1, 1), relu=False), narrow)
        return self.quantised(self.node("Add", x, h), total), total


def build(blocks: int, seed: int = 0) -> onnx.ModelProto:
    """A network of so many blocks on a float input."""
    writer = _Writer(seed)
    scale = writer.scale()
    x = writer.quantised("x", scale)
    for _ in range(blocks):
        x, scale = writer.block(x, scale)
    shape = [1, CHANNELS, SIDE, SIDE]
    graph = helper.make_graph(
        writer.nodes, "qdq",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        writer.constants,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
