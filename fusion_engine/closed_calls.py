"""The functions that a fused model still calls: their bodies in the fused model's operator set.

ONNX wants a function and its model to agree on the operators that both use, and bodies of older files are of an older
set. So each call that stayed closed gets its function anew, in normal form; so do the functions that it calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fusion_engine.covering.types import Candidate
from fusion_engine.model import Model
from fusion_engine.regions import FunctionKey, region_model
from fusion_engine.view import FLIP_SIGN, View, ViewNode, node_to_proto, view
from fusion_engine.view.operators import join_op, newest, split_op

SMALL = 16  # operands of at most so many elements, where they are constants, are part of the body


@dataclass(slots=True)
class ClosedCalls:
    """The functions written so far; a call of one more body of the same name gets an overload of its own."""

    functions: Mapping[FunctionKey, onnx.FunctionProto]
    opset: int
    written: dict[tuple[str, str, str], onnx.FunctionProto] = field(default_factory=dict)

    def overload(self, seen: View, node: ViewNode) -> str | None:
        """The overload under which this call's function is written; None where the operator is no function of the
        model."""
        domain, name = split_op(node.op)
        own = self.functions.get((domain, name, node.overload))
        if own is None or node.op == FLIP_SIGN:
            return None
        function = self._function(seen, node, own)
        number = 1
        while self.written.setdefault((domain, name, function.overload), function) != function:
            number += 1
            function.overload = f"{node.overload}.{number}"
        return function.overload

    def _function(self, seen: View, node: ViewNode, own: onnx.FunctionProto) -> onnx.FunctionProto:
        formals = {a: f for f, a in zip(reversed(own.input), reversed(_padded(node, len(own.input))), strict=True) if a}
        results = {a: f for f, a in zip(own.output, node.outputs, strict=False) if a}
        body = self._body(seen, node)
        rename = {**formals, **results}
        for n in body.nodes:
            rename.update((o, f"v{len(rename)}") for o in n.outputs if o and o not in rename)
        read = dict.fromkeys(i for n in body.nodes for i in n.inputs if i is not None)
        constants = [c for c in read if body.const(c) is not None and c not in body.producer and c not in body.inputs]
        rename.update((c, f"c{i}") for i, c in enumerate(constants))
        nodes = [_constant(rename[c], np.asarray(body.const(c))) for c in constants]
        nodes += [_renamed(self._inner(body, n), rename) for n in body.nodes]
        domains = sorted({split_op(n.op)[0] for n in body.nodes} - {""})
        imports = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, newest(d)) for d in domains)]
        attributes = [*own.attribute, *(a.name for a in own.attribute_proto)]
        function = helper.make_function(own.domain, own.name, own.input, own.output, nodes, imports, attributes)
        function.overload = node.overload
        function.metadata_props.extend(own.metadata_props)
        return function

    def _inner(self, body: View, node: ViewNode) -> onnx.NodeProto:
        """A node of the body; a call of one more function is written as a call of its own."""
        proto = node_to_proto(node, body, self.opset)
        proto.overload = self.overload(body, node) or proto.overload
        return proto

    def _body(self, seen: View, node: ViewNode) -> View:
        """What the call computes, functions in it as calls; large constants are operands."""
        operands = tuple(dict.fromkeys(i for i in node.inputs if i is not None and not _is_small(seen, i)))
        made = tuple(o for o in node.outputs if o)
        alone = Candidate("", "", 0, (), frozenset((node.index,)), operands, made, "", 0.0)
        inner = frozenset(join_op(domain, name) for domain, name, _ in self.functions) - {node.op}
        return view(Model("body", region_model(seen, alone, self.functions, self.opset)), closed=inner)


def _padded(node: ViewNode, count: int) -> list[str | None]:
    return [*node.inputs, *[None] * count][:count]


def _is_small(seen: View, name: str) -> bool:
    data = seen.const(name)
    return data is not None and np.asarray(data).size <= SMALL


def _constant(name: str, data: np.ndarray) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.ascontiguousarray(data)))


def _renamed(proto: onnx.NodeProto, names: dict[str, str]) -> onnx.NodeProto:
    inputs, outputs = [names[i] if i else "" for i in proto.input], [names[o] if o else "" for o in proto.output]
    del proto.input[:], proto.output[:]
    proto.input.extend(inputs)
    proto.output.extend(outputs)
    proto.name = ""
    return proto
