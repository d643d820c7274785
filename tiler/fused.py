"""Fused groups: runs of calls joined by tensors that stay in L1, with what moves beside what must."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_engine.graph import FusedGraph
from tiler.bounds import touched_bytes
from tiler.liveness import Life
from tiler.near import runs
from tiler.options import Picked
from tiler.schedule import Group


def groups(
    graph: FusedGraph,
    picked: Sequence[Picked],
    stays: Sequence[Life],
    rolls: Sequence[tuple[int, int]],
    inner: frozenset[str],
) -> tuple[Group, ...]:
    """Every call is in one group; a group of one call keeps nothing. `rolls` are spans of calls that roll, `inner` the
    roots that exist only by rows."""
    return tuple(
        Group(
            first,
            last,
            tuple(v.root for v in stays if first <= v.first <= last),
            _bound(graph, picked[first : last + 1], frozenset(v.root for v in stays) | inner),
        )
        for first, last in runs(stays, len(picked), rolls)
    )


def _bound(graph: FusedGraph, picked: Sequence[Picked], stays: frozenset[str]) -> int:
    most: dict[tuple[str, str], int] = {}
    for p in picked:
        for o in p.bound.operands:
            if o.root not in stays:
                key = o.root, o.buffer
                most[key] = max(most.get(key, 0), touched_bytes(graph, p.bound, o))
    return sum(most.values())
