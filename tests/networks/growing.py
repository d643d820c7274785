"""A random ONNX model being drawn, node by node: every value's type is known, constants stand in odd places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

OPSETS = (13, 17, 18, 21)
LARGEST = 3000  # elements of a drawn value
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Type:
    dtype: np.dtype
    shape: Shape

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass
class Net:
    """What is drawn so far. `types` holds the computed values, inputs included; constants are apart."""

    draw: st.DrawFn
    rng: np.random.Generator
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    types: dict[str, Type] = field(default_factory=dict)
    names: int = 0

    # ---- choices ----

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def odds(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def floats(self, rank: int | None = None) -> list[str]:
        """Float values so far, of one rank where it is given."""
        return [v for v, t in self.types.items() if t.dtype == np.float32 and rank in (None, len(t.shape))]

    def shape(self, value: str) -> Shape:
        return self.types[value].shape if value in self.types else self.constants[value].shape

    # ---- growth ----

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def input(self, dtype: type, shape: Shape) -> str:
        name = f"in{len(self.inputs)}"
        self.inputs.append(name)
        self.types[name] = Type(np.dtype(dtype), shape)
        return name

    def node(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> str:
        """The (first) result of a new node."""
        return self.results(op, inputs, outputs, **attributes)[0]

    def results(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(op, list(inputs), names, name=f"{op}_{names[0]}", **attributes)
        found = self._infer(node)
        self.nodes.append(node)
        for n in names:
            self.types[n] = found[n]
        return names

    def _infer(self, node: onnx.NodeProto) -> dict[str, Type]:
        """By a model of this node alone (operators that are functions say nothing of themselves)."""
        inputs = dict.fromkeys(i for i in node.input if i)
        free = [_info(i, self.types[i]) for i in inputs if i in self.types]
        known = [numpy_helper.from_array(self.constants[i], i) for i in inputs if i in self.constants]
        outputs = [onnx.ValueInfoProto(name=o) for o in node.output]
        graph = helper.make_graph([node], "one", free, outputs, known)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        return {o.name: _type(o.type) for o in inferred.graph.output}

    # ---- constants ----

    def constant(self, value: np.ndarray | np.generic) -> str:
        """An initializer, or a Constant node; the name."""
        array = np.asarray(value)
        name = self.name()
        self.constants[name] = array
        if self.odds(6):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)))
        return name

    def weight(self, *shape: int, scale: float = 0.5) -> str:
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def positive(self, *shape: int) -> str:
        return self.constant(self.rng.uniform(0.2, 2.0, shape).astype(np.float32))

    def scalar(self, value: float) -> str:
        """Of rank 0, or of shape [1]."""
        return self.constant(np.full((1,) if self.odds(3) else (), value, np.float32))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def broadcastable(self, shape: Shape) -> Shape:
        """A shape that broadcasts to `shape`: axes left out in front, others 1."""
        kept = self.integer(0, len(shape))
        return tuple(1 if self.odds(2) else d for d in shape[len(shape) - kept :])

    # ---- the end ----

    def model(self) -> onnx.ModelProto:
        """What nobody reads is an output, now and then something read as well."""
        made = [v for v in self.types if v not in self.inputs]
        read = {i for n in self.nodes for i in n.input}
        outputs = [v for v in made if v not in read or self.odds(12)] or made[-1:]
        stands = {n.output[0] for n in self.nodes if n.op_type == "Constant"}
        graph = helper.make_graph(
            self.nodes,
            "drawn",
            [_info(n, self.types[n]) for n in self.inputs],
            [_info(n, self.types[n]) for n in outputs],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n not in stands],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return model


def _type(proto: onnx.TypeProto) -> Type:
    tensor = proto.tensor_type
    assert tensor.HasField("shape"), proto
    assert all(d.HasField("dim_value") for d in tensor.shape.dim), proto
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return Type(np.dtype(dtype), tuple(d.dim_value for d in tensor.shape.dim))


def _info(name: str, t: Type) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(t.dtype), t.shape)


FLOAT = TensorProto.FLOAT
