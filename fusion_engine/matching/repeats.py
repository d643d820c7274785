"""Matches alike but for their names: repeated blocks of a network are emitted once and renamed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from fusion_engine.covering.types import Candidate, EmittedCall, Operand, ValueRef
from fusion_engine.matching.facts import Facts, Known
from fusion_engine.matching.index import Compiled
from fusion_engine.matching.solution import Solution
from fusion_engine.matching.state import Bound, Deferred


def likeness(facts: Facts, compiled: Compiled, s: Solution) -> Hashable | None:
    """Equal for matches whose candidates differ in names alone; None where that cannot be told.

    Quantised values are left out (a scale is a constant of its own), and several results (whether they flow back into
    an operand depends on the graph around).
    """
    if s.pairs or len(s.results) != 1:
        return None
    seen: dict[str, int] = {}
    parts: list[Hashable] = [compiled.position, s.extents]
    for bound in s.bound.values():
        part = _part(facts, bound, seen)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _part(facts: Facts, bound: Bound, seen: dict[str, int]) -> Hashable | None:
    if bound is None or isinstance(bound, Deferred):
        return id(bound)  # the variant's own expression
    if isinstance(bound, Known):
        return repr(bound.value)  # 1 and 1.0 are not alike
    if isinstance(bound, tuple):
        several = tuple(_part(facts, v, seen) for v in bound)
        return None if None in several else several
    if not isinstance(bound, str):
        return None
    kind = facts.kind(bound)
    return None if kind is None else (kind, seen.setdefault(bound, len(seen)))


# ---- renaming ----


def names_between(old: Solution, new: Solution) -> dict[str, str]:
    """Values of one match to those of another that is alike."""
    names: dict[str, str] = {}
    for a, b in zip(old.bound.values(), new.bound.values(), strict=True):
        if isinstance(a, str) and isinstance(b, str):
            names[a] = b
        elif isinstance(a, tuple) and isinstance(b, tuple):
            names.update(zip(a, b, strict=True))
    return names


def renamed(c: Candidate, names: Mapping[str, str], nodes: frozenset[int], evidence: str) -> Candidate:
    """The same candidate at another place; temporaries follow the result they are named by."""
    temporaries = tuple(replace(t, name=_temporary(t.name, c, names)) for t in c.temporaries)
    local = {**names, **{t.name: n.name for t, n in zip(c.temporaries, temporaries, strict=True)}}
    return Candidate(
        rule=c.rule,
        variant=c.variant,
        emit=c.emit,
        calls=tuple(_call(call, local) for call in c.calls),
        nodes=nodes,
        consumes=tuple(dict.fromkeys(names[v] for v in c.consumes)),
        produces=tuple(names[v] for v in c.produces),
        evidence=evidence,
        cost=c.cost,
        temporaries=temporaries,
    )


def _temporary(name: str, c: Candidate, names: Mapping[str, str]) -> str:
    root = c.produces[0]
    return names[root] + name[len(root) :]


def _call(call: EmittedCall, names: Mapping[str, str]) -> EmittedCall:
    return EmittedCall(
        call.kernel,
        tuple((n, _operand(o, names)) for n, o in call.operands),
        tuple((n, names[v]) for n, v in call.results),
        call.attrs,
        None if call.alias is None else replace(call.alias, of=names[call.alias.of]),
    )


def _operand(operand: Operand, names: Mapping[str, str]) -> Operand:
    return ValueRef(names[operand.name]) if isinstance(operand, ValueRef) else operand
