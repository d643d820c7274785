"""Random small models from ONNX to the ordered graph and the fused model: the same values as onnxruntime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.fuse import fuse_model
from fusion_engine.graph_json import graph_from_json, graph_to_json
from fusion_engine.model import read_model
from fusion_engine.planning import Planned
from fusion_engine.reference import run_reference
from tests.graph.conftest import onnxruntime_values, ordered_graph, random_inputs

KINDS = ("Conv", "Relu", "Add", "Mul", "Concat", "Slice", "Transpose", "Reshape", "MaxPool", "Softmax", "Split", "Pad")


class Builder:
    def __init__(self, shape: tuple[int, ...], rng: np.random.Generator) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shapes: dict[str, tuple[int, ...]] = {"x": shape}
        self.rng = rng

    def constant(self, data: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(data, name))
        return name

    def node(self, op: str, inputs: list[str], *shapes: tuple[int, ...], **attrs: object) -> list[str]:
        results = [f"v{len(self.shapes) + i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(op, inputs, results, name=f"{op}_{len(self.nodes)}", **attrs))
        self.shapes.update(zip(results, shapes, strict=True))
        return results

    def model(self, outputs: list[str]) -> onnx.ModelProto:
        info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, self.shapes[n])  # noqa: E731
        graph = helper.make_graph(
            self.nodes, "random", [info("x")], [info(o) for o in outputs], initializer=self.constants
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    shape = draw(st.sampled_from([(1, 3, 4, 4), (1, 1, 5, 3), (2, 4, 3, 2)]))
    build = Builder(shape, np.random.default_rng(draw(st.integers(0, 99))))
    for _ in range(draw(st.integers(1, 8))):
        grow(draw, build, draw(st.sampled_from(KINDS)), draw(st.sampled_from(sorted(build.shapes))))
    made = [v for n in build.nodes for v in n.output]
    if not made:
        made = build.node("Relu", ["x"], shape)
    outputs = [made[-1], *sorted(draw(st.sets(st.sampled_from(made), max_size=2)) - {made[-1]})]
    return build.model(outputs)


def grow(draw: st.DrawFn, b: Builder, kind: str, source: str) -> None:
    shape = b.shapes[source]
    rank = len(shape)
    if kind in ("Relu", "Softmax"):
        b.node(kind, [source], shape, **({"axis": draw(st.integers(0, rank - 1))} if kind == "Softmax" else {}))
    elif kind in ("Add", "Mul"):
        same = sorted(v for v, s in b.shapes.items() if s == shape)
        other = draw(st.sampled_from([*same, ""]))
        vector = other or b.constant(b.rng.standard_normal((*shape[1:2], *(1,) * (rank - 2))).astype(np.float32))
        b.node(kind, [source, vector], shape)
    elif kind == "Conv" and rank == 4:
        weight = b.constant(b.rng.standard_normal((draw(st.integers(1, 5)), shape[1], 3, 3)).astype(np.float32))
        channels = b.constants[-1].dims[0]
        b.node("Conv", [source, weight], (shape[0], channels, *shape[2:]), pads=[1, 1, 1, 1])
    elif kind == "MaxPool" and rank == 4 and min(shape[2:]) >= 2:
        b.node("MaxPool", [source], (*shape[:2], shape[2] - 1, shape[3] - 1), kernel_shape=[2, 2])
    elif kind == "Concat":
        axis = draw(st.integers(0, rank - 1))
        fits = sorted(
            v for v, s in b.shapes.items() if len(s) == rank and all(i == axis or s[i] == shape[i] for i in range(rank))
        )
        parts = [*draw(st.lists(st.sampled_from(fits), min_size=1, max_size=3)), source]
        extent = sum(b.shapes[p][axis] for p in parts)
        b.node("Concat", parts, (*shape[:axis], extent, *shape[axis + 1 :]), axis=axis)
    elif kind == "Slice":
        axis = draw(st.integers(0, rank - 1))
        start = draw(st.integers(0, shape[axis] - 1))
        bounds = [b.constant(np.array([v], np.int64)) for v in (start, shape[axis], axis)]
        b.node("Slice", [source, *bounds], (*shape[:axis], shape[axis] - start, *shape[axis + 1 :]))
    elif kind == "Split":
        axis = draw(st.integers(0, rank - 1))
        if shape[axis] < 2:
            return
        first = draw(st.integers(1, shape[axis] - 1))
        sizes = b.constant(np.array([first, shape[axis] - first], np.int64))
        parts = [(*shape[:axis], n, *shape[axis + 1 :]) for n in (first, shape[axis] - first)]
        b.node("Split", [source, sizes], *parts, axis=axis)
    elif kind == "Pad":
        pads = draw(st.lists(st.integers(0, 2), min_size=2 * rank, max_size=2 * rank))
        grown = tuple(n + a + z for n, a, z in zip(shape, pads[:rank], pads[rank:], strict=True))
        value = [b.constant(np.array(1.5, np.float32))] if draw(st.booleans()) else []
        if np.prod(grown) <= 600:
            b.node("Pad", [source, b.constant(np.array(pads, np.int64)), *value], grown)
    elif kind == "Transpose":
        perm = draw(st.permutations(range(rank)))
        b.node("Transpose", [source], tuple(shape[p] for p in perm), perm=list(perm))
    elif kind == "Reshape":
        size = int(np.prod(shape))
        target = draw(st.sampled_from([(1, size), shape[::-1], (shape[0], size // shape[0]), (1, size, 1, 1)]))
        b.node("Reshape", [source, b.constant(np.array(target, np.int64))], target)


@given(models())
def test_a_random_model_keeps_its_values(planner: Callable[..., Planned], proto: onnx.ModelProto) -> None:
    onnx.checker.check_model(proto)
    planned = planner(read_model(proto))
    graph = ordered_graph(planned)
    inputs = random_inputs(graph)
    truth = onnxruntime_values(proto, inputs)
    values = run_reference(graph, planned.kernels, inputs)
    for name, expected in truth.items():
        np.testing.assert_allclose(values[name], expected, rtol=1e-5, atol=1e-5 * max(1, np.abs(expected).max()))
    text = graph_to_json(graph)
    assert graph_to_json(graph_from_json(text)) == text
    fused = fuse_model(planned)
    onnx.checker.check_model(fused, full_check=True)
    for name, got in onnxruntime_values(fused, inputs).items():
        np.testing.assert_allclose(got, truth[name], rtol=1e-5, atol=1e-5 * max(1, np.abs(truth[name]).max()))
    again = planner(read_model(fused))
    assert [(c.rule, c.variant, c.produces) for c in again.plan.chosen] == [
        (c.rule, c.variant, c.produces) for c in planned.plan.chosen
    ]
    assert fuse_model(again).SerializeToString(deterministic=True) == fused.SerializeToString(deterministic=True)
