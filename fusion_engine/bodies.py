"""Bodies of If, Loop and Scan that stay bodies: why they do, and what the rules would find inside.

A network is a straight list of calls: If of a constant, and Loop and Scan of a known number of steps, are straight
nodes in the view already. What is left is taken by no kernel; rules are matched inside it all the same, so that one can
see what a constant condition or trip count would bring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx
from onnx import helper

from fusion_engine.diagnostics import counted
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import Cost, MatchResult, match
from fusion_engine.model import Model
from fusion_engine.view import View, ViewNode, view
from fusion_engine.view.operators import newest
from fusion_engine.view.write import value_info

CONTROL = frozenset(("If", "Loop", "Scan"))
STAYS = {
    "If": "its condition is not known at compile time",
    "Loop": "its number of steps is not known at compile time, or its body changes the condition",
    "Scan": "its number of steps is not known at compile time",
}


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """One body of a node: the attribute's name, and the body as a network of its own (outer values are inputs)."""

    node: ViewNode
    name: str
    view: View


def bodies(seen: View) -> tuple[Body, ...]:
    """Every body that stays one, in the order of the nodes; those inside bodies come behind their own."""
    found: list[Body] = []
    for node in seen.nodes:
        if node.op in CONTROL:
            for name, value in sorted(node.attrs.items()):
                if isinstance(value, bytes):
                    inside = view(_as_model(seen, node, onnx.GraphProto.FromString(value)))
                    found += [Body(node, name, inside), *bodies(inside)]
    return tuple(found)


def match_bodies(
    seen: View, rules: RuleSet, kernels: Mapping[str, Kernel], cost: Cost | None = None
) -> tuple[tuple[Body, MatchResult], ...]:
    """What the rules find inside each body, as if it were a network of its own."""
    return tuple((body, match(body.view, rules, kernels, cost)) for body in bodies(seen))


def inside(node: ViewNode, found: tuple[tuple[Body, MatchResult], ...]) -> tuple[str, ...]:
    """A sentence per body of the node: how many of its nodes kernels would take, by which rules."""
    sentences = []
    for body, result in found:
        if body.node is not node:
            continue
        taken = {i for c in result.candidates for i in c.nodes}
        rules = ", ".join(sorted({c.rule for c in result.candidates})) or "none"
        sentences.append(
            f"{body.name}: rules would take {len(taken)} of {counted(len(body.view.nodes), 'node')} ({rules})"
        )
    return tuple(sentences)


def _as_model(seen: View, node: ViewNode, graph: onnx.GraphProto) -> Model:
    """The body with what it reads from outside as inputs, constants as initializers."""
    alone = onnx.GraphProto()
    alone.CopyFrom(graph)
    alone.name = alone.name or node.outputs[0]
    for name in node.captures:
        const = seen.const(name)
        if const is None:
            alone.input.append(value_info(seen.values[name]))
        else:
            alone.initializer.append(onnx.numpy_helper.from_array(const, name))
    domains = sorted({n.domain for n in graph.node} - {"", "ai.onnx"})
    imports = [helper.make_opsetid("", seen.opset), *(helper.make_opsetid(d, newest(d)) for d in domains)]
    return Model(alone.name, helper.make_model(alone, opset_imports=imports))
