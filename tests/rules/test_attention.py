"""Attention that the generated models do not reach: the operator's forms, masks of truth values, torch's heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import assume, given, note
from hypothesis import strategies as st

from tests.rules import running
from tests.rules.graphs import BOOL, FLOAT, Graph


def check(model: onnx.ModelProto, rule: str, seed: int) -> None:
    note(onnx.printer.to_text(model.graph))
    seen, found, reasons = running.candidates(model, rule)
    chosen = running.taking_all(seen, found)
    assert chosen is not None, reasons
    feeds = running.draw_inputs(model, np.random.default_rng(seed))
    want = running.by_onnxruntime(model, feeds)
    assume(not np.isnan(want[0]).any())  # a row that sees nothing: each runtime has its own idea
    running.assert_close(running.by_references(seen, chosen, feeds), want, summands=2.0)


SIZE = st.integers(1, 4)


@given(b=SIZE, g=st.integers(1, 2), shared=st.integers(1, 2), t=SIZE, c=SIZE, d=SIZE, e=SIZE, data=st.data())
def test_operator(b: int, g: int, shared: int, t: int, c: int, d: int, e: int, data: st.DataObject) -> None:
    graph, h = Graph(23), g * shared
    rows = data.draw(st.booleans(), label="rows")
    shapes = ((b, h, t, d), (b, g, c, d), (b, g, c, e))
    inputs = [graph.input(n, (s[0], s[2], s[1] * s[3]) if rows else s) for n, s in zip("qkv", shapes, strict=True)]
    attrs: dict[str, Any] = {"q_num_heads": h, "kv_num_heads": g} if rows else {}
    attrs |= data.draw(st.sampled_from([{}, {"scale": 0.7}, {"is_causal": 1}, {"softcap": 1.5}]))
    mask = data.draw(st.sampled_from(["none", "float", "bool"]))
    if mask != "none":
        shape = data.draw(st.sampled_from([(t, c), (1, 1, t, c), (b, 1, t, c), (b, h, t, c)]))
        inputs.append(graph.input("mask", shape, BOOL if mask == "bool" else FLOAT))
    graph.node("Attention", *inputs, **attrs)
    check(graph.model(), "attention_native", data.draw(st.integers(0, 2**32 - 1)))


@given(t=SIZE, c=SIZE, d=SIZE, e=SIZE, data=st.data())
def test_scores_that_truth_values_replace(t: int, c: int, d: int, e: int, data: st.DataObject) -> None:
    graph = Graph(17)
    lead = data.draw(st.sampled_from([(), (3,), (2, 2)]))
    q, k, v = (graph.input(n, (*lead, *s)) for n, s in (("q", (t, d)), ("k", (d, c)), ("v", (c, e))))
    scores = graph.node("MatMul", q, k)
    if data.draw(st.booleans()):
        scores = graph.node("Mul", graph.constant(0.4), scores)
    mask = graph.input("mask", data.draw(st.sampled_from([(t, c), (1, c), (c,)])), BOOL)
    low = graph.constant(data.draw(st.sampled_from([-np.inf, -3.4e38, -1000.0])))
    branches = (scores, low) if data.draw(st.booleans()) else (low, scores)
    weights = graph.node("Softmax", graph.node("Where", mask, *branches), axis=-1)
    if data.draw(st.booleans()):
        weights = graph.node("Where", graph.node("IsNaN", weights), graph.constant(0.0), weights)
    graph.node("MatMul", weights, v)
    check(graph.model(), "attention_selected", data.draw(st.integers(0, 2**32 - 1)))


@given(b=SIZE, h=SIZE, t=SIZE, c=SIZE, d=SIZE, data=st.data())
def test_heads_as_torch_splits_them(b: int, h: int, t: int, c: int, d: int, data: st.DataObject) -> None:
    """Rows first, heads and batch in one axis for a while: no stored order has that view, the match has."""
    assume(h * d > 1 and b * h > 1 and t > 1 and c > 1)
    graph = Graph(17)

    def heads(name: str, n: int, order: tuple[int, ...]) -> str:
        split = graph.node("Reshape", graph.input(name, (n, b, h * d)), graph.constant([n, b * h, d], "int64"))
        turned = graph.node("Transpose", split, perm=order)
        shape = [b, h, *((n, d) if order == (1, 0, 2) else (d, n))]
        return graph.node("Reshape", turned, graph.constant(shape, "int64"))

    q, k, v = heads("q", t, (1, 0, 2)), heads("k", c, (1, 2, 0)), heads("v", c, (1, 0, 2))
    scores = graph.node("MatMul", graph.node("Mul", q, graph.constant([0.5])), k)
    if data.draw(st.booleans()):
        scores = graph.node("Add", scores, graph.input("mask", (t, c)))
    graph.node("MatMul", graph.node("Softmax", scores, axis=-1), v)
    check(graph.model(), "multi_head_attention", data.draw(st.integers(0, 2**32 - 1)))
