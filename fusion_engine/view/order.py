"""Nodes in dependency order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.view.draft import Node


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
    maker = {o: n for n in nodes for o in n.outputs if o}
    result: list[Node] = []
    state: dict[int, bool] = {}  # id(node) -> finished
    for output in outputs:
        stack: list[tuple[Node, Any]] = []
        _enter(maker.get(output), stack, state, stands_for)
        while stack:
            node, rest = stack[-1]
            name = next(rest, None)
            if name is None:
                stack.pop()
                state[id(node)] = True
                result.append(node)
                continue
            need = maker.get(name)
            finished = True if need is None else state.get(id(need))
            if need is None or finished:
                continue
            if finished is False:
                label = need.origins[0] if need.origins else need.outputs[0]
                raise GapFuseError(Diagnostic(f"the graph has a cycle through node `{label}` ({need.op})", where))
            _enter(need, stack, state, stands_for)
    return result


def _enter(
    node: Node | None,
    stack: list[tuple[Node, Any]],
    state: dict[int, bool],
    stands_for: Callable[[str], str | None],
) -> None:
    if node is None or id(node) in state:
        return
    state[id(node)] = False
    read = (*node.inputs, *(stands_for(c) for c in node.captures))
    stack.append((node, iter([i for i in read if i])))
