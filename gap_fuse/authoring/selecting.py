"""select(): the nodes of a view that `A..B` names: everything on a way from A to B."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusion_engine import GapFuseError, View
from fusion_engine.diagnostics import Diagnostic, did_you_mean
from fusion_engine.view import ViewNode


def select(view: View, text: str) -> tuple[ViewNode, ...]:
    """Nodes in topological order. `text` is `A..B`, a name, or several of these with commas; a name is a node's or a
    result's name in the file. Raises GapFuseError: an unknown name, or no way from A to B."""
    chosen = {n for part in text.split(",") for n in _part(view, part.strip())}
    return tuple(view.nodes[n] for n in sorted(chosen))


def _part(view: View, part: str) -> set[int]:
    """Names may hold dots themselves: the two dots that stand between names that are there count."""
    if _find(view, part) or ".." not in part:
        return _named(view, part)
    for at in _dots(part):
        first, last = part[:at].strip(), part[at + 2 :].strip()
        if _find(view, first) and _find(view, last):
            return _between(view, part, _find(view, first), _find(view, last))
    first, last = part.split("..", 1)
    return _named(view, first.strip()) | _named(view, last.strip())  # one of them is unknown, and said so


def _dots(part: str) -> Iterator[int]:
    yield from (i for i in range(len(part) - 1) if part[i : i + 2] == "..")


def _find(view: View, name: str) -> set[int]:
    value = view.aliases.get(name, name)
    return {n.index for n in view.nodes if name in n.origins or value in n.outputs}


def _named(view: View, name: str) -> set[int]:
    found = _find(view, name)
    if not found:
        known = dict.fromkeys(o for n in view.nodes for o in (*n.origins, *n.outputs))
        raise GapFuseError(
            Diagnostic(
                f"the model has no node `{name}`", help=did_you_mean(name, known) or "gap-fuse explain lists them"
            )
        )
    return found


def _between(view: View, part: str, first: set[int], last: set[int]) -> set[int]:
    down = _reached(first, {n.index: _users(view, n) for n in view.nodes})
    up = _reached(last, {n.index: _makers(view, n) for n in view.nodes})
    if not down & up:
        raise GapFuseError(Diagnostic(f"no way leads from the first to the last node of `{part}`", help="swap them?"))
    return down & up


def _users(view: View, node: ViewNode) -> tuple[int, ...]:
    return tuple(u for o in node.outputs for u in view.users.get(o, ()))


def _makers(view: View, node: ViewNode) -> tuple[int, ...]:
    return tuple(view.producer[i] for i in node.inputs if i is not None and i in view.producer)


def _reached(start: set[int], steps: Mapping[int, tuple[int, ...]]) -> set[int]:
    seen, queue = set(start), list(start)
    while queue:
        for n in steps[queue.pop()]:
            if n not in seen:
                seen.add(n)
                queue.append(n)
    return seen
