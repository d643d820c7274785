"""The closed list of mutations: small wrongs done to a model that a rule takes. Published in docs/prove-a-rule.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.language.operators import operators
from gap_fuse.proof.attributes import SWITCHES, WORDS

Made = Iterator[tuple[str, onnx.ModelProto]]
NON_COMMUTATIVE = frozenset(
    (
        "BitShift", "Concat", "Div", "Gemm", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "MatMul", "Mod", "Pow",
        "PRelu", "Sub", "Where",
    )
)  # fmt: skip
TWIN = "_twin"


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """A model with one thing changed: the kind of the list, what was done where, and whether outputs were added."""

    kind: str
    what: str
    model: onnx.ModelProto


def mutants(model: onnx.ModelProto) -> Iterator[Mutant]:
    """Every mutant of a typed model, in the order of the list; many are no legal models."""
    for kind, mutate in MUTATIONS.items():
        for what, made in mutate(model):
            yield Mutant(kind, what, made)


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def _constants(model: onnx.ModelProto) -> list[tuple[int, str, np.ndarray]]:
    return [(i, t.name, numpy_helper.to_array(t)) for i, t in enumerate(model.graph.initializer)]


def _with_constant(model: onnx.ModelProto, at: int, value: np.ndarray) -> onnx.ModelProto:
    made = _copy(model)
    made.graph.initializer[at].CopyFrom(numpy_helper.from_array(value, model.graph.initializer[at].name))
    return made


# ---- constants ----


def literal(model: onnx.ModelProto) -> Made:
    """A constant of one element times 1 + 1e-3 and 1 - 1e-3; an integer plus and minus 1."""
    for i, name, value in _constants(model):
        if value.size != 1 or value.dtype.kind not in "fiu":
            continue
        changed = (
            [value * value.dtype.type(f) for f in (1.001, 0.999)]
            if value.dtype.kind == "f"
            else [value + value.dtype.type(1), value - value.dtype.type(1)]
        )
        for v in changed:
            yield f"{name} = {v.item()}", _with_constant(model, i, np.asarray(v, value.dtype))


def integers(model: onnx.ModelProto) -> Made:
    """One element of a list of integers (axes, pads, starts) plus and minus 1."""
    for i, name, value in _constants(model):
        if value.size < 2 or value.dtype != np.int64 or value.ndim != 1:
            continue
        for at in range(min(value.size, 4)):
            for d in (1, -1):
                moved = value.copy()
                moved[at] += d
                yield f"{name} = {moved.tolist()}", _with_constant(model, i, moved)


def shape(model: onnx.ModelProto) -> Made:
    """A float constant of other extents: [1], [D, 1], [N, D], one rank more, and those of the result."""
    rng = np.random.default_rng(0)
    whole = [tuple(d.dim_value for d in o.type.tensor_type.shape.dim) for o in model.graph.output]
    results = [s for extents in whole for s in (extents, (1, *extents[1:])) if extents]
    for i, name, value in _constants(model):
        if value.dtype != np.float32:
            continue
        d = value.shape[-1] if value.ndim else 1
        for extents in dict.fromkeys(((1,), (d, 1), (d, d), (1, *value.shape), (2, *value.shape), *results)):
            if extents != value.shape:
                drawn = rng.permutation(np.resize(value, extents).ravel()).reshape(extents) * 0.75
                yield f"{name}: {list(extents)}", _with_constant(model, i, drawn.astype(np.float32))


def rank(model: onnx.ModelProto) -> Made:
    """A graph input with one axis more in front."""
    for i, info in enumerate(model.graph.input):
        for extent in (1, 2):
            made = _copy(model)
            dims = made.graph.input[i].type.tensor_type.shape.dim
            old = [d.dim_value for d in dims]
            del dims[:]
            for d in (extent, *old):
                dims.add().dim_value = d
            yield f"{info.name}: {[extent, *old]}", made


def not_constant(model: onnx.ModelProto) -> Made:
    """A constant made a graph input."""
    for i, name, value in _constants(model):
        made = _copy(model)
        del made.graph.initializer[i]
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        made.graph.input.append(helper.make_tensor_value_info(name, kind, value.shape))
        yield name, made


def dtype(model: onnx.ModelProto) -> Made:
    """Every float32 of the model float16 or float64; a graph input of another integer type."""
    for kind, numpy in ((TensorProto.FLOAT16, np.float16), (TensorProto.DOUBLE, np.float64)):
        made = _copy(model)
        for info in made.graph.input:
            if info.type.tensor_type.elem_type == TensorProto.FLOAT:
                info.type.tensor_type.elem_type = kind
        for i, _, value in _constants(model):
            if value.dtype == np.float32:
                made = _with_constant(made, i, value.astype(numpy))
        yield str(np.dtype(numpy)), made
    for i, info in enumerate(model.graph.input):
        for kind in (TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64):
            if info.type.tensor_type.elem_type not in (kind, TensorProto.FLOAT):
                made = _copy(model)
                made.graph.input[i].type.tensor_type.elem_type = kind
                yield f"{info.name}: {TensorProto.DataType.Name(kind).lower()}", made


# ---- nodes ----


def attribute(model: onnx.ModelProto) -> Made:
    """Each attribute of another legal value, or absent; each absent one of a value that is not its default."""
    for i, node in enumerate(model.graph.node):
        if node.op_type not in operators() or node.domain:
            continue
        there = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        for name, schema in operators()[node.op_type].attributes.items():
            if name == "axis" and name in there:
                continue
            default = helper.get_attribute_value(schema.default_value) if schema.default_value.type else None
            if name in there:
                yield f"{node.op_type}.{name} absent", _with_attribute(model, i, name, None)
            for value in _others(name, there.get(name, default), schema.type):
                yield f"{node.op_type}.{name} = {value}", _with_attribute(model, i, name, value)


def axis(model: onnx.ModelProto) -> Made:
    """The attribute `axis` one more and one less."""
    for i, node in enumerate(model.graph.node):
        for a in node.attribute:
            if a.name == "axis":
                for value in (a.i + 1, a.i - 1):
                    yield f"{node.op_type}.axis = {value}", _with_attribute(model, i, "axis", value)


WORD_VALUES: Mapping[str, tuple[str, ...]] = {**WORDS, "auto_pad": ("SAME_UPPER", "SAME_LOWER", "VALID")}


def _others(name: str, value: object, kind: onnx.defs.OpSchema.AttrType) -> list[object]:
    types = onnx.defs.OpSchema.AttrType
    if name in SWITCHES:
        return [0 if value else 1]
    if kind == types.INT:
        now = int(value) if isinstance(value, int) else 0
        return [now + 1, now - 1] if now else [1, 2]
    if kind == types.FLOAT:
        now_f = float(value) if isinstance(value, float) else 1.0
        return [now_f * 1.5 if now_f else 0.5, now_f * 1.001 if now_f else 1e-3]
    if kind == types.STRING:
        word = value.decode() if isinstance(value, bytes) else value
        return [w for w in WORD_VALUES.get(name, ()) if w != word]
    if kind == types.INTS and isinstance(value, list):
        return [[*value[:j], value[j] + 1, *value[j + 1 :]] for j in range(len(value))]
    return []


def _with_attribute(model: onnx.ModelProto, at: int, name: str, value: object) -> onnx.ModelProto:
    made = _copy(model)
    node = made.graph.node[at]
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))
    return made


def swapped(model: onnx.ModelProto) -> Made:
    """The first two operands of an operator that does not commute, the last two of Where."""
    for i, node in enumerate(model.graph.node):
        if node.op_type in NON_COMMUTATIVE and len(node.input) >= 2:
            made = _copy(model)
            a, b = (1, 2) if node.op_type == "Where" else (0, 1)
            names = made.graph.node[i].input
            names[a], names[b] = node.input[b], node.input[a]
            yield node.op_type, made


def split_capture(model: onnx.ModelProto) -> Made:
    """One of several readers of an input or constant reads a twin with other values."""
    sources = {t.name for t in model.graph.initializer} | {i.name for i in model.graph.input}
    readers = [(i, j, n) for i, node in enumerate(model.graph.node) for j, n in enumerate(node.input) if n in sources]
    for i, j, name in readers:
        if sum(n == name for _, _, n in readers) > 1:
            made = _copy(model)
            made.graph.node[i].input[j] = name + TWIN
            _add_twin(made, name)
            yield f"{name} at {model.graph.node[i].op_type}", made


def _add_twin(made: onnx.ModelProto, name: str) -> None:
    for info in list(made.graph.input):
        if info.name == name:
            twin = made.graph.input.add()
            twin.CopyFrom(info)
            twin.name = name + TWIN
    for t in list(made.graph.initializer):
        if t.name == name:
            value = numpy_helper.to_array(t)
            other = value * value.dtype.type(0.5) + value.dtype.type(1) if value.dtype.kind == "f" else value
            made.graph.initializer.append(numpy_helper.from_array(np.asarray(other, value.dtype), name + TWIN))


def dropped(model: onnx.ModelProto) -> Made:
    """A node gone: its users read its first operand that is no constant."""
    constants = {t.name for t in model.graph.initializer}
    for i, node in enumerate(model.graph.node):
        source = next((n for n in node.input if n and n not in constants), None)
        if source is None or len(model.graph.node) == 1:
            continue
        made = _copy(model)
        del made.graph.node[i]
        outputs = {o.name for o in model.graph.output}
        if node.output[0] in outputs:
            made.graph.node.append(helper.make_node("Identity", [source], [node.output[0]]))
        _redirect(made, node.output[0], source)
        yield node.op_type, made


def inserted(model: onnx.ModelProto) -> Made:
    """Identity, Neg, Relu or Tanh behind an inner value or an input."""
    inner = _inner(model) + [i.name for i in model.graph.input]
    for name in inner:
        for op in ("Identity", "Neg", "Relu", "Tanh"):
            made = _copy(model)
            _redirect(made, name, name + "_in")
            at = next((i + 1 for i, n in enumerate(model.graph.node) if name in n.output), 0)
            made.graph.node.insert(at, helper.make_node(op, [name], [name + "_in"]))
            yield f"{op} behind {name}", made


def _redirect(made: onnx.ModelProto, old: str, new: str) -> None:
    for node in made.graph.node:
        for j, name in enumerate(node.input):
            if name == old and not (node.op_type == "Identity" and name == new):
                node.input[j] = new


# ---- who else reads ----


def _inner(model: onnx.ModelProto) -> list[str]:
    outputs = {o.name for o in model.graph.output}
    return [n for node in model.graph.node for n in node.output if n and n not in outputs]


def user(model: onnx.ModelProto) -> Made:
    """A second reader of an inner value, whose result is a graph output."""
    for name in _inner(model):
        made = _copy(model)
        made.graph.node.append(helper.make_node("Identity", [name], [name + "_same"]))
        made.graph.node.append(helper.make_node("Neg", [name + "_same"], [name + "_read"]))
        made.graph.output.append(helper.make_tensor_value_info(name + "_read", TensorProto.UNDEFINED, None))
        yield name, made


def output(model: onnx.ModelProto) -> Made:
    """An inner value that is a graph output."""
    for name in _inner(model):
        made = _copy(model)
        made.graph.output.append(helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None))
        yield name, made


MUTATIONS: Mapping[str, Callable[[onnx.ModelProto], Made]] = {
    "literal": literal,
    "integers": integers,
    "shape": shape,
    "rank": rank,
    "not constant": not_constant,
    "dtype": dtype,
    "attribute": attribute,
    "axis": axis,
    "swapped operands": swapped,
    "split capture": split_capture,
    "node dropped": dropped,
    "node inserted": inserted,
    "another user": user,
    "graph output": output,
}
