"""A graph under change: who makes and reads each value, and sets of nodes that may become one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import onnx

from fusion_engine.view.subgraphs import reads


class Wiring:
    """The nodes of a graph by position (None where a node went), who makes each value, who reads it.

    A call that replaces a region stands where the region's last node stood: positions never move, and no longer say
    which node comes first.
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.nodes: list[onnx.NodeProto | None] = []
        self.outputs = frozenset(o.name for o in graph.output)
        self.maker: dict[str, int] = {}
        self.readers: dict[str, set[int]] = {}
        for node in graph.node:
            self.nodes.append(None)
            self._place(len(self.nodes) - 1, node)

    def __getitem__(self, k: int) -> onnx.NodeProto:
        node = self.nodes[k]
        assert node is not None
        return node

    def replace(self, region: frozenset[int], call: onnx.NodeProto) -> int:
        """Put `call` in the region's place; its position."""
        for k in region:
            for value in reads(self[k]):
                self.readers[value].discard(k)
            for o in self[k].output:
                self.maker.pop(o, None)
            self.nodes[k] = None
        self._place(max(region), call)
        return max(region)

    def users(self, k: int) -> Iterator[int]:
        """Positions of the nodes that read what node k makes."""
        for o in self[k].output:
            yield from self.readers.get(o, ())

    def sources(self, k: int) -> Iterator[int]:
        """Positions of the nodes whose results node k reads."""
        for value in reads(self[k]):
            if value in self.maker:
                yield self.maker[value]

    def _place(self, k: int, node: onnx.NodeProto) -> None:
        self.nodes[k] = node
        self.maker |= {o: k for o in node.output if o}
        for value in reads(node):
            self.readers.setdefault(value, set()).add(k)


def closed(wiring: Wiring, region: frozenset[int]) -> frozenset[int]:
    """The region with every node on a path from it back into it, and the constants that it alone reads."""
    after, before = _reached(region, wiring.users), _reached(region, wiring.sources)
    return _with_constants(wiring, region | (after & before))


def between(wiring: Wiring, starts: Iterable[int], ends: Iterable[int]) -> frozenset[int]:
    """Nodes on a path from a start to an end, the ends themselves left out."""
    starts, ends = frozenset(starts), frozenset(ends)
    return (_reached(starts, wiring.users) & _reached(ends, wiring.sources)) - starts - ends


def pieces(wiring: Wiring, region: frozenset[int]) -> list[frozenset[int]]:
    """The region's connected parts, in order: the calls of an instance that runs more than once."""
    left, found = set(region), []
    while left:
        part = _reached(
            frozenset({min(left)}), lambda k: (n for n in (*wiring.users(k), *wiring.sources(k)) if n in region)
        )
        found.append(part | {min(left)})
        left -= found[-1]
    return found


def free_values(wiring: Wiring, region: frozenset[int]) -> tuple[str, ...]:
    """What the region reads and does not make, in order of first use."""
    return free_in([wiring[k] for k in sorted(region)])


def free_in(nodes: Sequence[onnx.NodeProto]) -> tuple[str, ...]:
    """What nodes read and do not make, in order of first use."""
    made = {o for n in nodes for o in n.output}
    return tuple(dict.fromkeys(v for n in nodes for v in reads(n) if v not in made))


def results(wiring: Wiring, region: frozenset[int]) -> tuple[str, ...]:
    """What the region makes and others, or the graph's outputs, take."""
    return tuple(
        o
        for k in sorted(region)
        for o in wiring[k].output
        if o and (o in wiring.outputs or not wiring.readers.get(o, set()) <= region)
    )


def in_order(nodes: Iterable[onnx.NodeProto], wanted: Iterable[str] | None = None) -> list[onnx.NodeProto]:
    """The nodes so that makers stand before readers, otherwise as they stood; with `wanted`, those that make these
    values alone, in an order that follows from the structure and not from where they stood."""
    waiting = list(nodes)
    maker = {o: k for k, n in enumerate(waiting) for o in n.output if o}
    placed: dict[int, None] = {}
    for first in range(len(waiting)) if wanted is None else [maker[v] for v in wanted]:
        stack = [first]
        while stack:
            needed = [m for v in reads(waiting[stack[-1]]) if (m := maker.get(v, -1)) >= 0 and m not in placed]
            if needed and stack[-1] not in placed:
                stack.extend(reversed(needed))
            else:
                placed[stack.pop()] = None
    return [waiting[k] for k in placed]


def _reached(start: frozenset[int], step: Callable[[int], Iterable[int]]) -> frozenset[int]:
    seen: set[int] = set()
    stack = list(start)
    while stack:
        for n in step(stack.pop()):
            if n not in seen:
                seen.add(n)
                stack.append(n)
    return frozenset(seen)


def _with_constants(wiring: Wiring, region: frozenset[int]) -> frozenset[int]:
    near = {s for k in region for s in wiring.sources(k) if not reads(wiring[s])}
    return region | {s for s in near if {*wiring.users(s)} <= region and not wiring.outputs & {*wiring[s].output}}
