"""When each root buffer is needed: over which calls, read and written by whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from fusion_engine.graph import Buffer, FusedGraph


@dataclass(frozen=True, slots=True)
class Life:
    """A root that is written (or given): live during calls first..last. `bytes` of the whole root."""

    root: str
    bytes: int
    first: int
    last: int


def activation_lives(graph: FusedGraph) -> tuple[Life, ...]:
    """Every root that is not a constant, in the graph's order. Inputs live from call 0, outputs to the last call.

    Views live in their root, so a concatenation lives from its first part to its last reader.
    """
    end = max(len(graph.calls) - 1, 0)
    uses: dict[str, list[int]] = {}
    for i, call in enumerate(graph.calls):
        for _, name in (*call.operands, *call.results):
            uses.setdefault(graph.storage(name).root, []).append(i)
    for name in graph.inputs:
        uses.setdefault(graph.storage(name).root, []).append(0)
    for name in graph.outputs:
        uses.setdefault(graph.storage(name).root, []).append(end)
    lives = []
    for b in graph.buffers:
        if b.name in uses and b.data is None:
            lives.append(Life(b.name, b.nbytes, min(uses[b.name]), max(uses[b.name])))
    return tuple(lives)


def input_roots(graph: FusedGraph) -> tuple[str, ...]:
    """Roots of the graph's inputs, each once."""
    return tuple(dict.fromkeys(graph.storage(n).root for n in graph.inputs))


def end_lives(graph: FusedGraph, lives: Sequence[Life]) -> tuple[Life, ...]:
    """Of the graph's inputs and outputs: what a caller gives and takes in L2."""
    ends = {*input_roots(graph), *(graph.storage(n).root for n in graph.outputs)}
    return tuple(v for v in lives if v.root in ends)


def most_live(lives: Sequence[Life], calls: int) -> int:
    """The greatest sum of bytes live during one call."""
    return max((sum(v.bytes for v in lives if v.first <= i <= v.last) for i in range(calls)), default=0)


def constant_outputs(graph: FusedGraph) -> tuple[Buffer, ...]:
    """Constants that are themselves outputs of the graph (or seen by one)."""
    roots = dict.fromkeys(graph.storage(n).root for n in graph.outputs)
    return tuple(b for b in graph.buffers if b.name in roots and b.data is not None)


def logical_bytes(graph: FusedGraph, names: tuple[str, ...]) -> int:
    """Bytes of these buffers, each counted once."""
    return sum(prod(graph.buffer[n].shape) * graph.buffer[n].itemsize for n in dict.fromkeys(names))
