"""Region variants: the maximal private region of elementwise operators around a root, as one call tree.

The pattern of such a variant reads `y = elementwise[op](*xs)`: `xs` becomes the operands of the region, `op` its text
over x0, x1, ... and numbers (`mul(sigmoid(x0), x0)`; attributes follow the operands in alphabetical order).
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from fusion_engine.language.types import Named, OpPattern, Pattern
from fusion_engine.matching.attributes import schema_defaults
from fusion_engine.matching.facts import Facts, Known
from fusion_engine.matching.solution import Solution
from fusion_engine.matching.state import Bound
from fusion_engine.view.types import ViewNode

LARGEST = 32  # operators of one region
LONGEST = 64  # calls of its text: a value used twice is written twice


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions around one root, the maximal one first; `limited`: one had more than LARGEST or LONGEST allow."""

    solutions: tuple[Solution, ...]
    limited: bool
    low: int = 0  # the first of the nodes looked at


def regions(
    facts: Facts, p: Pattern, result: str, members: frozenset[str], root: ViewNode, wanted: Container[str]
) -> Regions:
    """The maximal region around `root`, and those cut at every value that it uses more than once, or that is wanted.

    `wanted` are the values where candidates of other kernels begin or end.
    """
    pattern = p.pattern if isinstance(p, Named) else p
    if not isinstance(pattern, OpPattern) or pattern.rest is None or not _plain(root, members):
        return Regions((), limited=False)
    whole, low, limited = _grow(facts, root, members, lambda _: True)
    once, *_ = _grow(facts, root, members, lambda v: _used_once(facts, v))
    cut, *_ = _grow(facts, root, members, lambda v: v not in wanted)
    found = []
    for nodes in dict.fromkeys((whole, once, cut)):
        if len(nodes) > 1:
            text = _Text(facts, nodes)
            tree = text.of(root.outputs[0])
            limited |= text.calls > LONGEST
            if text.calls > LONGEST or not text.operands:
                continue
            bound: dict[str, Bound] = {pattern.rest: tuple(text.operands), result: root.outputs[0]}
            if pattern.op_capture is not None:
                bound[pattern.op_capture] = Known(tree)
            found.append(Solution(bound, nodes, (), (), (), {result: root.outputs[0]}))
    return Regions(tuple(found), limited, low)


def _plain(node: ViewNode, members: frozenset[str]) -> bool:
    """An operator of the class whose attributes a text can hold: numbers, or texts left at their default."""
    if node.op not in members or len(node.outputs) != 1:
        return False
    defaults = dict(schema_defaults(node.op))
    return all(isinstance(v, (int, float)) or v is None or v == defaults.get(n) for n, v in node.attrs.items())


def _grow(
    facts: Facts, root: ViewNode, members: frozenset[str], takes: Callable[[str], bool]
) -> tuple[frozenset[int], int, bool]:
    """The region whose values `takes` lets in, the first node seen, and whether there would be more than one may hold.

    Users come before makers (descending index), so each node is decided once, when all its users are.
    """
    inside: set[int] = set()
    queue = [-root.index]
    seen = {root.index}
    while queue and len(inside) < LARGEST:
        node = facts.view.nodes[-heappop(queue)]
        if node.index != root.index and not (_joins(facts, node, members, inside) and takes(node.outputs[0])):
            continue
        inside.add(node.index)
        for value in node.inputs:
            maker = facts.view.producer.get(value) if value is not None else None
            if maker is not None and maker not in seen and not facts.is_const(value or ""):
                seen.add(maker)
                heappush(queue, -maker)
    more = any(_joins(facts, facts.view.nodes[-i], members, inside) for i in queue)
    return frozenset(inside), min(seen), more


def _joins(facts: Facts, node: ViewNode, members: frozenset[str], inside: set[int]) -> bool:
    if not _plain(node, members) or node.outputs[0] in facts.outputs:
        return False
    users = facts.view.users.get(node.outputs[0], ())
    return bool(users) and all(u in inside for u in users)


def _used_once(facts: Facts, value: str) -> bool:
    users = facts.view.users.get(value, ())
    return len(users) == 1 and facts.view.nodes[users[0]].inputs.count(value) == 1


@dataclass(eq=False)
class _Text:
    """Writes the tree and gathers its operands in order of appearance."""

    facts: Facts
    nodes: frozenset[int]
    operands: list[str] = field(default_factory=list)
    calls: int = 0

    def of(self, value: str) -> str:
        index = self.facts.view.producer.get(value)
        if index is not None and index in self.nodes and self.calls <= LONGEST:
            return self._call(self.facts.view.nodes[index])
        const = self.facts.const(value)
        if const is not None and const.size == 1 and const.dtype.kind == "f":
            return repr(float(const.reshape(())))
        if value not in self.operands:
            self.operands.append(value)
        return f"x{self.operands.index(value)}"

    def _call(self, node: ViewNode) -> str:
        self.calls += 1
        inputs = [self._input(node, i) for i in range(len(node.inputs))]
        if node.op == "Clip":
            inputs += ["-inf", "inf"][len(inputs) - 1 :]
        numbers = [repr(float(v)) for _, v in sorted(node.attrs.items()) if isinstance(v, (int, float, np.number))]
        return f"{node.op.lower()}({', '.join((*inputs, *numbers))})"

    def _input(self, node: ViewNode, i: int) -> str:
        value = node.inputs[i]
        if value is None:
            return ("", "-inf", "inf")[i] if node.op == "Clip" and i < 3 else "nan"
        return self.of(value)
