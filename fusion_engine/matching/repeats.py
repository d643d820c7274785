"""Nodes in equal surroundings: what the rules found at the first is offered again at the others, without a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.covering.types import Candidate, Constant, EmittedCall, ValueRef
from fusion_engine.matching.decisive import Constants, constants_elsewhere
from fusion_engine.matching.facts import Facts
from fusion_engine.matching.index import Compiled
from fusion_engine.matching.neighbourhoods import BEFORE, BEHIND
from fusion_engine.view.types import View, ViewNode

Reading = tuple[int, int] | str  # a node's distance and which of its inputs; the name of what nobody inside reads
Place = tuple[int, int] | str  # a node's distance and which of its results; a value far away by its name


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A candidate with its nodes and values by their distance from the root."""

    candidate: Candidate
    compiled: Compiled
    nodes: tuple[int, ...]
    consumes: tuple[Place, ...]
    produces: tuple[Place, ...]
    renaming: Renaming | None


@dataclass(frozen=True, slots=True, eq=False)
class Renaming:
    """Where the names of a candidate's calls, and of what its match bound, are found at another root."""

    values: Mapping[str, Place]
    bound: Mapping[str, Reading]
    constants: Constants


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of all nodes of one class: candidates to offer again, and variants that must be searched."""

    templates: tuple[Template, ...]
    search: tuple[Compiled, ...]


def template_of(
    view: View, root: ViewNode, compiled: Compiled, c: Candidate, constants: Constants | None
) -> Template | None:
    """None where the candidate takes in a node that is too far away to be the same elsewhere.

    `constants`: those of calls that elsewhere differ by names and constants alone.
    """
    if not all(root.index - BEFORE < i <= root.index + BEHIND for i in c.nodes):
        return None
    consumes = tuple(_place(view, root, v) for v in c.consumes)
    produces = tuple(_place(view, root, v) for v in c.produces)
    renaming = None if constants is None else _renaming(view, root, c, constants)
    return Template(c, compiled, tuple(i - root.index for i in c.nodes), consumes, produces, renaming)


def _renaming(view: View, root: ViewNode, c: Candidate, constants: Constants) -> Renaming:
    made = {t.name for t in c.temporaries}
    names = {o.name for call in c.calls for _, o in call.operands if isinstance(o, ValueRef)}
    names |= {v for call in c.calls for _, v in call.results}
    readers = {v: (i - root.index, n) for i in sorted(c.nodes) for n, v in enumerate(view.nodes[i].inputs) if v}
    bound: dict[str, Reading] = {}
    for name, value in constants.bound.items():
        place = _place(view, root, value)
        bound[name] = readers.get(value, value) if isinstance(place, str) else (place[0], -1 - place[1])
    return Renaming({v: _place(view, root, v) for v in sorted(names - made)}, bound, constants)


def renamed(facts: Facts, t: Template, root: ViewNode, c: Candidate) -> Candidate | None:
    """The candidate `c` in full, out of the template's calls; None where a constant cannot be made."""
    assert t.renaming is not None
    view, of = facts.view, t.renaming.constants
    bound = {name: _read(view, root, reading) for name, reading in t.renaming.bound.items()}
    made = constants_elsewhere(facts, of, bound)
    if made is None:
        return None
    elsewhere = {value: bound[name] for name, value in of.bound.items()}
    passed = {identity: view.const(elsewhere[name]) for identity, name in of.passed.items()}
    constants = {identity: Constant(data) for identity, data in (*made.items(), *passed.items()) if data is not None}
    names = {v: _at(view, root, place) for v, place in t.renaming.values.items()}
    before, after = t.candidate.produces[0], c.produces[0]
    temporaries = [replace(x, name=after + x.name.removeprefix(before)) for x in t.candidate.temporaries]
    names.update((x.name, y.name) for x, y in zip(t.candidate.temporaries, temporaries, strict=True))
    calls = tuple(_call(call, names, constants) for call in t.candidate.calls)
    return replace(t.candidate, calls=calls, temporaries=tuple(temporaries), produces=c.produces)


def _call(call: EmittedCall, names: Mapping[str, str], constants: Mapping[int, Constant]) -> EmittedCall:
    operands = tuple(
        (n, ValueRef(names[o.name]) if isinstance(o, ValueRef) else constants.get(id(o.data), o))
        for n, o in call.operands
    )
    alias = None if call.alias is None else replace(call.alias, of=names[call.alias.of])
    return EmittedCall(call.kernel, operands, tuple((n, names[v]) for n, v in call.results), call.attrs, alias)


def _read(view: View, root: ViewNode, reading: Reading) -> str:
    """A value by who reads it; by who makes it where the position is negative."""
    if isinstance(reading, str):
        return reading
    node = view.nodes[root.index + reading[0]]
    return node.outputs[-1 - reading[1]] if reading[1] < 0 else node.inputs[reading[1]] or ""


def _at(view: View, root: ViewNode, place: Place) -> str:
    return place if isinstance(place, str) else view.nodes[root.index + place[0]].outputs[place[1]]


def _place(view: View, root: ViewNode, value: str) -> Place:
    maker = view.producer.get(value)
    if maker is None or not root.index - BEFORE < maker <= root.index + BEHIND:
        return value
    return maker - root.index, view.nodes[maker].outputs.index(value)


def repeated(nodes: Sequence[ViewNode], t: Template, root: int, again: Callable[[Candidate], Candidate]) -> Candidate:
    """The template's candidate at another root; `again` makes its calls when they are asked for."""
    consumes = [p if isinstance(p, str) else nodes[root + p[0]].outputs[p[1]] for p in t.consumes]
    produces = [p if isinstance(p, str) else nodes[root + p[0]].outputs[p[1]] for p in t.produces]
    return t.candidate.elsewhere(frozenset([root + i for i in t.nodes]), tuple(consumes), tuple(produces), again)


def same_of(candidates: Sequence[Candidate], wanted: Candidate) -> Candidate | None:
    """The one that makes the same of the same nodes by the same entry."""
    key = (wanted.emit, wanted.nodes, wanted.produces)
    return next((c for c in candidates if (c.emit, c.nodes, c.produces) == key), None)
