"""A region as a model-local function: values renamed so that equal bodies are equal, weights as inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

SMALL = 16
"""Constants of up to so many elements that are no parameter of the module stand in the body."""

Attribute = int | float | str | Sequence[int] | Sequence[float] | Sequence[str]


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes in order, the values they take (data, then weights), those they give, and the constants to embed."""

    nodes: tuple[onnx.NodeProto, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    embedded: tuple[onnx.TensorProto, ...]


def function_of(
    region: Region,
    domain: str,
    name: str,
    opsets: Mapping[str, int],
    attributes: Iterable[str],
) -> onnx.FunctionProto:
    """The function. Function bodies hold no initializers: embedded ones become Constant nodes."""
    names: dict[str, str] = {"": ""}
    for kind, values in (("x", region.inputs), ("c", [t.name for t in region.embedded])):
        names |= {v: f"{kind}{k}" for k, v in enumerate(values)}
    made = [o for n in region.nodes for o in n.output if o]
    outputs = {v: f"y{k}" for k, v in enumerate(region.outputs)}
    names |= {v: outputs.get(v, f"v{k}") for k, v in enumerate(made)}
    nodes = [_constant(t, names[t.name]) for t in region.embedded] + [renamed(n, names) for n in region.nodes]
    used = dict.fromkeys(n.domain for n in _all(nodes))
    return helper.make_function(
        domain,
        name,
        [names[v] for v in region.inputs],
        [names[v] for v in region.outputs],
        nodes,
        [helper.make_opsetid(d, opsets[d]) for d in used],
        attributes=sorted(attributes),
    )


def body_of(function: onnx.FunctionProto) -> bytes:
    """The body alone, to compare: nothing of its name or of where its nodes came from counts."""
    bare = onnx.FunctionProto()
    bare.CopyFrom(function)
    bare.name = ""
    for node in _all(bare.node):
        del node.metadata_props[:]
        node.name = node.doc_string = ""
        attributes = sorted(node.attribute, key=lambda a: a.name)
        del node.attribute[:]
        node.attribute.extend(attributes)
    return bytes(bare.SerializeToString(deterministic=True))


def call_of(function: onnx.FunctionProto, region: Region, attributes: Mapping[str, Attribute]) -> onnx.NodeProto:
    """A call of the function where the region stood."""
    call = helper.make_node(function.name, list(region.inputs), list(region.outputs), domain=function.domain)
    call.attribute.extend(helper.make_attribute(k, attributes[k]) for k in sorted(attributes))
    return call


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """The node with its values renamed; inside its bodies, what comes from outside is renamed too."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    _rename(copy, names)
    return copy


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    node.input[:] = [names.get(i, i) for i in node.input]
    node.output[:] = [names.get(o, o) for o in node.output]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            own = {i.name for i in attribute.g.input} | {o for n in attribute.g.node for o in n.output}
            outer = {k: v for k, v in names.items() if k not in own}
            for inner in attribute.g.node:
                _rename(inner, outer)
            for output in attribute.g.output:
                output.name = outer.get(output.name, output.name)


def _constant(tensor: onnx.TensorProto, name: str) -> onnx.NodeProto:
    value = onnx.TensorProto()
    value.CopyFrom(tensor)
    value.name = name
    return helper.make_node("Constant", [], [name], value=value)


def _all(nodes: Iterable[onnx.NodeProto]) -> Iterable[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from _all(attribute.g.node)
