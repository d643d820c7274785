"""view(): from a Model to the View that rules are matched against."""

from __future__ import annotations

from fusion_engine.collection import paused
from fusion_engine.diagnostics import Span
from fusion_engine.model import Model
from fusion_engine.view.draft import UNKNOWN, Draft, Node, type_of
from fusion_engine.view.freeze import freeze
from fusion_engine.view.load import Frame, library, opsets, read_nodes
from fusion_engine.view.normal import Walk, add_initializers, normalise
from fusion_engine.view.order import ordered
from fusion_engine.view.rise import rise
from fusion_engine.view.types import View, ViewValue

_ROUNDS = 16  # each round lifts every QuantizeLinear as far as it goes; a second one finds what folding opened


def view(model: Model, closed: frozenset[str] = frozenset(), opened: frozenset[str] = frozenset()) -> View:
    """The model in normal form: see ARCHITECTURE.md, "The view".

    `closed` names model-local functions (`domain::name`) that stay calls; all others are inlined.
    `opened` names operators to replace by their function body in the ONNX standard, where they have one, and calls
    (`call_key`) of closed functions that do not stay calls.
    Raises GapFuseError, naming the node, for a graph that contradicts itself.
    """
    with paused():
        return _view(model, closed, opened)


def _view(model: Model, closed: frozenset[str], opened: frozenset[str]) -> View:
    proto = model.proto
    where = Span(str(model.path)) if model.path is not None else None
    versions = opsets(proto.opset_import)
    walk = Walk(library(proto, closed, where, opened), versions, opened)
    inputs, outputs = list(model.inputs), list(model.outputs)
    draft = _start(model, inputs, where)
    nodes = read_nodes(proto.graph.node, Frame(versions), walk.lib)
    draft.taken.update(o for n in nodes for o in n.outputs)
    normalise(draft, ordered(nodes, outputs, where), walk)
    draft = settle(draft, outputs, walk)
    return freeze(draft, model.name, versions.get("", 1), inputs, outputs)


def settle(draft: Draft, outputs: list[str], walk: Walk) -> Draft:
    """The draft once no QuantizeLinear can rise any further."""
    for _ in range(_ROUNDS):
        ends = [draft.resolve(o) or o for o in outputs]
        new = rise(draft, ends)
        if not new:
            break
        draft = _again(draft, [*draft.nodes, *new], ends, walk)
    return draft


def _start(model: Model, inputs: list[str], where: Span | None) -> Draft:
    graph = model.proto.graph
    draft = Draft(where=where)
    draft.taken.update(i.name for i in graph.input)
    add_initializers(draft, graph)
    for value in graph.input:
        if value.name in inputs:
            draft.values[value.name] = ViewValue(value.name, *type_of(value.type))
    for value in [*graph.value_info, *graph.output]:
        kind = type_of(value.type)
        if kind != UNKNOWN:
            draft.declared[value.name] = kind
    return draft


def _again(old: Draft, nodes: list[Node], ends: list[str], walk: Walk) -> Draft:
    """Walk once more over nodes that rising rearranged."""
    draft = Draft(
        where=old.where,
        values={k: v for k, v in old.values.items() if k not in old.producer},
        aliases=old.aliases,
        declared=old.declared,
        taken=old.taken,
        constants=old.constants,
        counts=old.counts,
    )
    unique = list({id(n): n for n in nodes}.values())
    normalise(draft, ordered(unique, ends, old.where), walk)
    return draft
