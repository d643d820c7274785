"""Element types and shapes of a node's results: onnx's inference node by node, remembered by signature."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

from fusion_engine.view.draft import UNKNOWN, Draft, Node, Type, element_type, type_of
from fusion_engine.view.operators import FLIP_SIGN, VIEW_OPSET, operator, split_op

_SMALL = 64  # elements: above this a constant is no shape, axis or size
_FLOAT_DATA = frozenset({"Resize", "Range"})  # shapes that follow from float constants
_LIKE_FIRST = frozenset({"GroupNormalization", "MeanVarianceNormalization"})  # no inference in onnx
_TYPE_ALONE = frozenset({"DequantizeLinear", "QuantizeLinear"})  # no shape follows from their constants
Memo = dict[Hashable, list[Type]]


def infer(draft: Draft, node: Node, attrs: Hashable, memo: Memo) -> list[Type]:
    """One type per output; what the operator alone does not tell comes from the file's declarations.

    `attrs` is the node's `attrs_key`.
    """
    return filled(draft, node, _inferred(draft, node, attrs, memo))


def filled(draft: Draft, node: Node, types: list[Type]) -> list[Type]:
    """The types, their gaps filled from the file's declarations."""
    if draft.declared.keys().isdisjoint(node.outputs):
        return types
    return [_merge(t, draft.declared.get(name, UNKNOWN)) for t, name in zip(types, node.outputs, strict=True)]


def _inferred(draft: Draft, node: Node, attrs: Hashable, memo: Memo) -> list[Type]:
    if node.op == FLIP_SIGN:
        dtype, shape = draft.type(node.inputs[0])
        return [("int8" if dtype == "uint8" else "uint8", shape)]
    if node.op in _LIKE_FIRST:
        return [draft.type(node.inputs[0])]
    key = None if attrs is None else _signature(draft, node, attrs)
    known = memo.get(key) if key is not None else None
    if known is not None and len(known) == len(node.outputs):
        return known
    types = _by_schema(draft, node)
    if key is not None:
        memo[key] = types
    return types


def _merge(inferred: Type, declared: Type) -> Type:
    """What is inferred, its gaps filled from what the file declares; a declaration that contradicts it is stale."""
    dtype, shape = inferred
    known = declared[1]
    if shape is None:
        shape = known if dtype in (None, declared[0]) else None
    elif known is not None and len(known) == len(shape):
        shape = tuple(d if d is not None else e for d, e in zip(shape, known, strict=True))
    return dtype or declared[0], shape


def _signature(draft: Draft, node: Node, attrs: Hashable) -> Hashable:
    parts: list[Hashable] = [node.op, node.overload, node.version, attrs, presence(node.outputs)]
    for name in node.inputs:
        value = None if name is None else draft.values.get(name)
        if value is None:
            parts += (None, None)
            continue
        parts += (value.dtype, value.shape)
        data = None if value.const is None else _data(draft, node, name)
        if data is not None:
            parts += (data.dtype.num, data.tobytes())
    return tuple(parts)


def presence(outputs: list[str]) -> Hashable:
    """Which outputs there are, as a key."""
    return tuple([bool(o) for o in outputs]) if "" in outputs else len(outputs)


def attrs_key(node: Node) -> Hashable:
    """The attributes as a key, or None where they hold a graph."""
    items = tuple(node.attrs.items())
    try:
        hash(items)
    except TypeError:
        if any(isinstance(v, onnx.GraphProto) for _, v in items):
            return None
        return tuple((k, (v.dtype.name, v.shape, v.tobytes()) if isinstance(v, np.ndarray) else v) for k, v in items)
    return items


def _data(draft: Draft, node: Node, name: str | None) -> np.ndarray | None:
    if node.op in _TYPE_ALONE:
        return None
    array = draft.const(name)
    if array is None or array.size > _SMALL:
        return None
    return array if draft.dtype(name) in ("int64", "int32") or node.op in _FLOAT_DATA else None


