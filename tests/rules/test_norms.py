"""Group normalisation, whose types onnx does not infer: the operator and what torch writes below opset 21."""

from __future__ import annotations

import numpy as np
import onnx
from hypothesis import given, note
from hypothesis import strategies as st

from tests.rules import running
from tests.rules.graphs import Graph

SEED = st.integers(0, 2**32 - 1)


def check(graph: Graph, rule: str, seed: int) -> None:
    model = graph.model()
    note(onnx.printer.to_text(model.graph))
    seen, found, reasons = running.candidates(model, rule)
    chosen = running.taking_all(seen, found)
    assert chosen is not None, reasons
    feeds = running.draw_inputs(model, np.random.default_rng(seed))
    running.assert_close(running.by_references(seen, chosen, feeds), running.by_onnxruntime(model, feeds), summands=4.0)


@given(n=st.integers(1, 2), g=st.integers(1, 3), k=st.integers(1, 3), seed=SEED, data=st.data())
def test_operator(n: int, g: int, k: int, seed: int, data: st.DataObject) -> None:
    graph, rng = Graph(data.draw(st.sampled_from([21, 23]))), np.random.default_rng(seed)
    spatial = tuple(data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=2)))
    x = graph.input("x", (n, g * k, *spatial))
    weights = [graph.constant(rng.standard_normal(g * k)) for _ in range(2)]
    y = graph.node("GroupNormalization", x, *weights, num_groups=g, epsilon=1e-3)
    if data.draw(st.booleans()):
        graph.node("Relu", y)
    check(graph, "groupnorm", seed)


@given(n=st.integers(1, 2), g=st.integers(1, 3), k=st.integers(2, 3), seed=SEED, data=st.data())
def test_instances(n: int, g: int, k: int, seed: int, data: st.DataObject) -> None:
    graph, rng = Graph(17), np.random.default_rng(seed)
    spatial = tuple(data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=2)))
    shape = (n, g * k, *spatial)
    per_channel = data.draw(st.sampled_from([(g * k, *[1] * len(spatial)), (1, g * k, *[1] * len(spatial)), (), (1,)]))
    inner = [graph.constant(rng.standard_normal(g)) for _ in range(2)]
    grouped = graph.node("Reshape", graph.input("x", shape), graph.constant([0, g, -1], "int64"))
    y = graph.node("InstanceNormalization", grouped, *inner, epsilon=1e-3)
    y = graph.node("Reshape", y, graph.constant(shape, "int64"))
    if data.draw(st.booleans()):
        y = graph.node("Mul", graph.constant(rng.standard_normal(per_channel)), y)
        if data.draw(st.booleans()):
            y = graph.node("Add", y, graph.constant(rng.standard_normal(per_channel)))
    if data.draw(st.booleans()):
        graph.node("Clip", y, graph.constant(-0.5), graph.constant(0.75))
    check(graph, "groupnorm_instances" if len(spatial) == 2 else "groupnorm_instances_1d", seed)
