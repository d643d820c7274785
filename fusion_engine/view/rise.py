"""Quantisation going up: QuantizeLinear rises over movement, a clamp over an equal Q-DQ pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_engine.view.draft import Draft, Node
from fusion_engine.view.movement import data_inputs, moves, on_integers


@dataclass(frozen=True, slots=True, eq=False)
class _Uses:
    """Who reads each value; graph outputs are read from outside."""

    readers: dict[str, list[Node]]
    outputs: frozenset[str]

    def private(self, name: str) -> bool:
        return len(self.readers.get(name, ())) == 1 and name not in self.outputs

    def read(self, name: str) -> bool:
        return bool(self.readers.get(name)) or name in self.outputs

    def drop(self, node: Node) -> None:
        """The node reads nothing any more."""
        for name in node.inputs:
            if name is not None:
                self.readers[name].remove(node)

    def move(self, node: Node, index: int, name: str) -> None:
        old = node.inputs[index]
        if old is not None:
            self.readers[old].remove(node)
        node.inputs[index] = name
        self.readers.setdefault(name, []).append(node)


def rise(draft: Draft, outputs: list[str]) -> list[Node]:
    """Move each QuantizeLinear as far up as it goes, in place; the nodes that came new (empty: nothing changed).

    The draft's order is no longer topological afterwards, and new values have no type: the walk must be taken again.
    """
    if not any(_is_below(draft, node) for node in draft.nodes):
        return []
    readers: dict[str, list[Node]] = {}
    for node in draft.nodes:
        for name in (*node.inputs, *node.captures):
            if name is not None:
                readers.setdefault(name, []).append(node)
    uses = _Uses(readers, frozenset(outputs))
    new: list[Node] = []
    for node in reversed(draft.nodes):
        if node.op == "QuantizeLinear" and uses.read(node.outputs[0]):
            _lift(draft, node, uses, new)
    return new


def _is_below(draft: Draft, node: Node) -> bool:
    """Whether it is a QuantizeLinear and something stands above it that one may rise over."""
    maker = draft.producer.get(node.inputs[0] or "") if node.op == "QuantizeLinear" else None
    if maker is None or maker.op not in ("Relu", "Clip"):
        return maker is not None and moves(maker)
    return draft.made_by(maker.inputs[0], "DequantizeLinear") is not None


def _lift(draft: Draft, q: Node, uses: _Uses, new: list[Node]) -> None:
    waiting = [q]
    while waiting:
        current = waiting.pop()
        maker = draft.producer.get(current.inputs[0] or "")
        if maker is None or not uses.private(current.inputs[0] or ""):
            continue
        if _clamp_rises(draft, current, maker, uses):
            new.append(maker)
        elif _may_rise(draft, current, maker, uses):
            above = _over(draft, current, maker, uses)
            new.extend(above)
            waiting.extend(above)


def _clamp_rises(draft: Draft, q: Node, clamp: Node, uses: _Uses) -> bool:
    """Q - DQ - clamp - Q with equal parameters: Q(clamp(DQ(Q(x)))) = Q(clamp(x)), since Q is monotone."""
    if clamp.op not in ("Relu", "Clip") or any(draft.stored(i) is None for i in clamp.inputs[1:] if i is not None):
        return False
    dq = draft.made_by(clamp.inputs[0], "DequantizeLinear")
    first = draft.made_by(dq.inputs[0], "QuantizeLinear") if dq is not None else None
    if dq is None or first is None or not _positive(draft, q):
        return False
    equal = q.inputs[1:] == dq.inputs[1:] == first.inputs[1:] and q.attrs == first.attrs
    if not equal or not (uses.private(dq.outputs[0]) and uses.private(first.outputs[0])):
        return False
    clamp.origins = tuple(dict.fromkeys((*first.origins, *dq.origins, *clamp.origins)))
    uses.move(clamp, 0, first.inputs[0] or "")
    for dead in (first, dq):
        uses.drop(dead)
    return True


def _positive(draft: Draft, q: Node) -> bool:
    scale = draft.const(q.inputs[1])
    return scale is not None and bool(np.all(scale > 0))


def _may_rise(draft: Draft, q: Node, maker: Node, uses: _Uses) -> bool:
    if not moves(maker) or len(maker.outputs) > 1 or draft.rank(q.inputs[1]) != 0 or not _positive(draft, q):
        return False
    if not on_integers(maker, draft.dtype(q.inputs[2])):
        return False
    if draft.dtype(maker.inputs[0]) not in ("float32", "float16"):
        return False
    return maker.op == "Concat" or all(_readable(n) for n in uses.readers[maker.inputs[0] or ""])


def _readable(node: Node) -> bool:
    """May the value be read quantised by this node? Otherwise rising would only add a reader."""
    return node.op == "QuantizeLinear" or moves(node)


def _over(draft: Draft, q: Node, mover: Node, uses: _Uses) -> list[Node]:
    """Q(M(x)) becomes M(Q(x)): the mover makes what Q made, a new Q stands on each moved operand."""
    above = []
    for i in data_inputs(mover):
        name = draft.fresh(f"{mover.inputs[i]}_quantised")
        raised = q.moved([mover.inputs[i], *q.inputs[1:]], [name])
        for operand in raised.inputs:
            uses.readers.setdefault(operand or "", []).append(raised)
        uses.move(mover, i, name)
        draft.producer[name] = raised
        above.append(raised)
    uses.drop(q)
    mover.outputs = list(q.outputs)
    draft.producer[q.outputs[0]] = mover
    q.outputs = [draft.fresh(f"{q.outputs[0]}_gone")]  # nothing reads it: the next ordering leaves it out
    return above
