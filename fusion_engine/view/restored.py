"""Reading a fused model: the nodes inside its kernel calls get back the names that they had in the file.

The names are believed where they say one thing throughout: a value that two calls make is computed alike in both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import onnx

from fusion_engine.view.marks import KERNELS, MARKS, Marks, marks_from_text

FunctionKey = tuple[str, str, str]


def restored_names(
    graph: onnx.GraphProto, functions: Mapping[FunctionKey, onnx.FunctionProto]
) -> Mapping[str, Sequence[Marks]]:
    """What each kernel call says of the nodes of its body, by the call's first result; nothing where names clash."""
    calls = {c.output[0]: c for c in graph.node if c.domain == KERNELS and c.output}
    found = {name: (c, f, _marks(c, f)) for name, c in calls.items() if (f := functions.get(_key(c))) is not None}
    marked = {name: entry for name, entry in found.items() if entry[2]}
    taken = {v.name for v in (*graph.input, *graph.initializer)}
    taken |= {o for n in graph.node if not (n.output and n.output[0] in marked) for o in n.output if o}
    said: dict[str, Hashable] = {}
    for call, function, marks in marked.values():
        for name, computed in _said(call, function, marks):
            if name in taken or said.setdefault(name, computed) != computed:
                return {}
    return {name: marks for name, (_, _, marks) in marked.items()}


def _key(call: onnx.NodeProto) -> FunctionKey:
    return (call.domain, call.op_type, call.overload)


def _marks(call: onnx.NodeProto, function: onnx.FunctionProto) -> Sequence[Marks]:
    """What the call's metadata says, where it fits the body."""
    text = next((p.value for p in call.metadata_props if p.key == MARKS), "")
    marks = marks_from_text(text) if text else []
    nodes = computing(function)
    if [len(m.values) for m in marks] != [len(n.output) for n in nodes]:
        return []
    results = dict(zip(function.output, call.output, strict=False))
    named = ((o, v) for n, m in zip(nodes, marks, strict=True) for o, v in zip(n.output, m.values, strict=True))
    return marks if all(results.get(o, v) == v for o, v in named) else []


def computing(function: onnx.FunctionProto) -> list[onnx.NodeProto]:
    """The nodes of a kernel's body that marks speak of."""
    return [n for n in function.node if n.op_type != "Constant"]


def _said(call: onnx.NodeProto, function: onnx.FunctionProto, marks: Sequence[Marks]) -> Iterator[tuple[str, Hashable]]:
    """Each value that the call names, with how the body computes it in terms of other names."""
    constants = {
        o: tuple(a.SerializeToString() for a in n.attribute)
        for n in function.node
        if n.op_type == "Constant"
        for o in n.output
    }
    names: dict[str, str] = dict(zip(function.input, call.input, strict=False))
    for proto, m in zip(computing(function), marks, strict=True):
        attributes = tuple(a.SerializeToString(deterministic=True) for a in proto.attribute)
        operands = tuple(constants.get(i) or names.get(i, i) for i in proto.input)
        computed = (proto.domain, proto.op_type, proto.overload, attributes, operands)
        for position, (inner, value) in enumerate(zip(proto.output, m.values, strict=True)):
            if inner:
                names[inner] = value
                yield value, (computed, position)
