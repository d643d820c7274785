"""Nodes in dependency order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.view.draft import Node

SHOWN = 8  # nodes of a cycle that are named


class CycleError(GapFuseError):
    """A graph whose nodes wait for each other."""


def ordered(
    nodes: Sequence[Node],
    outputs: Sequence[str],
    where: Span | None,
    stands_for: Callable[[str], str | None] = lambda name: name,
) -> list[Node]:
    """The nodes that `outputs` need, each after what it reads: depth first from the outputs, inputs left to right.

    The order depends on the graph alone, not on the sequence of `nodes`. `stands_for` resolves the outer values that
    bodies read, which keep the file's names. A cycle is an error.
    """
    # makers that do not stand in the result yet
    pending: dict[str | None, Node] = {o: n for n in nodes for o in n.outputs if o}
    result: list[Node] = []
    entered: set[int] = set()  # ids of nodes
    for output in outputs:
        stack = [pending[output]] if output in pending else []
        entered.update(map(id, stack))
        while stack:
            node = stack[-1]
            need = _first_pending(node, pending, stands_for)
            if need is None:
                stack.pop()
                result.append(node)
                for name in node.outputs:
                    pending.pop(name, None)
                continue
            if id(need) in entered:
                raise CycleError(_cycle(stack[stack.index(need) :], where))
            entered.add(id(need))
            stack.append(need)
    return result


def _cycle(nodes: Sequence[Node], where: Span | None) -> Diagnostic:
    """`nodes` each read the next, and the last the first: "`b` (Relu) reads `a` (Add) reads `b` (Relu)"."""
    labels = [f"`{n.origins[0] if n.origins else n.outputs[0]}` ({n.op})" for n in nodes]
    left = [f"{len(labels) - SHOWN} more"] if len(labels) > SHOWN else []
    path = " reads ".join([*labels[:SHOWN], *left, labels[0]])
    return Diagnostic(f"the graph has a cycle: node {path}", where)


def _first_pending(
    node: Node, pending: Mapping[str | None, Node], stands_for: Callable[[str], str | None]
) -> Node | None:
    """The first maker of what the node reads that has to come before it."""
    for name in node.inputs:
        if name in pending:
            return pending[name]
    for name in node.captures:
        if (outer := stands_for(name)) in pending:
            return pending[outer]
    return None
