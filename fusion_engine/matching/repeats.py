"""Nodes in equal surroundings: what the rules found at the first is offered again at the others, without a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fusion_engine.covering.types import Candidate
from fusion_engine.matching.index import Compiled
from fusion_engine.matching.neighbourhoods import BEFORE, BEHIND
from fusion_engine.view.types import View, ViewNode

Place = tuple[int, int] | str  # a node's distance and which of its results; a value far away by its name


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A candidate with its nodes and values by their distance from the root."""

    candidate: Candidate
    compiled: Compiled
    nodes: tuple[int, ...]
    consumes: tuple[Place, ...]
    produces: tuple[Place, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of all nodes of one class: candidates to offer again, and variants that must be searched."""

    templates: tuple[Template, ...]
    search: tuple[Compiled, ...]


def template_of(view: View, root: ViewNode, compiled: Compiled, c: Candidate) -> Template | None:
    """None where the candidate takes in a node that is too far away to be the same elsewhere."""
    if not all(root.index - BEFORE < i <= root.index + BEHIND for i in c.nodes):
        return None
    consumes = tuple(_place(view, root, v) for v in c.consumes)
    produces = tuple(_place(view, root, v) for v in c.produces)
    return Template(c, compiled, tuple(i - root.index for i in c.nodes), consumes, produces)


def _place(view: View, root: ViewNode, value: str) -> Place:
    maker = view.producer.get(value)
    if maker is None or not root.index - BEFORE < maker <= root.index + BEHIND:
        return value
    return maker - root.index, view.nodes[maker].outputs.index(value)


def repeated(view: View, t: Template, root: ViewNode, again: Callable[[Candidate], Candidate]) -> Candidate:
    """The template's candidate at another root; `again` makes its calls when they are asked for."""
    at, nodes = root.index, view.nodes
    consumes = [p if isinstance(p, str) else nodes[at + p[0]].outputs[p[1]] for p in t.consumes]
    produces = [p if isinstance(p, str) else nodes[at + p[0]].outputs[p[1]] for p in t.produces]
    return t.candidate.elsewhere(frozenset([at + i for i in t.nodes]), tuple(consumes), tuple(produces), again)


def same_of(candidates: Sequence[Candidate], wanted: Candidate) -> Candidate | None:
    """The one that makes the same of the same nodes by the same entry."""
    key = (wanted.emit, wanted.nodes, wanted.produces)
    return next((c for c in candidates if (c.emit, c.nodes, c.produces) == key), None)
