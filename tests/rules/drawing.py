"""Models drawn from a rule: one alternative of every choice, sizes from `given` and `draw`, attributes that are legal.

The model is built from the pattern itself, so that what is drawn is what the rule claims to take.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.expr import evaluate, parse_expr
from fusion_engine.language.operators import operators
from fusion_engine.language.types import (
    Absent,
    Alternatives,
    Capture,
    CaptureType,
    Literal,
    Named,
    OpPattern,
    Pattern,
    Rule,
    Variant,
    With,
)
from tests.rules import running

Draw = Any  # hypothesis' draw function
FLOATS = {"epsilon": (1e-5, 1e-2), "alpha": (0.2, 1.5), "beta": (0.2, 1.5), "gamma": (0.5, 1.5)}
OPSET = 23


@dataclass(eq=False)
class Drawn:
    """A model under construction. `tensors` holds what each captured name is; `names` what a Named value became."""

    draw: Draw
    rule: Rule
    rng: np.random.Generator
    sizes: dict[str, Any] = field(default_factory=dict)
    base: tuple[int, ...] = ()
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    names: dict[str, str | None] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    result: str = ""

    def fresh(self, stem: str) -> str:
        return f"{stem}_{len(self.nodes)}_{len(self.constants)}"


def draw_float_model(draw: Draw, rule: Rule, variant: Variant) -> tuple[Drawn, onnx.ModelProto]:
    """The variant as a float model with one output `y`."""
    drawn = Drawn(draw, rule, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    drawn.base = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple))
    _draw_sizes(drawn)
    made = _build(drawn, variant.pattern)
    assert made is not None
    drawn.result = made
    return drawn, model_of(drawn)


def model_of(
    drawn: Drawn, inputs: dict[str, tuple[int, ...]] | None = None, kind: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    graph_inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in (inputs or drawn.inputs).items()]
    output = helper.make_tensor_value_info(drawn.result, TensorProto.UNDEFINED, None)
    constants = [numpy_helper.from_array(v, n) for n, v in drawn.constants.items()]
    graph = helper.make_graph(drawn.nodes, "drawn", graph_inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return _typed(model)


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The output's type by inference: a draw whose shapes do not fit is refused there."""
    name = model.graph.output[0].name
    found = onnx.shape_inference.infer_shapes(_without_output(model), strict_mode=True, data_prop=True)
    info = next((v for v in found.graph.value_info if v.name == name), None)
    if info is not None:
        model.graph.output[0].CopyFrom(info)
    return model


