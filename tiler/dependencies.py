"""Which calls must wait for which: by the bytes that they read and write."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_engine.graph import FusedGraph

Box = tuple[str, tuple[tuple[int, int], ...]]  # a root, and per axis of it from where to where


def predecessors(graph: FusedGraph) -> list[int]:
    """Per call the calls before it (bits) that write what it reads, or read or write what it writes. Parts of one
    tensor that do not overlap do not wait for each other."""
    reads = [[_box(graph, n) for _, n in c.operands if graph.buffer[graph.root(n)].data is None] for c in graph.calls]
    writes = [[_box(graph, n) for _, n in c.results] for c in graph.calls]
    touched: dict[str, list[int]] = {}
    result = []
    for i in range(len(graph.calls)):
        roots = dict.fromkeys(root for root, _ in (*reads[i], *writes[i]))
        earlier = dict.fromkeys(j for root in roots for j in touched.get(root, ()))
        result.append(sum(1 << j for j in earlier if _waits(reads, writes, j, i)))
        for root in roots:
            touched.setdefault(root, []).append(i)
    return result


def _waits(reads: Sequence[Sequence[Box]], writes: Sequence[Sequence[Box]], first: int, then: int) -> bool:
    return _any_meet(writes[first], (*reads[then], *writes[then])) or _any_meet(reads[first], writes[then])


def _any_meet(some: Sequence[Box], others: Sequence[Box]) -> bool:
    return any(a[0] == b[0] and _meet(a, b) for a in some for b in others)


def _meet(a: Box, b: Box) -> bool:
    return all(x < w and v < y for (x, y), (v, w) in zip(a[1], b[1], strict=True))


def _box(graph: FusedGraph, name: str) -> Box:
    """The part of its root that a buffer lies in, as far as slices say it (what is reshaped or transposed lies
    somewhere in what it is a view of)."""
    chain = [graph.buffer[name]]
    while (alias := chain[-1].alias) is not None:
        chain.append(graph.buffer[alias.of])
    root = chain.pop()
    box = tuple((0, n) for n in root.shape)
    for b in reversed(chain):
        assert b.alias is not None
        if b.alias.start is None:
            break
        steps = b.alias.step or (1,) * len(b.shape)
        box = tuple(
            (low + s, low + s + k * (n - 1) + 1)
            for (low, _), s, n, k in zip(box, b.alias.start, b.shape, steps, strict=True)
        )
        if b.alias.step is not None and any(k != 1 for k in b.alias.step):
            break
    return root.name, box
