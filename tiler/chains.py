"""Which runs of calls may roll as a group, and are worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from fusion_engine.graph import FusedGraph
from tiler.row_calls import RollCall

LONGEST = 24  # calls in a group


def chains(graph: FusedGraph, calls: Sequence[RollCall | None], l1: int) -> dict[int, list[int]]:
    """By first call, the last calls of groups worth rolling: everything made inside is read inside, and L1 does not
    hold it all."""
    outputs = {graph.storage(n).root for n in graph.outputs}
    readers: dict[str, list[int]] = {}
    for i, c in enumerate(graph.calls):
        for _, name in c.operands:
            readers.setdefault(graph.storage(name).root, []).append(i)
    found: dict[int, list[int]] = {}
    for first in range(len(calls)):
        inner: list[tuple[str, int]] = []
        constants = 0
        for last in range(first, min(first + LONGEST, len(calls))):
            call = calls[last]
            if call is None:
                break
            constants += sum(prod(o.extent) * o.itemsize for o in call.bound.operands if o.role == "const")
            if constants > l1:
                break
            if last > first and _closed(calls, inner, readers, outputs, first, last) and _more(graph, first, last, l1):
                found.setdefault(first, []).append(last)
            inner.append((call.out.root, last))
    return found


def _closed(
    calls: Sequence[RollCall | None],
    inner: Sequence[tuple[str, int]],
    readers: Mapping[str, list[int]],
    outputs: set[str],
    first: int,
    last: int,
) -> bool:
    for root, made in inner:
        here = readers.get(root, [])
        if root in outputs or not here or max(here) > last or min(here) <= made:
            return False
        for i in set(here):
            call = calls[i]
            assert call is not None
            if any(o.root == root and (o.name not in call.rows or not call.walks(o)) for o in call.bound.operands):
                return False
        maker = calls[made]
        if maker is None or not maker.walks(maker.out):
            return False
    return first < last


def _more(graph: FusedGraph, first: int, last: int, l1: int) -> bool:
    """Whether all that some calls use is more than L1 holds: else it stays, and nothing is gained by rows."""
    calls = graph.calls[first : last + 1]
    roots = {graph.storage(n).root for c in calls for _, n in (*c.operands, *c.results)}
    return sum(graph.buffer[r].nbytes for r in roots) > l1