def _without_output(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    return copy


# ---- sizes ----


def _draw_sizes(drawn: Drawn) -> None:
    """Symbols in the order of `draw`, so that a choice may name an earlier one."""
    for name, what in drawn.rule.draw.items():
        if isinstance(what, str) and "dims of" in what:
            dims, extents = what.split(" dims of ")
            low, high = _range(extents)
            count = drawn.draw(st.integers(*_range(dims)))
            drawn.sizes[name] = tuple(drawn.draw(st.integers(low, high)) for _ in range(count))
        elif isinstance(what, str) and not what.startswith("shape "):
            drawn.sizes[name] = _one(drawn, what)
        elif isinstance(what, tuple):
            drawn.sizes[name] = _one(drawn, drawn.draw(st.sampled_from(what)))
    for type_ in drawn.rule.given.values():
        for dim in type_.dims or ():
            symbol = dim.lstrip("*")
            if symbol.isidentifier() and symbol not in drawn.sizes:
                drawn.sizes[symbol] = () if dim.startswith("*") else drawn.draw(st.integers(1, 5))


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("..")
    return int(low), int(high or low)


def _one(drawn: Drawn, text: str) -> int:
    if ".." in text:
        low, high = (int(evaluate(parse_expr(t), drawn.sizes)) for t in text.split(".."))
        return int(drawn.draw(st.integers(low, high)))
    return int(evaluate(parse_expr(text), drawn.sizes))


def _shape(drawn: Drawn, name: str, given: CaptureType | None) -> tuple[int, ...]:
    wish = drawn.rule.draw.get(name)
    if isinstance(wish, str) and wish.startswith("shape "):
        choice = drawn.draw(st.sampled_from(wish.removeprefix("shape ").split(" | ")))
        return tuple(_one(drawn, d.strip()) for d in choice.strip("[] ").split(",") if d.strip())
    if given is None or given.dims is None:
        return _broadcastable(drawn)
    shape: list[int] = []
    for dim in given.dims:
        if dim.startswith("*"):
            shape.extend(drawn.sizes[dim[1:]])
        else:
            shape.append(int(evaluate(parse_expr(dim.replace(" / ", " // ")), drawn.sizes)))
    return tuple(shape)


def _broadcastable(drawn: Drawn) -> tuple[int, ...]:
    """The first such capture has the whole shape, so that the result keeps it; the others may lack axes or have 1."""
    if not any(s == drawn.base for s in drawn.inputs.values()):
        return drawn.base
    kept = drawn.base[drawn.draw(st.integers(0, len(drawn.base))) :]
    return tuple(d if drawn.draw(st.booleans()) else 1 for d in kept)


# ---- patterns ----


def _build(drawn: Drawn, p: Pattern) -> str | None:
    """The tensor that a pattern's value is (None: absent), with the nodes that make it."""
    match p:
        case Capture(name=name):
            return drawn.names[name] if name in drawn.names else _capture(drawn, name)
        case Absent():
            return None
        case Literal(value=value):
            return _constant(drawn, np.asarray(value, np.float32))
        case Named(name=name, pattern=inner):
            if name not in drawn.names:
                drawn.names[name] = _build(drawn, inner)
            return drawn.names[name]
        case With(pattern=inner, bindings=bindings):
            for name, _ in bindings:
                drawn.names.setdefault(name, None)
            return _build(drawn, inner)
        case Alternatives(options=options):
            return _build(drawn, options[drawn.draw(st.integers(0, len(options) - 1))])
        case OpPattern():
            return _node(drawn, p)
    raise NotImplementedError(type(p).__name__)


def _capture(drawn: Drawn, name: str) -> str:
    given = drawn.rule.given.get(name)
    shape = _shape(drawn, name, given)
    if given is None or given.const:
        value = drawn.rng.standard_normal(shape)
        if given is not None and given.low is not None and given.high is not None:
            value = drawn.rng.uniform(given.low, given.high, shape)
        drawn.names[name] = name
        drawn.constants[name] = value.astype(np.float32)
        return name
    drawn.names[name] = name
    drawn.inputs[name] = shape
    return name


def _constant(drawn: Drawn, value: np.ndarray) -> str:
    name = drawn.fresh("literal")
    drawn.constants[name] = value
    return name


def _node(drawn: Drawn, p: OpPattern) -> str:
    op = p.op if p.op is not None else drawn.draw(st.sampled_from(running.rules().classes[p.op_class or ""]))
    inputs = [_operand(drawn, op, i, q, p) for i, q in enumerate(p.inputs)]
    if p.rest is not None:
        inputs += _rest(drawn, p.rest)
    if p.commutative and drawn.draw(st.booleans()):
        inputs.reverse()
    while inputs and inputs[-1] is None:
        inputs.pop()
    attrs = _attributes(drawn, op, p, inputs)
    output = drawn.fresh(op.lower())
    drawn.nodes.append(helper.make_node(op, [i or "" for i in inputs], [output], **attrs))
    return output


def _operand(drawn: Drawn, op: str, i: int, q: Pattern, p: OpPattern) -> str | None:
    """Optional inputs with a meaning are there or not; bounds are ordered, integers where the schema wants them."""
    if i in dict(p.defaults):
        assert isinstance(q, Capture)
        drawn.names[q.name] = None
        if not drawn.draw(st.booleans()):
            return None
        sign = -1.0 if dict(p.defaults)[i] < 0 else 1.0
        drawn.names[q.name] = _constant(
            drawn, np.asarray(sign * drawn.draw(st.sampled_from((0.25, 0.5, 1.0))), np.float32)
        )
        return drawn.names[q.name]
    if isinstance(q, Literal) and "int64" in operators()[op].inputs[min(i, len(operators()[op].inputs) - 1)].type_str:
        return _constant(drawn, np.asarray(q.value, np.int64))
    return _build(drawn, q)


def _rest(drawn: Drawn, name: str) -> list[str | None]:
    count = drawn.draw(st.integers(2, 4))
    parts: list[str | None] = []
    for i in range(count):
        part = f"{name}{i}"
        drawn.inputs[part] = _broadcastable(drawn)
        parts.append(part)
    return parts


def _attributes(drawn: Drawn, op: str, p: OpPattern, inputs: list[str | None]) -> dict[str, Any]:
    rank = len(drawn.inputs.get(inputs[0] or "", next(iter(drawn.inputs.values()), drawn.base)))
    found: dict[str, Any] = {}
    for a in p.attrs:
        if a.capture is None:
            found[a.name] = a.literal
            continue
        if a.capture not in drawn.attrs:
            drawn.attrs[a.capture] = _attribute(drawn, op, a.name, a.capture, rank)
        if drawn.attrs[a.capture] is not None:
            found[a.name] = drawn.attrs[a.capture]
    return found


def _attribute(drawn: Drawn, op: str, name: str, capture: str, rank: int) -> Any:
    schema = operators()[op].attributes.get(name)
    if schema is None:
        return None
    lists = {"strides": rank - 2, "dilations": rank - 2, "kernel_shape": rank - 2, "pads": 2 * (rank - 2)}
    wish = drawn.rule.draw.get(capture)
    if name in lists and isinstance(wish, str):
        return [_one(drawn, wish) for _ in range(lists[name])]
    if capture in drawn.sizes:
        return drawn.sizes[capture]
    if name == "axis":
        return drawn.draw(st.integers(-rank, rank - 1))
    if name in FLOATS and schema.type == onnx.defs.OpSchema.AttrType.FLOAT:
        low, high = FLOATS[name]
        plain = high > 1.0 and bool(drawn.draw(st.booleans()))
        return 1.0 if plain else low + (high - low) * drawn.draw(st.integers(0, 16)) / 16
    if name in ("ceil_mode", "count_include_pad"):
        return drawn.draw(st.integers(0, 1))
    return None


# ---- quantised ----


@dataclass(frozen=True, slots=True)
class Scale:
    scale: float
    zero: int


def quantise(
    drawn: Drawn, stored: dict[str, tuple[str, bool, int | None]], low: float, high: float, like: str | None
) -> Drawn:
    """The drawn model with DequantizeLinear on captures stored as integers, and QuantizeLinear on the result.

    `stored` maps captures to (dtype, symmetric, axis). The result's scale fits
    [low, high], or is that of capture `like`.
    """
    q = replace(drawn, nodes=[], constants=dict(drawn.constants), inputs={})
    renamed: dict[str, str] = {}
    scales: list[np.ndarray] = []
    late: list[str] = []
    for name, (dtype, symmetric, axis) in stored.items():
        if drawn.names.get(name) is None or name == "y":
            continue
        if dtype == "int32":
            late.append(name)
            continue
        renamed[name] = _stored_capture(q, drawn, name, symmetric, axis, scales)
    for name in late:
        renamed[name] = _stored_bias(q, drawn, name, reduce(np.multiply, scales))
    for name, shape in drawn.inputs.items():
        assert name in renamed, f"{name} stays float"
        q.inputs[name] = shape
    q.nodes += [_with_inputs(n, renamed) for n in drawn.nodes]
    if like is None:
        _stored_result(q, low, high)
    else:
        _add_quantize(q, f"{like}_scale", f"{like}_zero")
    return q


def _with_inputs(node: onnx.NodeProto, renamed: dict[str, str]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for i, name in enumerate(copy.input):
        copy.input[i] = renamed.get(name, name)
    return copy


def _dequantised(q: Drawn, name: str, scale: np.ndarray, zero: np.ndarray, axis: int | None) -> str:
    q.constants[f"{name}_scale"], q.constants[f"{name}_zero"] = scale, zero
    attrs = {"axis": axis} if scale.ndim else {}
    q.nodes.append(
        helper.make_node("DequantizeLinear", [name, f"{name}_scale", f"{name}_zero"], [f"{name}_real"], **attrs)
    )
    return f"{name}_real"


def _stored_capture(
    q: Drawn, drawn: Drawn, name: str, symmetric: bool, axis: int | None, scales: list[np.ndarray]
) -> str:
    zero = 0 if symmetric else int(q.draw(st.integers(-128, 127)))
    if name in drawn.constants:
        real = drawn.constants[name]
        per_axis = axis is not None and bool(q.draw(st.booleans()))
        others = tuple(i for i in range(real.ndim) if i != (axis or 0) % max(real.ndim, 1))
        top = np.max(np.abs(real), axis=others if per_axis else None, initial=1e-3)
        scale = np.asarray(top / 127, np.float32)
        spread = (
            scale.reshape([-1 if i == (axis or 0) % real.ndim else 1 for i in range(real.ndim)]) if per_axis else scale
        )
        q.constants[name] = np.clip(np.rint(real / spread), -127, 127).astype(np.int8)
        scales.append(scale)
        return _dequantised(q, name, scale, np.zeros(scale.shape, np.int8), axis)
    scale = np.asarray(q.draw(st.integers(5, 50)) / 1000, np.float32)
    scales.append(scale)
    return _dequantised(q, name, scale, np.asarray(zero, np.int8), None)


def _stored_bias(q: Drawn, drawn: Drawn, name: str, product: Any) -> str:
    """int32 at scale(x) * scale(w), or left float: the rule must take both."""
    if name not in drawn.constants or q.draw(st.booleans()):
        return name
    scale = np.asarray(product, np.float32)
    real = drawn.constants[name]
    if scale.ndim and real.shape != scale.shape:
        return name
    q.constants[name] = np.rint(real / scale).astype(np.int32)
    return _dequantised(q, name, scale, np.zeros(scale.shape, np.int32), 0)


def _stored_result(q: Drawn, low: float, high: float) -> None:
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max((high - low) / 255, 1e-4)
    zero = int(np.clip(np.rint(-128 - low / scale), -128, 127))
    q.constants["y_scale"], q.constants["y_zero"] = np.asarray(scale, np.float32), np.asarray(zero, np.int8)
    _add_quantize(q, "y_scale", "y_zero")


def _add_quantize(q: Drawn, scale: str, zero: str) -> None:
    q.nodes.append(helper.make_node("QuantizeLinear", [q.result, scale, zero], ["y_stored"]))
    q.result = "y_stored"
