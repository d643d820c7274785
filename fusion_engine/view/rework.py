"""Nodes of a view brought back to the draft: what rewriting makes is normalised as what a file says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx

from fusion_engine.view.build import settle
from fusion_engine.view.draft import Draft, Node
from fusion_engine.view.freeze import freeze
from fusion_engine.view.infer import Memo
from fusion_engine.view.load import library
from fusion_engine.view.normal import Walk, normalise
from fusion_engine.view.operators import operator
from fusion_engine.view.order import ordered
from fusion_engine.view.subgraphs import renamed_graph
from fusion_engine.view.types import View, ViewNode, ViewValue


def normal_form(nodes: Iterable[Node], values: Mapping[str, ViewValue], taken: set[str], memo: Memo) -> Draft:
    """A draft of these nodes alone, in topological order; `values` are those that they read from outside.

    Names in `taken` are given to nothing new; what is new joins them. Raises GapFuseError for a node that does not
    fit its operands.
    """
    draft = Draft(values=dict(values), taken=taken)
    normalise(draft, nodes, _walk(memo))
    return draft


def rebuilt(old: View, nodes: Sequence[ViewNode], values: Mapping[str, ViewValue]) -> View:
    """A view of these nodes, normalised anew as a whole; they are in any order and make the outputs of `old`."""
    made = {o for n in nodes for o in n.outputs}
    draft = Draft(
        values={k: v for k, v in values.items() if k not in made},
        aliases=dict(old.aliases),
        declared={k: (v.dtype, v.shape) for k, v in values.items() if k in made},
        taken={*values, *old.aliases},
    )
    outputs = list(old.outputs)
    walk = _walk({})
    normalise(draft, ordered([_draft_node(n) for n in nodes], outputs, None), walk)
    return freeze(settle(draft, outputs, walk), old.name, old.opset, list(old.inputs), outputs)


def captured_renamed(node: ViewNode, names: Mapping[str, str]) -> dict[str, Any]:
    """The attributes of a node whose bodies read other outer values."""
    return {
        k: renamed_graph(v, names).SerializeToString() if isinstance(v, onnx.GraphProto) else v
        for k, v in _attributes(node).items()
    }


def _walk(memo: Memo) -> Walk:
    return Walk(library(onnx.ModelProto(), frozenset(), None), {}, memo=memo)


def _draft_node(node: ViewNode) -> Node:
    return Node(
        node.op,
        list(node.inputs),
        list(node.outputs),
        _attributes(node),
        node.origins,
        node.scopes,
        overload=node.overload,
        captures=node.captures,
        metadata=node.metadata,
    )


def _attributes(node: ViewNode) -> dict[str, Any]:
    """The view holds a body as bytes, the draft as a graph."""
    known = operator(node.op)
    kinds = known.types if known is not None else {}
    return {
        k: onnx.GraphProto.FromString(v) if isinstance(v, bytes) and kinds.get(k) == onnx.AttributeProto.GRAPH else v
        for k, v in node.attrs.items()
    }
