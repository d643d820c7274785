"""Control flow that is settled at compile time: If of a constant, Loop and Scan of a known number of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from fusion_engine.view.draft import Draft, Node
from fusion_engine.view.load import Frame, Library, read_nodes
from fusion_engine.view.order import ordered
from fusion_engine.view.subgraphs import free_names

_MOST_NODES = 100_000  # an unrolled loop larger than this stays a loop, and the report names it


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What bodies are read with: the model's functions and operator sets."""

    lib: Library
    opsets: Mapping[str, int]


def settled(draft: Draft, node: Node, around: Surroundings) -> list[Node] | None:
    """The nodes that do what this If, Loop or Scan does, without control flow; None where that is not known."""
    if node.op == "If":
        return _branch(draft, node, around)
    if node.op == "Scan":
        return _scan(draft, node, around)
    return _loop(draft, node, around) if node.op == "Loop" else None


def _instance(
    draft: Draft, node: Node, graph: onnx.GraphProto, given: Mapping[str, str], around: Surroundings
) -> tuple[list[Node], list[str]]:
    """One run of a body: its nodes under new names, `given` for its inputs; and the names of its results."""
    prefix = draft.fresh(f"{node.origins[0]}/")
    rename: dict[str, str | None] = {n: n for n in free_names(graph)}
    rename.update(given)
    frame = Frame({**around.opsets, "": node.version}, rename, prefix, scopes=node.scopes, metadata=node.metadata)
    for tensor in graph.initializer:
        draft.name_const(prefix + tensor.name, numpy_helper.to_array(tensor))
    results = [frame.name(o.name) or "" for o in graph.output]
    return ordered(read_nodes(graph.node, frame, around.lib), results, draft.where), results


def _echoes(node: Node, values: Sequence[str], outputs: Sequence[str]) -> list[Node]:
    return [node.derive("Identity", [v], [o]) for v, o in zip(values, outputs, strict=True) if o]


def _branch(draft: Draft, node: Node, around: Surroundings) -> list[Node] | None:
    condition = draft.const(node.inputs[0])
    if condition is None:
        return None
    graph = node.attrs["then_branch" if condition.ravel()[0] else "else_branch"]
    nodes, results = _instance(draft, node, graph, {}, around)
    return [*nodes, *_echoes(node, results, node.outputs)]


def _ints(draft: Draft, node: Node, values: Sequence[int]) -> str:
    return draft.put_const(np.asarray(values, np.int64), f"{node.outputs[0] or node.op}_axes")


def _collected(draft: Draft, node: Node, parts: list[str], output: str, axis: int) -> list[Node]:
    """The values of all steps, one behind the other along a new axis."""
    if not output:
        return []
    raised = [draft.fresh(f"{part}_raised") for part in parts]
    axes = _ints(draft, node, [axis])
    return [
        *(node.derive("Unsqueeze", [p, axes], [r]) for p, r in zip(parts, raised, strict=True)),
        node.derive("Concat", raised, [output], axis=axis),
    ]


def _scan(draft: Draft, node: Node, around: Surroundings) -> list[Node] | None:
    body, count = node.attrs["body"], node.attrs["num_scan_inputs"]
    if node.version < 9 or count < 1:
        return None
    states, scanned = node.inputs[: len(node.inputs) - count], node.inputs[len(node.inputs) - count :]
    axes = _per_input(node, "scan_input_axes", count)
    backwards = _per_input(node, "scan_input_directions", count)
    first = draft.shape(scanned[0])
    steps = first[axes[0]] if first is not None else None
    if not isinstance(steps, int) or steps < 1 or steps * len(body.node) > _MOST_NODES:
        return None
    nodes: list[Node] = []
    current = [s or "" for s in states]
    collected: list[list[str]] = [[] for _ in range(len(node.outputs) - len(states))]
    for step in range(steps):
        slices = []
        for value, axis, back in zip(scanned, axes, backwards, strict=True):
            index = draft.put_const(np.asarray(steps - 1 - step if back else step, np.int64), "step")
            slices.append(draft.fresh(f"{value}_step{step}"))
            nodes.append(node.derive("Gather", [value, index], [slices[-1]], axis=axis))
        given = dict(zip((i.name for i in body.input), [*current, *slices], strict=True))
        inner, results = _instance(draft, node, body, given, around)
        nodes += inner
        current = results[: len(states)]
        for parts, value in zip(collected, results[len(states) :], strict=True):
            parts.append(value)
    into = _per_input(node, "scan_output_axes", len(collected))
    turned = _per_input(node, "scan_output_directions", len(collected))
    nodes += _echoes(node, current, node.outputs[: len(states)])
    for parts, output, axis, back in zip(collected, node.outputs[len(states) :], into, turned, strict=True):
        nodes += _collected(draft, node, parts[::-1] if back else parts, output, axis)
    return nodes


def _per_input(node: Node, key: str, count: int) -> list[int]:
    given = node.attrs.get(key)
    return list(given) if given is not None else [0] * count


def _loop(draft: Draft, node: Node, around: Surroundings) -> list[Node] | None:
    """A Loop that counts to a constant and whose body never changes the condition."""
    body, trips, going = node.attrs["body"], draft.const(node.inputs[0]), draft.const(node.inputs[1])
    states = [s or "" for s in node.inputs[2:]]
    if trips is None or (node.inputs[1] is not None and (going is None or not going.all())):
        return None
    steps = int(trips.ravel()[0])
    collected: list[list[str]] = [[] for _ in range(len(node.outputs) - len(states))]
    small = steps >= 0 and steps * len(body.node) <= _MOST_NODES
    if not small or not _goes_on(body) or (collected and steps == 0):
        return None
    nodes: list[Node] = []
    true = draft.put_const(np.asarray(True), "true")
    for step in range(steps):
        number = draft.put_const(np.asarray(step, np.int64), "step")
        given = dict(zip((i.name for i in body.input), [number, true, *states], strict=True))
        inner, results = _instance(draft, node, body, given, around)
        nodes += inner
        states = results[1 : 1 + len(states)]
        for parts, value in zip(collected, results[1 + len(states) :], strict=True):
            parts.append(value)
    nodes += _echoes(node, states, node.outputs[: len(states)])
    for parts, output in zip(collected, node.outputs[len(states) :], strict=True):
        nodes += _collected(draft, node, parts, output, 0)
    return nodes


def _goes_on(body: onnx.GraphProto) -> bool:
    """Is the body's condition the one it was given, or a constant that is true?"""
    name, given = body.output[0].name, body.input[1].name
    makers = {o: n for n in body.node for o in n.output}
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    if name == given:
        return True
    constants = {t.name: t for t in body.initializer}
    maker = makers.get(name)
    if maker is not None and maker.op_type == "Constant" and maker.attribute[0].HasField("t"):
        constants[name] = maker.attribute[0].t
    return name in constants and bool(numpy_helper.to_array(constants[name]).all())
