"""Subgraphs (the bodies of If, Loop and Scan) as the file writes them: what they read of the graph around them."""

from __future__ import annotations

from collections.abc import Mapping

import onnx


def reads(node: onnx.NodeProto) -> tuple[str, ...]:
    """Values that a node reads, those of its bodies included, in order; one that is read twice stands twice."""
    inner = [v for a in node.attribute if a.HasField("g") for v in free_names(a.g)]
    return tuple(v for v in (*node.input, *inner) if v)


def free_names(graph: onnx.GraphProto) -> list[str]:
    """Outer values that a subgraph reads, in order of first use."""
    own = {*(i.name for i in graph.input), *(t.name for t in graph.initializer)}
    own |= {o for n in graph.node for o in n.output}
    found = dict.fromkeys(v for node in graph.node for v in reads(node) if v not in own)
    found.update((o.name, None) for o in graph.output if o.name not in own)
    return list(found)


def renamed_graph(graph: onnx.GraphProto, names: Mapping[str, str]) -> onnx.GraphProto:
    """A copy whose free names are replaced."""
    if all(k == v for k, v in names.items()):
        return graph
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    _rename_uses(copy, names)
    return copy


def _rename_uses(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)
        for a in node.attribute:
            if a.HasField("g"):
                _rename_uses(a.g, names)
    for output in graph.output:
        output.name = names.get(output.name, output.name)
