"""A view as an ONNX model: what `gap-fuse fuse` starts from, and how the view is tested against the file."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import TensorProto, helper, numpy_helper

from fusion_engine.view.draft import Node, element_type
from fusion_engine.view.infer import node_proto
from fusion_engine.view.operators import FLIP_SIGN, VIEW_OPSET, newest, operator, split_op, written_version
from fusion_engine.view.types import View, ViewNode, ViewValue

IR_VERSION = 10
_FLIP_DOMAIN, _FLIP_NAME = split_op(FLIP_SIGN)


def view_to_model(
    view: View, functions: Sequence[onnx.FunctionProto] = (), opset: int | None = None
) -> onnx.ModelProto:
    """The view as a ModelProto of IR 10, constants as initializers.

    `opset` is VIEW_OPSET, or the file's own where an operator of it is newer, unless given. `functions` are the model's
    own, needed where the view keeps calls (`closed`). `gap_fuse::FlipSign` is written as a call of a function that the
    model carries. Values keep their names, nodes the name of the first node they stand for. Bodies of Loop, Scan and If
    that the view kept are written as the file has them: a file of an older operator set then makes an invalid model.
    """
    opset = written_opset(view) if opset is None else opset
    called = {split_op(n.op) for n in view.nodes}
    kept = list(functions) if any((f.domain, f.name) in called for f in functions) else []
    inner = [v for v in view.values.values() if v.name in view.producer and v.name not in view.outputs and v.dtype]
    graph = helper.make_graph(
        _uniquely_named([node_to_proto(n, view, opset) for n in view.nodes]),
        view.name or "view",
        [value_info(view.values[i]) for i in view.inputs],
        [value_info(view.values[o]) for o in view.outputs],
        initializer=_initializers(view),
        value_info=[value_info(v) for v in inner],
    )
    imports = _imports(view, kept, opset)
    local = _with_flip(view, kept, opset)
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION, functions=local)


def written_opset(view: View) -> int:
    """The operator set that the view's operators belong to."""
    return max(
        (written_version(n.op, view.opset) for n in view.nodes if operator(n.op, view.opset)), default=VIEW_OPSET
    )


def _initializers(view: View) -> list[onnx.TensorProto]:
    outside = (v for v in view.values.values() if v.name not in view.producer and v.name not in view.inputs)
    return [numpy_helper.from_array(v.const, v.name) for v in outside if v.const is not None]


def _uniquely_named(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Several nodes can stand for one of the file: the later ones get a number."""
    seen: dict[str, int] = {}
    for node in nodes:
        name = node.name
        seen[name] = seen.get(name, 0) + 1
        while seen[name] > 1 and f"{name}_{seen[name]}" in seen:
            seen[name] += 1
        if seen[name] > 1:
            node.name = f"{name}_{seen[name]}"
            seen[node.name] = 1
    return nodes


def node_to_proto(node: ViewNode, view: View, opset: int = VIEW_OPSET) -> onnx.NodeProto:
    """One node of the view as a NodeProto."""
    draft = Node(node.op, list(node.inputs), list(node.outputs), dict(node.attrs), node.origins, overload=node.overload)
    draft.version = opset if "::" not in node.op else newest(split_op(node.op)[0])
    if node.op == FLIP_SIGN:
        draft.attrs["to"] = element_type(view.values[node.outputs[0]].dtype or "int8")
    proto = node_proto(draft, [i or "" for i in node.inputs], list(node.outputs))
    proto.name = node.origins[0] if node.origins else node.outputs[0]
    return proto


def value_info(value: ViewValue) -> onnx.ValueInfoProto:
    """The value's name and type; unknown extents are left open."""
    if value.dtype is None:
        return onnx.ValueInfoProto(name=value.name)
    return helper.make_tensor_value_info(value.name, element_type(value.dtype), value.shape)


def flip_function(opset: int = VIEW_OPSET) -> onnx.FunctionProto:
    """The body of gap_fuse::FlipSign: x ^ 0x80 through int32, to the type `to`."""
    cast = helper.make_node("Cast", ["y32"], ["y"])
    cast.attribute.append(onnx.AttributeProto(name="to", ref_attr_name="to", type=onnx.AttributeProto.INT))
    nodes = [
        helper.make_node("Constant", [], ["sign"], value=helper.make_tensor("sign", TensorProto.INT32, [], [-128])),
        helper.make_node("Cast", ["x"], ["x32"], to=TensorProto.INT32),
        helper.make_node("BitwiseXor", ["x32", "sign"], ["y32"]),
        cast,
    ]
    return helper.make_function(_FLIP_DOMAIN, _FLIP_NAME, ["x"], ["y"], nodes, [helper.make_opsetid("", opset)], ["to"])


def _with_flip(view: View, functions: Sequence[onnx.FunctionProto], opset: int) -> list[onnx.FunctionProto]:
    own = [f for f in functions if (f.domain, f.name) != (_FLIP_DOMAIN, _FLIP_NAME)]
    return [*own, flip_function(opset)] if any(n.op == FLIP_SIGN for n in view.nodes) else own


def _imports(view: View, functions: Sequence[onnx.FunctionProto], opset: int) -> list[onnx.OperatorSetIdProto]:
    domains = {split_op(n.op)[0] for n in view.nodes} | {f.domain for f in functions}
    local = {f.domain for f in functions} | {_FLIP_DOMAIN}
    versions = {d: 1 if d in local else newest(d) for d in domains if d}
    return [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in sorted(versions.items()))]
