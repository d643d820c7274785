"""Nodes of the file that the view has not: what became of them, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx

from fusion_engine.model import Model
from fusion_engine.view import View, ViewNode

KNOWN_BY_SHAPE = ("Shape", "Size", "Constant")  # operators whose results are numbers when the model is read


@dataclass(frozen=True, slots=True)
class Gone:
    """A node of the file that is no node of the view, and a sentence on what became of it."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    fate: str


def file_nodes(model: Model, name: str) -> tuple[onnx.NodeProto, ...]:
    """The nodes of the file's graph with that name, result or operator."""
    return tuple(n for n in model.proto.graph.node if name in (n.name, n.op_type, *n.output))


def became(seen: View, node: onnx.NodeProto) -> tuple[ViewNode, ...]:
    """The nodes of the view that bear the node's name."""
    names = {node.name or node.output[0]}
    return tuple(n for n in seen.nodes if names & set(n.origins))


def gone(model: Model, seen: View, nodes: Sequence[onnx.NodeProto]) -> Iterator[Gone]:
    """What became of nodes that the view has not."""
    file = _File(_known(model), _needed(model), _without_element(model)) if nodes else _File()
    for n in nodes:
        yield Gone(
            n.name or n.output[0],
            n.op_type,
            tuple(i for i in n.input if i),
            tuple(o for o in n.output if o),
            "; ".join(dict.fromkeys(_fate(seen, o, file) for o in n.output if o)),
        )


@dataclass(frozen=True, slots=True)
class _File:
    """Values of the file by what is said of them."""

    known: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()


def _fate(seen: View, result: str, file: _File) -> str:
    stands = _stands_for(seen, result)
    if result in file.empty:
        return "its result has no element: nothing computes it"
    if stands != result:
        return f"it changes nothing here: its result is `{stands}`, {_made(seen, stands)}"
    if seen.const(result) is not None or result in file.known:
        return "its result does not depend on the inputs: it was computed when the model was read, and is a constant"
    if result not in file.needed:
        return "no output of the graph needs its result"
    return "it is no step of its own: the nodes that read its result took it in"


def _stands_for(seen: View, name: str) -> str:
    while name in seen.aliases:
        name = seen.aliases[name]
    return name


def _made(seen: View, value: str) -> str:
    if value in seen.inputs:
        return "a graph input"
    if value not in seen.producer:
        return "a constant"
    node = seen.nodes[seen.producer[value]]
    return f"made by {node.op} `{node.origins[0] if node.origins else value}`"


def _known(model: Model) -> frozenset[str]:
    """The values that no graph input's numbers go into, in the file's sequence."""
    graph = model.proto.graph
    found = {t.name for t in graph.initializer} | {""}
    for n in graph.node:
        if n.op_type in KNOWN_BY_SHAPE or (n.input and found.issuperset(n.input)):
            found.update(n.output)
    return frozenset(found)


def _needed(model: Model) -> frozenset[str]:
    """The values that the graph's outputs are made of, what bodies read of outside included."""
    makers = {o: n for n in model.proto.graph.node for o in n.output}
    found: set[str] = set()
    waiting = [o.name for o in model.proto.graph.output]
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        found.add(value)
        if value in makers:
            waiting += _read(makers[value])
    return frozenset(found)


def _read(node: onnx.NodeProto) -> list[str]:
    bodies = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return [*node.input, *(name for body in bodies for n in body.node for name in _read(n))]


def _without_element(model: Model) -> frozenset[str]:
    inferred = onnx.shape_inference.infer_shapes(model.proto, data_prop=True).graph
    return frozenset(
        v.name
        for v in (*inferred.value_info, *inferred.output)
        if any(d.HasField("dim_value") and d.dim_value == 0 for d in v.type.tensor_type.shape.dim)
    )
