"""The last step: from the draft to the frozen View, outputs under their own names, quantisation noted on values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import onnx

from fusion_engine.graph import Quantisation
from fusion_engine.opened import opened
from fusion_engine.view.draft import Draft, Node
from fusion_engine.view.movement import data_inputs, moves
from fusion_engine.view.order import ordered
from fusion_engine.view.subgraphs import renamed_graph
from fusion_engine.view.types import View, ViewNode, ViewValue, view_value


def freeze(draft: Draft, name: str, opset: int, inputs: list[str], outputs: list[str]) -> View:
    """The View of a finished draft: live nodes only, in an order that follows from the graph alone."""
    names = _output_names(draft, inputs, outputs)
    nodes = ordered(draft.nodes, list(dict.fromkeys(outputs)), draft.where, draft.resolve)
    meaning = _quantisations(draft, nodes)
    shared: dict[Hashable, Mapping[str, Any]] = {}
    frozen = tuple([_node(i, n, names, shared) for i, n in enumerate(nodes)])
    used: dict[str | None, None] = dict.fromkeys(inputs)
    for n in frozen:
        used.update(dict.fromkeys((*n.inputs, *n.captures, *n.outputs)))
    used.update(dict.fromkeys(outputs))
    values = {v: _value(draft, v, meaning) for v in used if v}
    users = _users(frozen, values)
    return View(
        name=name,
        opset=opset,
        nodes=frozen,
        values=MappingProxyType(values),
        producer=MappingProxyType({o: n.index for n in frozen for o in n.outputs if o}),
        users=MappingProxyType(users),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        aliases=MappingProxyType(_aliases(draft, values)),
    )


def _output_names(draft: Draft, inputs: list[str], outputs: list[str]) -> dict[str, str]:
    """Give each graph output its own name: rename the value that stands for it, or put an Identity after it.

    Rewrites the draft's nodes; returns the renaming.
    """
    names: dict[str, str] = {}
    echoes: list[Node] = []
    for output in dict.fromkeys(outputs):
        value = draft.resolve(output) or output
        if value == output and output in draft.producer:
            continue
        if value in draft.producer and value not in outputs and value not in names:
            names[value] = output
        elif not (value == output and output in inputs):
            echoes.append(_echo(draft, value, names.get(value, value), output))
    _rename(draft, names)
    draft.nodes += echoes
    return names


def _echo(draft: Draft, made: str, value: str, output: str) -> Node:
    """Identity from the value, made as `made`, to the output; a constant that has the output's name moves aside.

    It stands for the nodes of the file that its maker stands for: those that were looked through are among them.
    """
    known, maker = draft.values.get(value), draft.producer.get(made)
    dtype, shape = draft.type(made)
    if value == output and known is not None:
        value = draft.fresh(f"{output}_constant")
        draft.values[value] = replace(known, name=value)
    draft.aliases.pop(output, None)
    echo = Node("Identity", [value], [output], {}, maker.origins if maker is not None else (output,))
    draft.producer[output] = echo
    draft.values[output] = ViewValue(output, dtype, shape, draft.const(made))
    return echo


def _rename(draft: Draft, names: Mapping[str, str]) -> None:
    if not names:
        return
    for node in draft.nodes:
        node.inputs = [names.get(i, i) if i is not None else None for i in node.inputs]
        node.outputs = [names.get(o, o) for o in node.outputs]
    for old, new in names.items():
        draft.values[new] = replace(draft.values.pop(old), name=new)
        draft.producer[new] = draft.producer.pop(old)
        del draft.aliases[new]
        draft.aliases[old] = new


def _node(index: int, node: Node, names: Mapping[str, str], shared: dict[Hashable, Mapping[str, Any]]) -> ViewNode:
    final = {c: names.get(c, c) for c in node.captures}
    frozen = object.__new__(_OpenNode)
    frozen.index, frozen.op, frozen.overload = index, node.op, node.overload
    frozen.inputs, frozen.outputs, frozen.captures = tuple(node.inputs), tuple(node.outputs), tuple(final.values())
    frozen.attrs = _attributes(node, final, shared)
    frozen.origins, frozen.scopes, frozen.metadata = node.origins, node.scopes, node.metadata
    frozen.__class__ = ViewNode
    made: ViewNode = frozen
    return made


_OpenNode = opened(ViewNode)


def _attributes(node: Node, final: Mapping[str, str], shared: dict[Hashable, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The node's attributes, one object for all nodes that have the same."""
    items = tuple(node.attrs.items())
    try:
        key = (node.op, items)
        known = shared.get(key)
    except TypeError:  # a tensor or a graph
        graphs = {k: renamed_graph(v, final) for k, v in items if isinstance(v, onnx.GraphProto)}
        return MappingProxyType(dict(items) | {k: g.SerializeToString() for k, g in graphs.items()})
    if known is None:
        known = shared[key] = MappingProxyType(dict(items))
    return known


def _value(draft: Draft, name: str, meaning: Mapping[str, Quantisation]) -> ViewValue:
    value = draft.values.get(name) or ViewValue(name, None, None)
    known = meaning.get(name)
    return value if known is None else view_value(name, value.dtype, value.shape, value.const, known)


def _users(nodes: Iterable[ViewNode], values: Iterable[str]) -> dict[str, tuple[int, ...]]:
    users: dict[str, list[int]] = {v: [] for v in values}
    for n in nodes:
        for v in (*n.inputs, *n.captures):
            if v is not None and n.index not in users[v][-1:]:
                users[v].append(n.index)
    return {v: tuple(u) for v, u in users.items()}


def _aliases(draft: Draft, values: Mapping[str, ViewValue]) -> dict[str, str]:
    pairs = ((a, draft.resolve(a)) for a in draft.aliases)
    return {a: t for a, t in pairs if t is not None and t in values and a not in values}


def _quantisations(draft: Draft, nodes: list[Node]) -> dict[str, Quantisation]:
    """What integers mean: from Q that makes them and DQ that reads them, carried over movement."""
    found: dict[str, Quantisation] = {}
    for node in nodes:
        if node.op in ("QuantizeLinear", "DequantizeLinear"):
            value = node.outputs[0] if node.op == "QuantizeLinear" else node.inputs[0]
            if value is not None and value not in found:
                meaning = _meaning(draft, node)
                if meaning is not None:
                    found[value] = meaning
        elif moves(node):
            source = found.get(node.inputs[data_inputs(node)[0]] or "")
            if source is not None and source.axis is None:
                found.update({o: source for o in node.outputs if o and o not in found})
    for node in reversed(nodes):
        result = found.get(node.outputs[0])
        if result is not None and result.axis is None and moves(node):
            found.update({v: result for i in data_inputs(node) if (v := node.inputs[i]) is not None and v not in found})
    return found


def _meaning(draft: Draft, node: Node) -> Quantisation | None:
    scale, zero = draft.const(node.inputs[1]), draft.const(node.input(2))
    if scale is None or node.attrs.get("block_size") or scale.ndim > 1:
        return None
    return Quantisation.of(scale, zero, node.attrs.get("axis", 1))
