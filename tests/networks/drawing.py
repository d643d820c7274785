"""Random small ONNX networks of the operators that the rules cover: in float, or quantised with Q/DQ pairs around
every value at scales measured on one random input."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime as ort
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


@dataclass
class Growing:
    """A model being drawn. Every value's shape is known; `maps` are the four-dimensional ones."""

    draw: st.DrawFn
    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def constant(self, data: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(data, name))
        return name

    def weight(self, *shape: int) -> str:
        fan = max(1, int(np.prod(shape[1:])))
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, op: str, inputs: list[str], shape: tuple[int, ...], **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"{op}_{len(self.nodes)}", **attributes))
        self.shapes[name] = shape
        return name

    def pick(self, *choices: int) -> int:
        return self.draw(st.sampled_from(choices))


def _window(g: Growing, x: str, most: int = 3, dilated: bool = True) -> tuple[dict[str, list[int]], tuple[int, int]]:
    kernel, dilations, strides, before, after, out = [], [], [], [], [], []
    for n in g.shapes[x][2:]:
        k = g.draw(st.integers(1, min(most, n)))
        d = g.pick(1, 1, 2) if dilated and 2 * (k - 1) < n else 1
        s = g.pick(1, 2)
        b, a = (g.draw(st.integers(0, k - 1)) for _ in range(2))
        out.append((n + b + a - d * (k - 1) - 1) // s + 1)
        for one, v in zip((kernel, dilations, strides, before, after), (k, d, s, b, a), strict=True):
            one.append(v)
    window = {"kernel_shape": kernel, "strides": strides, "pads": before + after}
    return {**window, "dilations": dilations} if dilated else window, (out[0], out[1])


def _conv(g: Growing, x: str) -> str:
    n, c, _, _ = g.shapes[x]
    group = g.pick(*(d for d in (1, 1, 2, 3, c) if c % d == 0))
    k = group * g.draw(st.integers(1, 6 if group > 1 else 20))
    window, (p, q) = _window(g, x)
    weight = g.weight(k, c // group, *window["kernel_shape"])
    bias = [g.weight(k)] if g.draw(st.booleans()) else []
    return g.node("Conv", [x, weight, *bias], (n, k, p, q), group=group, **window)


def _pointwise(g: Growing, x: str) -> str:
    n, c, h, w = g.shapes[x]
    k = g.draw(st.integers(1, 33))
    return g.node("Conv", [x, g.weight(k, c, 1, 1), g.weight(k)], (n, k, h, w), kernel_shape=[1, 1])


def _binary(g: Growing, x: str) -> str:
    """With an earlier value that broadcasts, or a constant per channel."""
    n, c, h, w = g.shapes[x]
    others = [v for v, s in g.shapes.items() if len(s) == 4 and s[:2] == (n, c) and s[2:] in ((h, w), (1, 1))]
    op = g.draw(st.sampled_from(["Add", "Mul", "Sub"]))
    other = g.weight(1, c, 1, 1) if g.draw(st.booleans()) else g.draw(st.sampled_from(others))
    return g.node(op, [x, other], (n, c, h, w))


def _pool(g: Growing, x: str) -> str:
    n, c, _, _ = g.shapes[x]
    window, (p, q) = _window(g, x, dilated=False)
    if g.draw(st.booleans()):
        return g.node("MaxPool", [x], (n, c, p, q), **window)
    return g.node("AveragePool", [x], (n, c, p, q), count_include_pad=g.pick(0, 1), **window)


def _ceil_pool(g: Growing, x: str) -> str:
    n, c, h, w = g.shapes[x]
    k = min(3, h, w)
    shape = (n, c, -(-(h - k) // 2) + 1, -(-(w - k) // 2) + 1)
    if any((p - 1) * 2 >= m for p, m in zip(shape[2:], (h, w), strict=True)):
        return x
    return g.node("MaxPool", [x], shape, kernel_shape=[k, k], strides=[2, 2], ceil_mode=1)


def _activation(g: Growing, x: str) -> str:
    op = g.draw(st.sampled_from(["Relu", "Sigmoid", "Tanh", "Elu", "LeakyRelu", "HardSigmoid", "Clip"]))
    bounds = [g.constant(np.float32(-0.5)), g.constant(np.float32(1.5))] if op == "Clip" else []
    return g.node(op, [x, *bounds], g.shapes[x])


def _concat(g: Growing, x: str) -> str:
    n, c, h, w = g.shapes[x]
    others = [v for v, s in g.shapes.items() if len(s) == 4 and (s[0], *s[2:]) == (n, h, w) and s[1] <= 40]
    other = g.draw(st.sampled_from(others)) if others else x
    return g.node("Concat", [x, other], (n, c + g.shapes[other][1], h, w), axis=1)


def _slice(g: Growing, x: str) -> str:
    n, c, h, w = g.shapes[x]
    start, row, step = g.draw(st.integers(0, c - 1)), g.draw(st.integers(0, h - 1)), g.pick(1, 2)
    bounds = [g.ints(start, row), g.ints(c, h), g.ints(1, 2), g.ints(1, step)]
    return g.node("Slice", [x, *bounds], (n, c - start, -(-(h - row) // step), w))


def _pad(g: Growing, x: str) -> str:
    n, c, h, w = g.shapes[x]
    t, le, b, r = (g.draw(st.integers(0, 2)) for _ in range(4))
    return g.node("Pad", [x, g.ints(0, 0, t, le, 0, 0, b, r)], (n, c, h + t + b, w + le + r))


def _transpose(g: Growing, x: str) -> str:
    perm = g.draw(st.permutations([1, 2, 3]))
    shape = g.shapes[x]
    return g.node("Transpose", [x], (shape[0], *(shape[p] for p in perm)), perm=[0, *perm])


def _reshape(g: Growing, x: str) -> str:
    n, c, h, w = g.shapes[x]
    return g.node("Reshape", [x, g.ints(n, h, c, w)], (n, h, c, w))


def _resize(g: Growing, x: str) -> str:
    n, c, h, w = g.shapes[x]
    sizes = [g.constant(np.array([1, 1, 2, 2], np.float32))]
    mode = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.node("Resize", [x, "", *sizes], (n, c, 2 * h, 2 * w), **mode)


def _mean(g: Growing, x: str) -> str:
    n, c, h, _ = g.shapes[x]
    return g.node("ReduceMean", [x], (n, c, h, 1), axes=[3], keepdims=1)


LAYERS = (
    _conv, _conv, _pointwise, _binary, _pool, _ceil_pool, _activation, _concat, _slice, _pad, _transpose, _reshape,
    _resize, _mean,
)  # fmt: skip


def _head(g: Growing, x: str) -> str:
    """Global pool or flatten, a dense layer, softmax: each now and then."""
    n, c, h, w = g.shapes[x]
    if g.draw(st.booleans()):
        x, h, w = g.node("GlobalAveragePool", [x], (n, c, 1, 1)), 1, 1
    x = g.node("Flatten", [x], (n, c * h * w), axis=1)
    k = g.draw(st.integers(2, 17))
    if g.draw(st.booleans()):
        x = g.node("Gemm", [x, g.weight(k, c * h * w), g.weight(k)], (n, k), transB=1)
    else:
        x = g.node("MatMul", [x, g.constant(g.rng.standard_normal((c * h * w, k)).astype(np.float32) * 0.1)], (n, k))
    return g.node("Softmax", [x], (n, k), axis=-1) if g.draw(st.booleans()) else x


@st.composite
def float_models(draw: st.DrawFn) -> onnx.ModelProto:
    """One input, one to five layers on maps, now and then a dense head; what nobody reads is an output."""
    g = Growing(draw, np.random.default_rng(draw(st.integers(0, 1000))))
    shape = (1, draw(st.integers(1, 12)), draw(st.integers(1, 11)), draw(st.integers(1, 11)))
    g.shapes["input"] = shape
    x = "input"
    for layer in draw(st.lists(st.sampled_from(LAYERS), min_size=1, max_size=5)):
        values = [v for v, s in g.shapes.items() if len(s) == 4 and int(np.prod(s)) <= 4000]
        if values and draw(st.integers(0, 4)) == 0:
            x = draw(st.sampled_from(values))  # fan-out
        if int(np.prod(g.shapes[x])) <= 4000:
            x = layer(g, x)
    if draw(st.booleans()) or not g.nodes:
        x = _head(g, x)
    read = {i for n in g.nodes for i in n.input}
    return _model(g.nodes, g.constants, shape, {v: s for v, s in g.shapes.items() if v not in read and v != "input"})


def _model(
    nodes: list[onnx.NodeProto],
    constants: list[onnx.TensorProto],
    shape: tuple[int, ...],
    outputs: dict[str, tuple[int, ...]],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "drawn",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(v, TensorProto.FLOAT, s) for v, s in outputs.items()],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


# ---- quantised ----

MOVES = ("Slice", "Pad", "Transpose", "Reshape", "Flatten", "MaxPool", "Resize")


def quantise(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """A QDQ model: int8 values everywhere at the range seen on one random input, weights symmetric per tensor. What
    only moves values keeps their scale."""
    graph = model.graph
    shapes = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in (*graph.input, *graph.output)}
    seen = _observe(model, seed)
    weights = {c.name: numpy_helper.to_array(c) for c in graph.initializer}
    parameters: dict[str, tuple[float, int]] = {"input": _range(seen["input"])}
    for n in graph.node:
        moved = n.op_type in MOVES
        parameters[n.output[0]] = parameters[n.input[0]] if moved else _range(seen[n.output[0]])
    nodes: list[onnx.NodeProto] = []
    constants = list(graph.initializer)
    quantised: dict[str, str] = {}

    def pair(name: str, source: str, scale: float, zero: int) -> str:
        """DequantizeLinear(QuantizeLinear(source))."""
        if name in quantised:
            return quantised[name]
        constants.append(numpy_helper.from_array(np.float32(scale), f"{name}.s"))
        constants.append(numpy_helper.from_array(np.int8(zero), f"{name}.z"))
        nodes.append(helper.make_node("QuantizeLinear", [source, f"{name}.s", f"{name}.z"], [f"{name}.q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}.q", f"{name}.s", f"{name}.z"], [f"{name}.d"]))
        quantised[name] = f"{name}.d"
        return quantised[name]

    outputs = {o.name for o in graph.output}
    pair("input", "input", *parameters["input"])
    for n in graph.node:
        inputs = [_operand(i, j, n, weights, quantised, pair) for j, i in enumerate(n.input)]
        raw = f"{n.output[0]}.raw"
        copy = onnx.NodeProto()
        copy.CopyFrom(n)
        del copy.input[:], copy.output[:]
        copy.input.extend(inputs)
        copy.output.append(raw)
        nodes.append(copy)
        pair(n.output[0], raw, *parameters[n.output[0]])
    for o in outputs:
        next(n for n in nodes if f"{o}.d" in n.output).output[0] = o
    renamed = {f"{o}.d": o for o in outputs}
    for n in nodes:
        for k, i in enumerate(n.input):
            n.input[k] = renamed.get(i, i)
    return _model(nodes, constants, shapes["input"], {o.name: shapes[o.name] for o in graph.output})


def _operand(i, j, n, weights, quantised, pair):  # type: ignore[no-untyped-def]
    """A computed value or a weight through its pair; what is no number to compute with stays as it is."""
    if i in quantised:
        return quantised[i]
    if i in weights and n.op_type in ("Conv", "Gemm", "MatMul", "Add", "Mul", "Sub") and j < 2:
        return pair(i, i, max(float(np.abs(weights[i]).max()) / 127, 1e-6), 0)
    return i


def _observe(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    names = [n.output[0] for n in probe.graph.node]
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    x = np.random.default_rng(seed).standard_normal(
        [d.dim_value for d in probe.graph.input[0].type.tensor_type.shape.dim]
    )
    session = ort.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    values = session.run(names, {"input": x.astype(np.float32)})
    return {"input": x, **dict(zip(names, values, strict=True))}


def _range(values: np.ndarray) -> tuple[float, int]:
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = max((high - low) / 255, 1e-4)
    return scale, int(np.clip(round(-128 - low / scale), -128, 127))
