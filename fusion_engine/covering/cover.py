"""Cover by demand: the cheapest candidates in which everything asked for has exactly one producer.

A graph output is asked for; so is each operand of a chosen candidate that is neither a graph input nor a constant.
A node vanishes when nothing asks for it, and is computed twice when two chosen candidates contain it; both are priced.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from fusion_engine.covering.cpsat import solve_by_cpsat
from fusion_engine.covering.exact import solve_piece
from fusion_engine.covering.items import UNITS, Item, Values, items_of, number_values
from fusion_engine.covering.pieces import Piece, makers_of, needed_values, split, undominated, viable
from fusion_engine.covering.types import Candidate, Plan
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.view.types import View

Cost = Callable[[Candidate], "float | None"]
Signature = tuple[object, ...]
CIRCLE = "the kernels found for a part of the network need each other in a circle"


class UncoveredError(GapFuseError):
    """No set of candidates makes every graph output; `nodes` are the view nodes that no candidate makes (ascending)."""

    def __init__(self, view: View, nodes: tuple[int, ...]) -> None:
        self.nodes = nodes
        named = ", ".join(f"{view.nodes[n].op} ({view.nodes[n].outputs[0]})" for n in nodes[:8])
        super().__init__(f"no kernel takes {named}" + (f" and {len(nodes) - 8} more nodes" if len(nodes) > 8 else ""))


def cover(
    view: View,
    candidates: Sequence[Candidate],
    cost: Cost | None = None,
    calls: Callable[[Candidate], int] | None = None,
) -> Plan:
    """The least-cost cover.

    `cost` prices a candidate (default: its own `cost`; None = unusable), `calls` counts its kernel calls. Ties go to
    fewer calls, then to rule, variant and emit entry. Raises UncoveredError.
    """
    values = number_values(view)
    items = items_of(candidates, values, cost or (lambda c: c.cost), calls or (lambda c: len(c.kernels)))
    roots = sorted({values.number[o] for o in view.outputs if o in values.number})
    usable = viable(undominated(items))
    _check_roots(view, values, items, usable, roots)
    ordered, gap = _solve(usable, roots)
    total = sum(item.cost for item in ordered)
    return Plan(tuple(candidates[i.index] for i in ordered), total / UNITS, gap / UNITS)


def _check_roots(view: View, values: Values, items: list[Item], usable: list[Item], roots: list[int]) -> None:
    """Name the nodes without which no output can be made."""
    good = {v for item in usable for v in item.produces}
    todo = [r for r in roots if r not in good]
    makers = makers_of(items) if todo else {}
    seen: set[int] = set(todo)
    lacking: set[int] = set()
    while todo:
        v = todo.pop()
        if v not in makers:
            lacking.add(view.producer[values.name[v]])
        for c in (c for item in makers.get(v, ()) for c in item.consumes if c not in good):
            if c not in seen:
                seen.add(c)
                todo.append(c)
    if seen:
        nodes = lacking or {view.producer[values.name[v]] for v in seen}
        raise UncoveredError(view, tuple(sorted(nodes)))


def _solve(usable: list[Item], roots: list[int]) -> tuple[list[Item], int]:
    """The chosen items, makers before readers, and how far from the least they may be."""
    reached = _reached(usable, roots)
    pieces = split(reached, needed_values(reached, roots))
    known: dict[Signature, tuple[tuple[int, ...], int]] = {}
    answers = [_solve_once(piece, known) for piece in pieces]
    return _without_circles(pieces, answers)


def _solve_once(piece: Piece, known: dict[Signature, tuple[tuple[int, ...], int]]) -> tuple[list[Item], int]:
    """The answer of a piece, taken from an equal one where that was solved before."""
    signature = _signature(piece)
    if signature not in known:
        picked, gap = _solve_one(piece)
        position = {item.index: n for n, item in enumerate(piece.items)}
        known[signature] = tuple(position[item.index] for item in picked), gap
    picks, gap = known[signature]
    return [piece.items[n] for n in picks], gap


def _without_circles(pieces: list[Piece], answers: list[tuple[list[Item], int]]) -> tuple[list[Item], int]:
    """Items of several outputs may ask for each other across pieces: such pieces are solved again as one."""
    while True:
        ordered, waiting = _kahn([item for picked, _ in answers for item in picked])
        circle = {item.index for item in waiting}
        if not circle:
            return ordered, sum(gap for _, gap in answers)
        guilty = [n for n, (picked, _) in enumerate(answers) if any(i.index in circle for i in picked)]
        joined = Piece(
            tuple(item for n in guilty for item in pieces[n].items),
            tuple(sorted(v for n in guilty for v in pieces[n].needed)),
        )
        if len(guilty) == 1:
            raise GapFuseError(CIRCLE)
        pieces = [p for n, p in enumerate(pieces) if n not in guilty] + [joined]
        answers = [a for n, a in enumerate(answers) if n not in guilty] + [_solve_one(joined)]


def _reached(items: list[Item], roots: list[int]) -> list[Item]:
    """The items that could be asked for."""
    makers = makers_of(items)
    asked, todo = set(roots), list(roots)
    while todo:
        for item in makers[todo.pop()]:
            for c in item.consumes:
                if c not in asked:
                    asked.add(c)
                    todo.append(c)
    return [item for item in items if not asked.isdisjoint(item.produces)]


def _solve_one(piece: Piece) -> tuple[list[Item], int]:
    picked = solve_piece(piece)
    if picked is not None and not _circle(picked):
        return picked, 0
    cuts = [_circle(picked)] if picked is not None else []
    while True:
        answer = solve_by_cpsat(piece, cuts)
        if answer is None:
            raise GapFuseError(CIRCLE)
        circle = _circle(answer[0])
        if not circle:
            return answer
        cuts.append(circle)


def _signature(piece: Piece) -> Signature:
    """The piece up to the names of its values: repeated blocks are solved once."""
    rank: dict[int, int] = {}
    for v in sorted({v for item in piece.items for v in (*item.produces, *item.consumes)}):
        rank[v] = len(rank)
    return (
        tuple(rank[v] for v in piece.needed),
        tuple(
            (i.cost, i.calls, i.key, tuple(rank[v] for v in i.produces), tuple(rank[v] for v in i.consumes))
            for i in piece.items
        ),
    )


def _circle(chosen: list[Item]) -> list[Item]:
    """The items that wait for each other (and those that wait for them)."""
    return _kahn(chosen)[1]


def _kahn(chosen: list[Item]) -> tuple[list[Item], list[Item]]:
    """Producers before consumers, among the ready ones the earliest by its last value; and what never gets ready."""
    maker = {v: item for item in chosen for v in item.produces}
    ordered = sorted(chosen, key=lambda item: (item.produces[-1], item.index))
    if all(maker[c].produces[-1] < item.produces[-1] for item in chosen for c in item.consumes if c in maker):
        return ordered, []  # nothing is ever ready before something earlier
    waits = {i.index: len({maker[c].index for c in i.consumes if c in maker}) for i in chosen}
    readers: dict[int, list[Item]] = {}
    for item in chosen:
        for source in sorted({maker[c].index for c in item.consumes if c in maker}):
            readers.setdefault(source, []).append(item)
    by_index = {item.index: item for item in chosen}
    ready = [(item.produces[-1], item.index) for item in chosen if not waits[item.index]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        item = by_index[heapq.heappop(ready)[1]]
        ordered.append(item)
        for reader in readers.get(item.index, ()):
            waits[reader.index] -= 1
            if not waits[reader.index]:
                heapq.heappush(ready, (reader.produces[-1], reader.index))
    done = {item.index for item in ordered}
    return ordered, [item for item in chosen if item.index not in done]
