"""GRU, LSTM and RNN as the operators allow them: directions, layouts, states, lengths, opsets; results asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from hypothesis import given, note
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.rules import running

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
FUNCTIONS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Relu"]}
OPSETS = (7, 14, 22)


@dataclass(frozen=True)
class Layer:
    """A node over x[steps, rows, inputs], or x[rows, steps, inputs] where layout is 1."""

    op: str
    opset: int
    direction: str
    layout: int
    sizes: tuple[int, int, int, int]  # steps, rows, inputs, units
    bias: bool
    lengths: bool
    states: str  # none, constant, input
    functions: bool
    inside: int  # linear_before_reset
    wanted: tuple[bool, bool, bool]  # Y, Y_h, Y_c

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1


@st.composite
def layers(draw: Any) -> Layer:
    op, opset = draw(st.sampled_from(sorted(GATES))), draw(st.sampled_from(OPSETS))
    wanted = [(1, 0, 0), (0, 1, 0), (1, 1, 0), *([(1, 1, 1)] if op == "LSTM" else [])]
    return Layer(
        op,
        opset,
        draw(st.sampled_from(["forward", "reverse", "bidirectional"])),
        draw(st.integers(0, 1)) if opset >= 14 else 0,
        tuple(draw(st.integers(1, 5)) for _ in range(4)),  # type: ignore[arg-type]
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from(["none", "constant", "input"])),
        draw(st.booleans()),
        draw(st.integers(0, 1)),
        draw(st.sampled_from(wanted)),
    )


def model_of(layer: Layer, rng: np.random.Generator) -> onnx.ModelProto:
    steps, rows, inputs, units = layer.sizes
    d, g = layer.directions, GATES[layer.op]

    def floats(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.5).astype(np.float32)

    constants = {"w": floats(d, g * units, inputs), "r": floats(d, g * units, units)}
    if layer.bias:
        constants["b"] = floats(d, 2 * g * units)
    if layer.lengths:
        constants["lens"] = np.full(rows, steps, np.int32)
    states = ["h0", *(["c0"] if layer.op == "LSTM" else [])] if layer.states != "none" else []
    shape = swapped((d, rows, units), layer)
    given_ = {"x": swapped((steps, rows, inputs), layer)} | {s: shape for s in states if layer.states == "input"}
    constants |= {s: floats(*shape) for s in states if layer.states == "constant"}
    attrs: dict[str, Any] = {"hidden_size": units, "direction": layer.direction}
    if layer.layout:
        attrs["layout"] = 1
    if layer.functions:
        attrs["activations"] = FUNCTIONS[layer.op] * d
    if layer.op == "GRU":
        attrs["linear_before_reset"] = layer.inside
    names = ["x", "w", "r", *(n if n in constants or n in given_ else "" for n in ("b", "lens", "h0", "c0"))]
    names = names[: 7 if layer.op == "LSTM" else 6]
    while not names[-1]:
        names.pop()
    outputs = [n if w else "" for n, w in zip(("y", "h", "c"), layer.wanted, strict=True)]
    while not outputs[-1]:
        outputs.pop()
    results = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs if o]
    graph = helper.make_graph(
        [helper.make_node(layer.op, names, outputs, **attrs)],
        "layer",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in given_.items()],
        results,
        [numpy_helper.from_array(v, n) for n, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", layer.opset)], ir_version=8)


def swapped(shape: tuple[int, int, int], layer: Layer) -> tuple[int, int, int]:
    return (shape[1], shape[0], shape[2]) if layer.layout else shape


def want(layer: Layer, seed: int, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """onnxruntime's, which has layout 0 alone: what goes in and comes out is turned around for it."""
    if not layer.layout:
        return running.by_onnxruntime(model_of(layer, np.random.default_rng(seed)), feeds)
    model = model_of(replace(layer, layout=0), np.random.default_rng(seed))
    ours = model_of(layer, np.random.default_rng(seed))
    turned = {i.name: i for i in ours.graph.initializer if i.name in ("h0", "c0")}
    for i in model.graph.initializer:
        if i.name in turned:
            i.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(turned[i.name]).swapaxes(0, 1).copy(), i.name))
    found = running.by_onnxruntime(model, {n: v.swapaxes(0, 1) for n, v in feeds.items()})
    return [f.transpose(2, 0, 1, 3) if f.ndim == 4 else f.swapaxes(0, 1) for f in found]


@given(layer=layers(), seed=st.integers(0, 2**32 - 1))
def test_layer_is_taken_and_computes_the_same(layer: Layer, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = model_of(layer, rng)
    note(onnx.printer.to_text(model.graph))
    seen, found, reasons = running.candidates(model, layer.op.lower())
    chosen = running.taking_all(seen, found)
    assert chosen is not None, reasons
    feeds = running.draw_inputs(model, rng)
    running.assert_close(running.by_references(seen, chosen, feeds), want(layer, seed, feeds), summands=1.0)
