"""The closed list of mutations: small wrongs done to a model that a rule takes. Published in docs/prove-a-rule.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.language.operators import operators
from gap_fuse.proof.attributes import SWITCHES, WORDS
from gap_fuse.proof.constant_mutations import Made, copied, dtype, integers, literal, not_constant, rank, shape

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
    made = copied(model)
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
            made = copied(model)
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
            made = copied(model)
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
        made = copied(model)
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
            made = copied(model)
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
        made = copied(model)
        made.graph.node.append(helper.make_node("Identity", [name], [name + "_same"]))
        made.graph.node.append(helper.make_node("Neg", [name + "_same"], [name + "_read"]))
        made.graph.output.append(helper.make_tensor_value_info(name + "_read", TensorProto.UNDEFINED, None))
        yield name, made


def output(model: onnx.ModelProto) -> Made:
    """An inner value that is a graph output."""
    for name in _inner(model):
        made = copied(model)
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
