"""Shape arithmetic and constants that common subexpressions share between modules: each module gets its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import onnx

from fusion_engine.view.subgraphs import reads
from gap_fuse.export.functions import renamed
from gap_fuse.export.scopes import SEPARATOR

ARITHMETIC = {
    *("Add", "Sub", "Mul", "Div", "Cast", "Concat", "ConstantOfShape", "Expand", "Gather", "Identity", "Range"),
    *("Reshape", "Slice", "Squeeze", "Unsqueeze", "Size", "Where", "Equal"),
}
Scope = frozenset[object]


def unshare(graph: onnx.GraphProto, scope: Callable[[onnx.NodeProto], Scope]) -> None:
    """Copy nodes that compute from shapes and constants alone into each scope that reads them, with its marks."""
    nodes = list(graph.node)
    shared = _from_shapes(graph)
    outputs = {o.name for o in graph.output}
    placed: list[list[onnx.NodeProto]] = [[n] for n in nodes]
    readers = _readers(nodes)
    for k in reversed(range(len(nodes))):
        if k not in shared:
            continue
        groups: dict[Scope, list[onnx.NodeProto]] = {}
        for reader in _distinct(r for o in nodes[k].output for r in readers.get(o, ())):
            groups.setdefault(scope(reader), []).append(reader)
        own = scope(nodes[k])
        keeps = own in groups or bool(outputs & {*nodes[k].output})
        for at, (inside, group) in enumerate(groups.items()):
            if inside != own:
                copy = _copy(nodes[k], group[0], at)
                _redirect(group, dict(zip(nodes[k].output, copy.output, strict=True)))
                placed[k].append(copy)
                for value in reads(copy):
                    readers.setdefault(value, []).append(copy)
        if not keeps and groups:
            placed[k].remove(nodes[k])
            for value in reads(nodes[k]):
                readers[value] = [r for r in readers[value] if r is not nodes[k]]
    del graph.node[:]
    graph.node.extend(n for group in placed for n in group)


def own_shapes(
    region: list[onnx.NodeProto], data: tuple[str, ...], dims: Mapping[str, tuple[str, ...]]
) -> list[onnx.NodeProto]:
    """The nodes, where a Shape that reads one symbolic dimension of a value nothing else here needs reads the same
    dimension of another input instead: the exporter's symbols say that they are equal."""
    return [_rewired(n, region, data, dims) if n.op_type == "Shape" else n for n in region]


def _rewired(
    node: onnx.NodeProto, region: list[onnx.NodeProto], data: tuple[str, ...], dims: Mapping[str, tuple[str, ...]]
) -> onnx.NodeProto:
    found = _same_dimension(node, region, data, dims)
    if found is None:
        return node
    value, axis = found
    copy = renamed(node, {node.input[0]: value})
    del copy.attribute[:]
    copy.attribute.extend(onnx.helper.make_attribute(k, v) for k, v in (("start", axis), ("end", axis + 1)))
    return copy


def _same_dimension(
    node: onnx.NodeProto, region: list[onnx.NodeProto], data: tuple[str, ...], dims: Mapping[str, tuple[str, ...]]
) -> tuple[str, int] | None:
    value = node.input[0]
    bounds = {a.name: a.i for a in node.attribute}
    start = bounds.get("start", 0)
    if value not in data or bounds.get("end") != start + 1 or len(dims.get(value, ())) <= start:
        return None
    if any(value in reads(n) for n in region if n.op_type != "Shape") or not dims[value][start]:
        return None
    for other in data:
        if other != value and dims[value][start] in dims.get(other, ()):
            return other, dims[other].index(dims[value][start])
    return None


def symbols(graph: onnx.GraphProto) -> dict[str, tuple[str, ...]]:
    """Each value's symbolic dimensions, "" where one is a number or unknown."""
    infos = [*graph.input, *graph.value_info, *graph.output]
    return {i.name: tuple(d.dim_param for d in i.type.tensor_type.shape.dim) for i in infos}


def _from_shapes(graph: onnx.GraphProto) -> set[int]:
    """Positions of nodes that follow from shapes and constants alone."""
    known = {t.name for t in graph.initializer}
    found: set[int] = set()
    for k, node in enumerate(graph.node):
        lone = node.op_type in ("Shape", "Size", "Constant")
        if lone or (node.op_type in ARITHMETIC and node.domain == "" and all(v in known for v in reads(node))):
            found.add(k)
            known.update(node.output)
    return found


def _readers(nodes: list[onnx.NodeProto]) -> dict[str, list[onnx.NodeProto]]:
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        for value in dict.fromkeys(reads(node)):
            readers.setdefault(value, []).append(node)
    return readers


def _distinct(nodes: Iterator[onnx.NodeProto]) -> list[onnx.NodeProto]:
    return list({id(n): n for n in nodes}.values())


def _copy(node: onnx.NodeProto, reader: onnx.NodeProto, number: int) -> onnx.NodeProto:
    names = {o: f"{o}@{reader.output[0]}.{number}" for o in node.output if o}
    copy = renamed(node, names)
    prefix, slash, last = (reader.name or reader.output[0]).rpartition(SEPARATOR)  # paths in names are marks too
    copy.name = f"{prefix}{slash}{node.op_type}@{last}.{number}"
    del copy.metadata_props[:]
    copy.metadata_props.extend(reader.metadata_props)
    return copy


def _redirect(group: list[onnx.NodeProto], names: Mapping[str, str]) -> None:
    for node in group:
        moved = renamed(node, {v: n for v, n in names.items() if v not in node.output})
        node.CopyFrom(moved)