def _by_schema(draft: Draft, node: Node) -> list[Type]:
    unknown = [UNKNOWN] * len(node.outputs)
    known = operator(node.op, node.version)
    if known is None:
        return unknown
    names = [f"i{i}" if n is not None else "" for i, n in enumerate(node.inputs)]
    present = [(k, n) for k, n in zip(names, node.inputs, strict=True) if n is not None]
    types = {k: _type_proto(draft.type(n)) for k, n in present}
    data = {k: numpy_helper.from_array(d, k) for k, n in present if (d := _data(draft, node, n)) is not None}
    outputs = [f"o{i}" if n else "" for i, n in enumerate(node.outputs)]
    proto = node_proto(node, names, outputs)
    imports = [onnx.helper.make_opsetid("", VIEW_OPSET), onnx.helper.make_opsetid(split_op(node.op)[0], node.version)]
    try:
        found = _run(known.schema, proto, types, data, imports)
    except Exception as error:  # InferenceError: the operands do not fit the operator
        inside = any(isinstance(v, onnx.GraphProto) for v in node.attrs.values())
        if inside or any(draft.dtype(n) is None for _, n in present):
            return unknown
        if "unsupported type" in str(error):
            return _as_floats(known.schema, proto, types, data, imports, unknown)
        raise draft.fail(node, f"does not fit its operands: {_line(error)}", _operands(draft, node)) from error
    return [type_of(found[o]) if o in found else UNKNOWN for o in outputs]


def _run(schema: Any, proto: onnx.NodeProto, types: Any, data: Any, imports: Any) -> dict[str, onnx.TypeProto]:
    imports = list({i.domain: i for i in imports}.values())
    result: dict[str, onnx.TypeProto] = shape_inference.infer_node_outputs(
        schema, proto, types, data, opset_imports=imports, ir_version=10
    )
    return result


def _as_floats(
    schema: Any, proto: onnx.NodeProto, types: Any, data: Any, imports: Any, unknown: list[Type]
) -> list[Type]:
    """Shapes alone, for element types that ONNX does not allow here but integer toolchains write (Conv of uint8)."""
    floats = {k: onnx.TypeProto() for k in types}
    for name, kind in types.items():
        floats[name].CopyFrom(kind)
        floats[name].tensor_type.elem_type = onnx.TensorProto.FLOAT
    try:
        found = _run(schema, proto, floats, data, imports)
    except Exception:
        return unknown
    return [(None, type_of(found[o])[1]) if o in found else UNKNOWN for o in proto.output]


def _operands(draft: Draft, node: Node) -> str:
    kinds = [f"`{n}`: {draft.dtype(n)}{list(draft.shape(n) or ())}" for n in node.inputs if n]
    return "its operands are " + ", ".join(kinds)


def _type_proto(kind: Type) -> onnx.TypeProto:
    dtype, shape = kind
    if dtype is None:
        return onnx.TypeProto()
    return onnx.helper.make_tensor_type_proto(element_type(dtype), shape)


def node_proto(node: Node, inputs: list[str], outputs: list[str], version: int | None = None) -> onnx.NodeProto:
    """The node as ONNX, with these value names; attributes that are None, or unknown to `version`, are left out."""
    domain, name = split_op(node.op)
    known = operator(node.op, node.version if version is None else version)
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    proto = onnx.NodeProto(op_type=name, domain=domain, input=inputs, output=outputs, overload=node.overload)
    for key, value in node.attrs.items():
        if value is not None and (known is None or key in known.types):
            proto.attribute.append(_attribute(key, value, None if known is None else known.types[key]))
    return proto


def _attribute(key: str, value: Any, kind: int | None) -> onnx.AttributeProto:
    if isinstance(value, np.ndarray):
        return onnx.helper.make_attribute(key, numpy_helper.from_array(value))
    if kind == onnx.AttributeProto.GRAPH and isinstance(value, bytes):
        return onnx.helper.make_attribute(key, onnx.GraphProto.FromString(value))
    if isinstance(value, tuple) and not value and kind is None:
        kind = int(onnx.AttributeProto.INTS)
    return onnx.helper.make_attribute(key, value, attr_type=kind)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
