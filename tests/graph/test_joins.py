"""Concatenations, splits and views as placement: what is made in its place, and what must still be copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gap_fuse
from fusion_engine.model import read_model
from fusion_engine.planning import Planned
from fusion_engine.reference import run_reference
from tests.graph.conftest import onnxruntime_values, ordered_graph, random_inputs


class Net:
    """A model of an image [1, 4, 6, 6] and convolutions that keep its height and width."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def constant(self, data: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(data, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def conv(self, x: str, channels: int, results: int) -> str:
        weight = self.constant(self.rng.standard_normal((results, channels, 3, 3)).astype(np.float32))
        return self.op("Relu", *self.op("Conv", x, weight, pads=[1, 1, 1, 1]))[0]

    def concat(self, *parts: str, axis: int = 1) -> str:
        return self.op("Concat", *parts, axis=axis)[0]

    def split(self, x: str, *sizes: int) -> list[str]:
        return self.op("Split", x, self.ints(*sizes), outputs=len(sizes), axis=1)

    def model(self, *outputs: str) -> onnx.ModelProto:
        ends = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])
        graph = helper.make_graph(self.nodes, "joins", [image], ends, initializer=self.constants)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(proto)


def dense_block(n: Net) -> list[str]:
    """Each layer reads all before it, every concatenation written out flat (DenseNet)."""
    parts, channels = [n.conv("x", 4, 4)], 4
    for _ in range(3):
        parts.append(n.conv(n.concat(*parts) if len(parts) > 1 else parts[0], channels, 4))
        channels += 4
    return [n.conv(n.concat(*parts), channels, 2)]


def split_and_joined(n: Net) -> list[str]:
    """Halves of a tensor, one of them worked on, all concatenated (C2f, CSP)."""
    a, b = n.split(n.conv("x", 4, 6), 2, 4)
    return [n.conv(n.concat(a, b, n.conv(b, 4, 3)), 9, 2)]


def heads(n: Net) -> list[str]:
    """A detector's heads: transposed, flattened and concatenated over the scales."""
    found = []
    x = n.conv("x", 4, 4)
    for y in (x, n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])[0]):
        rows = n.op("Transpose", *n.op("Conv", y, n.constant(np.ones((4, 4, 1, 1), np.float32))), perm=[0, 2, 3, 1])
        found.append(n.op("Reshape", *rows, n.ints(1, -1, 2))[0])
    return [n.concat(*found)]


def output_as_rows(n: Net) -> list[str]:
    """An output that is a transposed, flattened view of what is computed."""
    return n.op("Reshape", *n.op("Transpose", n.conv("x", 4, 4), perm=[0, 2, 3, 1]), n.ints(1, 36, 4))


def used_twice(n: Net) -> list[str]:
    """One tensor in two places of a concatenation: it can be made in one of them."""
    x = n.conv("x", 4, 4)
    return [n.conv(n.concat(x, x), 8, 2)]


def parts_in_another_sequence(n: Net) -> list[str]:
    """Halves that change places, and a run that stands the other way round: as many copies as parts."""
    a, b = n.split(n.conv("x", 4, 4), 2, 2)
    return [n.conv(n.concat(b, a), 4, 2)]


def also_an_output(n: Net) -> list[str]:
    """A tensor that is an output owns its bytes: the concatenation holds a copy."""
    x = n.conv("x", 4, 4)
    return [n.conv(n.concat(x, n.conv(x, 4, 2)), 6, 2), x]


def read_otherwise_too(n: Net) -> list[str]:
    """The tensor behind a flattened output is read by a convolution as well: it keeps the order that suits that."""
    x = n.conv("x", 4, 4)
    return [*n.op("Reshape", *n.op("Transpose", x, perm=[0, 2, 3, 1]), n.ints(1, 36, 4)), n.conv(x, 4, 2)]


CASES = {
    dense_block: 0,
    split_and_joined: 0,
    heads: 0,
    output_as_rows: 0,
    used_twice: 1,
    parts_in_another_sequence: 2,
    also_an_output: 1,
    read_otherwise_too: 1,
}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_parts_are_made_in_place(planner: Callable[..., Planned], case: Callable[[Net], list[str]]) -> None:
    """The values are onnxruntime's; so many calls copy, those aside that turn a convolution's output row-major."""
    net = Net()
    proto = net.model(*case(net))
    planned = planner(read_model(proto))
    graph = ordered_graph(planned)
    copies = [c for c in graph.calls if c.kernel == "copy"]
    rows = [c for c in copies if c.results[0][1] in graph.outputs and c.provenance.rule == "layout"]
    assert len(copies) - len(rows) == CASES[case]
    inputs = random_inputs(graph)
    values = run_reference(graph, planned.kernels, inputs)
    for name, expected in onnxruntime_values(proto, inputs).items():
        np.testing.assert_allclose(values[name], expected, rtol=1e-5, atol=1e-5 * max(1, np.abs(expected).max()))


def test_the_c_answers_alike(tmp_path: Path) -> None:
    net = Net()
    outputs = [o for case in (dense_block, split_and_joined, heads, output_as_rows) for o in case(net)]
    result = gap_fuse.compile(net.model(*outputs), l1=4000)
    verdict = gap_fuse.verify(result.write(tmp_path), samples=1)
    assert verdict.passed, str(verdict)
