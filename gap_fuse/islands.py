"""Calls that compute in float between integers, and why no integer kernel took them."""

from __future__ import annotations

from collections.abc import Mapping

from fusion_engine import Planned
from fusion_engine.covering.types import Decline
from fusion_engine.graph import Call, FusedGraph
from fusion_engine.matching import explain_node

_FLOAT = ("float32", "float16", "float64")
_BORDERS = ("DequantizeLinear", "QuantizeLinear")


def explained_islands(graph: FusedGraph, planned: Planned) -> list[dict[str, str]]:
    """`float_islands`, each with `why`: the nearest reason for which no integer kernel took its nodes."""
    return [{**island, "why": why(planned, island)} for island in float_islands(graph)]


def why(planned: Planned, island: Mapping[str, str]) -> str:
    """The nearest decline at the nodes of an island, a sentence.

    Its last node comes first: a match from there is of the whole island, one from further up stops at a float.
    """
    names = set(island["nodes"].split(", "))
    inside = [n.index for n in planned.view.nodes if n.op not in _BORDERS and names & set(n.origins)]
    found = [
        (not _of_integers(planned, d), d.rule != island["rule"], -n, -d.depth, d.reason)
        for n in inside
        for d in explain_node(planned.view, planned.rules, planned.kernels, n, planned.cost)
    ]
    return min(found)[-1] if found else "no rule with an integer kernel comes near"


def _of_integers(planned: Planned, decline: Decline) -> bool:
    kernel = planned.kernels.get(decline.reason.partition(":")[0])
    return kernel is not None and kernel.name.endswith("_i8")


def float_islands(graph: FusedGraph) -> list[dict[str, str]]:
    """Calls that compute in float between a dequantisation and a quantisation, other than those two themselves."""
    read_by: dict[str, list[Call]] = {}
    for call in graph.calls:
        for _, buffer in call.operands:
            read_by.setdefault(graph.root(buffer), []).append(call)
    islands = [
        c
        for c in graph.calls
        if _is_float(graph, c) and _after_dequantise(graph, c) and _before_quantise(graph, read_by, c)
    ]
    return [
        {"call": c.name, "kernel": c.kernel, "rule": c.provenance.rule, "nodes": ", ".join(c.provenance.nodes)}
        for c in islands
    ]


def quantises(call: Call) -> bool:
    """QuantizeLinear of its own, to integers of any width."""
    return call.kernel.startswith("quantize_linear")


def dequantises(call: Call) -> bool:
    """DequantizeLinear of its own, from integers of any width."""
    return call.kernel.startswith("dequantize_linear")


def _is_float(graph: FusedGraph, call: Call) -> bool:
    if quantises(call) or dequantises(call) or call.kernel == "copy":
        return False
    return all(graph.buffer[b].dtype in _FLOAT for _, b in call.results)


def _after_dequantise(graph: FusedGraph, call: Call) -> bool:
    return any(_reaches_dequantise(graph, buffer) for _, buffer in call.operands)


def _reaches_dequantise(graph: FusedGraph, buffer: str) -> bool:
    frontier, seen = [buffer], set()
    while frontier:
        owner = graph.root(frontier.pop())
        if owner in seen:
            continue
        seen.add(owner)
        for maker in graph.makers.get(owner, ()):
            if dequantises(maker):
                return True
            if _is_float(graph, maker) or maker.kernel == "copy":
                frontier.extend(b for _, b in maker.operands)
    return False


def _before_quantise(graph: FusedGraph, read_by: Mapping[str, list[Call]], call: Call) -> bool:
    frontier, seen = [b for _, b in call.results], set()
    while frontier:
        owner = graph.root(frontier.pop())
        if owner in seen:
            continue
        seen.add(owner)
        for reader in read_by.get(owner, []):
            if quantises(reader):
                return True
            if _is_float(graph, reader) or reader.kernel == "copy":
                frontier.extend(b for _, b in reader.results)
    return False
