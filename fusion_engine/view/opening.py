"""Functions: bodies from the ONNX standard, and the types of calls that stay closed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import onnx

from fusion_engine.view.draft import Draft, Node, Type, element_type
from fusion_engine.view.einsum import open_einsum
from fusion_engine.view.infer import attrs_key, node_proto
from fusion_engine.view.load import Frame, Library, opsets, read_nodes
from fusion_engine.view.operators import FLIP_SIGN, VIEW_OPSET, operator, split_op
from fusion_engine.view.order import ordered
from fusion_engine.view.types import ViewValue

if TYPE_CHECKING:
    from fusion_engine.view.normal import Walk


def function_body(draft: Draft, node: Node, lib: Library) -> list[Node] | None:
    """The nodes of the operator's function in the ONNX standard (of Einsum, which has none, those of `einsum.py`), or
    None if it has none for these operands."""
    if node.op == "Einsum":
        return open_einsum(draft, node)
    function = _standard_function(draft, node)
    if function is None:
        return None
    call = node_proto(node, [i or "" for i in node.inputs], node.outputs)
    rename: dict[str, str | None] = dict.fromkeys(function.input)
    rename.update(zip(function.input, node.inputs, strict=False))
    rename.update({f: a for f, a in zip(function.output, node.outputs, strict=False) if a})
    prefix = _prefix(draft, node)
    versions = {"": VIEW_OPSET, **opsets(function.opset_import)}
    defaults = {a.name: a for a in function.attribute_proto}
    bound = {**defaults, **{a.name: a for a in call.attribute}}
    nodes = read_nodes(function.node, Frame(versions, rename, prefix, bound), lib)
    return [replace(n, origins=node.origins, scopes=node.scopes, metadata=node.metadata) for n in nodes]


def _prefix(draft: Draft, node: Node) -> str:
    return draft.fresh(f"{node.outputs[0] or node.op}/")


def _standard_function(draft: Draft, node: Node) -> onnx.FunctionProto | None:
    known = operator(node.op, node.version)
    if known is None:
        return None
    schema = known.schema
    if schema.has_context_dependent_function:
        types = [_type_bytes(draft, i) for i in node.inputs if i is not None]
        call = node_proto(node, [i or "" for i in node.inputs], node.outputs).SerializeToString()
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= VIEW_OPSET]
        body = schema.get_context_dependent_function_with_opset_version(max(versions), call, types) if versions else b""
        return onnx.FunctionProto.FromString(body) if body else None
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= VIEW_OPSET]
        body = schema.get_function_with_opset_version(max(versions)) if versions else b""
        return onnx.FunctionProto.FromString(body) if body else None
    return None


def _type_bytes(draft: Draft, name: str) -> bytes:
    dtype, shape = draft.type(name)
    if dtype is None:
        return b""  # an empty TypeProto
    proto: onnx.TypeProto = onnx.helper.make_tensor_type_proto(element_type(dtype), shape)
    return bytes(proto.SerializeToString())


def closed_types(draft: Draft, node: Node, walk: Walk) -> list[Type] | None:
    """Types of the results of a call that stays closed, from its body; None for anything else."""
    domain, name = split_op(node.op)
    function = walk.lib.functions.get((domain, name, node.overload))
    if function is None or node.op == FLIP_SIGN:
        return None
    key = ("call", node.op, node.overload, tuple(draft.type(i) for i in node.inputs), attrs_key(node))
    if key not in walk.memo:
        walk.memo[key] = _body_types(draft, node, function, walk)
    return walk.memo[key]


def _body_types(draft: Draft, node: Node, function: onnx.FunctionProto, walk: Walk) -> list[Type]:
    from fusion_engine.view.normal import normalise

    inner = Draft(where=draft.where)
    rename: dict[str, str | None] = dict.fromkeys(function.input)
    for formal, actual in zip(function.input, node.inputs, strict=False):
        rename[formal] = formal if actual is not None else None
        if actual is not None:
            dtype, shape = draft.type(actual)
            inner.values[formal] = ViewValue(formal, dtype, shape, draft.const(actual))
            inner.taken.add(formal)
    call = node_proto(node, [i or "" for i in node.inputs], node.outputs)
    bound = {**{a.name: a for a in function.attribute_proto}, **{a.name: a for a in call.attribute}}
    frame = Frame({**walk.opsets, **opsets(function.opset_import)}, rename, "", bound)
    nodes = read_nodes(function.node, frame, walk.lib)
    outputs = list(function.output)[: len(node.outputs)]
    normalise(inner, ordered(nodes, outputs, draft.where), walk)
    return [inner.type(inner.resolve(o)) for o in outputs]
