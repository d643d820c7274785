"""One way that a pattern matched, copied out of the search, and what must hold of it before anything is emitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fusion_engine.language.vocabulary import Unknown, as_condition, evaluate_expression
from fusion_engine.matching.environment import Environment, bind, deferred
from fusion_engine.matching.facts import Facts, Known, Virtual
from fusion_engine.matching.given import solve_dims
from fusion_engine.matching.index import Compiled
from fusion_engine.matching.operators import node_name
from fusion_engine.matching.state import Bound, InnerPair, State
from fusion_engine.view.types import Scope


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What every name is bound to, and the view nodes that the match takes in."""

    bound: Mapping[str, Bound]
    nodes: frozenset[int]
    pairs: tuple[InnerPair, ...]
    extents: tuple[tuple[str, int], ...]
    scope: tuple[Scope, ...]
    results: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a structural match does not count, and the nodes to blame."""

    reason: str
    nodes: tuple[int, ...] = ()


def solution_of(compiled: Compiled, st: State) -> Solution:
    bound = {name: st.values[slot] for name, slot in compiled.slots.items()}
    results = {name: value for name in compiled.variant.results if isinstance(value := bound[name], str)}
    return Solution(bound, frozenset(st.inside), tuple(st.pairs), tuple(st.extents), st.scope, results)


# ---- privacy ----


def leak(facts: Facts, compiled: Compiled, s: Solution) -> Refusal | None:
    """An inner value that something outside needs: another node, or the graph's outputs."""
    shared = compiled.variant.shared
    if shared == "all":
        return None
    free = set(s.results.values())
    siblings = {facts.view.producer[v] for v in free if v in facts.view.producer}  # made by others where asked for
    free.update(_shared_values(facts, s, shared))
    for index in sorted(s.nodes - siblings):
        for value in facts.view.nodes[index].outputs:
            if not value or value in free:
                continue
            refusal = _user_outside(facts, s, value)
            if refusal is not None:
                return refusal
    return None


def _shared_values(facts: Facts, s: Solution, names: tuple[str, ...] | str) -> Iterator[str]:
    for name in names:
        value = s.bound.get(name)
        if isinstance(value, str):
            yield value
            stored = facts.stored(value)
            if stored is not None:
                yield stored.name


def _user_outside(facts: Facts, s: Solution, value: str) -> Refusal | None:
    if value in facts.outputs:
        return Refusal(f"{_name_of(s, value)} has another user: it is a graph output")
    for user in facts.view.users.get(value, ()):
        if user not in s.nodes:
            return Refusal(f"{_name_of(s, value)} has another user: {node_name(facts.view.nodes[user])}", (user,))
    return None


def _name_of(s: Solution, value: str) -> str:
    names = [n for n, b in s.bound.items() if b == value and "." not in n]
    return names[0] if names else f"the inner value `{value}`"


# ---- sizes, conditions ----


def base_environment(facts: Facts, compiled: Compiled, s: Solution) -> Environment | Refusal:
    """Captures, attributes, sizes and `let` of a match; a Refusal where shapes do not fit `given`."""
    sizes = _sizes(facts, compiled, s)
    if isinstance(sizes, str):
        return Refusal(sizes)
    values = {name: bind(facts, name, b) for name, b in s.bound.items()}
    clash = _clash(sizes, dict(s.extents)) or _clash({**dict(s.extents), **sizes}, values)
    if clash is not None:
        return Refusal(clash)
    lazy = {**deferred(s.bound), **{n: e for n, e in compiled.variant.let if n not in compiled.late_let}}
    for name in lazy:
        values.pop(name, None)
    return Environment({**dict(s.extents), **sizes, **values}, lazy)


def _sizes(facts: Facts, compiled: Compiled, s: Solution) -> dict[str, Any] | str:
    if not compiled.dims:
        return {}
    typed = []
    for dims in compiled.dims:
        value = s.bound.get(dims.name)
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if isinstance(part, (str, Virtual)):
                shape = facts.shape(part)
                if shape is None:
                    return f"shape of {dims.name} unknown"
                typed.append((dims, shape))
    known = {n: b.value for n, b in s.bound.items() if isinstance(b, Known) and isinstance(b.value, int)}
    return solve_dims(typed, {**dict(s.extents), **known})


def _clash(sizes: Mapping[str, Any], values: Mapping[str, Any]) -> str | None:
    """A size that is an attribute too (`hidden_size=U`), or an axis of a rearrange, must be the same number."""
    for name, size in sizes.items():
        value = values.get(name)
        if value is not None and isinstance(value, (int, tuple)) and value != size:
            return f"{name} is {value}, but {size} by the shapes"
    return None


def broken_condition(conditions: tuple[tuple[str, Any], ...], env: Environment) -> str | None:
    """The first condition that does not hold, or cannot be decided, with the reason."""
    for text, condition in conditions:
        truth = as_condition(evaluate_expression(condition, env))
        if isinstance(truth, Unknown):
            return f"`{text}` is not decided: {truth.reason}"
        if not truth:
            return f"`{text}` does not hold"
    return None
