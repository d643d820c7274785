"""A search at every node of a view, nodes in equal surroundings searched once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fusion_engine.covering.types import Candidate
from fusion_engine.matching.index import Compiled, Index
from fusion_engine.matching.neighbourhoods import ALONE, BEFORE, BEHIND, Surroundings
from fusion_engine.matching.operators import node_name
from fusion_engine.matching.repeats import Known, Template, renamed, repeated, same_of, template_of
from fusion_engine.matching.run import Look, Run, StaleError
from fusion_engine.view.types import ViewNode

Search = Callable[[Compiled, ViewNode], None]
Again = Callable[[Candidate], Candidate]


def everywhere(run: Run, index: Index, around: Surroundings | None, search: Search) -> None:
    """Search at every node, or offer again what was found at a node in equal surroundings."""
    variants = {op: index.at(op) for op in run.facts.operators}
    classes = around.classes if around is not None else None
    again = partial(_made, run, search)
    known: dict[int, Known] = {}
    for node in run.facts.view.nodes:
        found = variants[node.op]
        if not found:
            continue
        kind = ALONE if classes is None else classes[node.index]
        if kind in known:
            _offer_again(run, known[kind], node, search, again)
        elif kind == ALONE:
            for compiled in found:
                search(compiled, node)
        else:
            known[kind] = _learn(run, found, node, search)


def _learn(run: Run, variants: Sequence[Compiled], node: ViewNode, search: Search) -> Known:
    """Search, and keep what holds of every node in these surroundings."""
    templates: list[Template] = []
    again: list[Compiled] = []
    for compiled in variants:
        run.look = look = Look(node.index, cut=sum(run.exhausted.values()) + sum(run.limited.values()))
        before = len(run.candidates)
        search(compiled, node)
        fresh = [c for _, _, c in run.candidates[before:]]
        found = [template_of(run.facts.view, node, compiled, c, look.constants.get(id(c))) for c in fresh]
        here = sum(run.exhausted.values()) + sum(run.limited.values()) > look.cut
        if here or look.numbers or node.index - look.low > BEFORE - BEHIND or None in found or not _elsewhere(compiled):
            again.append(compiled)
        else:
            templates += [t for t in found if t is not None]
            run.templates.update((t.candidate, t) for t in found if t is not None)
    run.look = None
    return Known(tuple(templates), tuple(again))


def _elsewhere(compiled: Compiled) -> bool:
    """Whether what a variant finds depends on the surroundings alone."""
    return compiled.variant.scope is None and len(compiled.variant.results) == 1


def _offer_again(run: Run, known: Known, node: ViewNode, search: Search, again: Again) -> None:
    nodes, root = run.facts.view.nodes, node.index
    for t in known.templates:
        run.candidates.append((root, t.compiled.position, repeated(nodes, t, root, again)))
    for compiled in known.search:
        search(compiled, node)


def _made(run: Run, search: Search, wanted: Candidate) -> Candidate:
    """The candidate in full: renamed where nothing but names differs, else by a search of its own."""
    assert wanted.like is not None
    t = run.templates[wanted.like]
    node = run.facts.view.nodes[max(wanted.nodes) - max(t.nodes)]
    told = renamed(run.facts, t, node, wanted) if t.renaming is not None else None
    if told is not None:
        return told
    run.candidates.clear()
    run.only = wanted.emit
    search(t.compiled, node)
    found = same_of([c for _, _, c in run.candidates], wanted)
    run.candidates.clear()
    run.only = None
    if found is None:
        raise StaleError(f"the rule {wanted.rule} does not take {node_name(node)} as it takes one like it")
    return found
