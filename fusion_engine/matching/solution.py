"""One way that a pattern matched, copied out of the search, and what must hold of it before anything is emitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_engine.covering.types import Cause
from fusion_engine.diagnostics import Span
from fusion_engine.language.printing import capture_type_text, expression_text, literal_text
from fusion_engine.language.trees import walk
from fusion_engine.language.types import Capture, EApply, EList, ELiteral, EName, Expression, Named
from fusion_engine.language.vocabulary import Binding, Unknown, as_condition, evaluate_expression
from fusion_engine.matching.environment import Environment, bind, deferred
from fusion_engine.matching.facts import Facts, Known, Virtual
from fusion_engine.matching.given import Misfit, solve_dims
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

    cause: Cause
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
            refusal = _user_outside(facts, compiled, s, value)
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


def _user_outside(facts: Facts, compiled: Compiled, s: Solution, value: str) -> Refusal | None:
    if value in facts.outputs:
        return Refusal(_another_user(compiled, s, value, "it is a graph output"))
    for user in facts.view.users.get(value, ()):
        if user not in s.nodes:
            return Refusal(_another_user(compiled, s, value, node_name(facts.view.nodes[user])), (user,))
    return None


def _another_user(compiled: Compiled, s: Solution, value: str, user: str) -> Cause:
    names = [n for n, b in s.bound.items() if b == value and "." not in n]
    name = names[0] if names else f"the inner value `{value}`"
    change = f"`shared: [{names[0]}]` lets it be computed once more" if names else "`shared: all` allows it"
    return Cause(f"{name} has another user: {user}", user, "no other user", change, _place_of(compiled, names))


def _place_of(compiled: Compiled, names: list[str]) -> Span:
    """Where the pattern names the value; else the variant."""
    variant = compiled.variant
    patterns = (p for root in (variant.pattern, *variant.extra) for p in walk(root))
    named = (p.span for p in patterns if isinstance(p, (Named, Capture)) and p.name in names)
    return next(named, variant.span)


# ---- sizes, conditions ----


def base_environment(facts: Facts, compiled: Compiled, s: Solution) -> Environment | Refusal:
    """Captures, attributes, sizes and `let` of a match; a Refusal where shapes do not fit `given`."""
    sizes = _sizes(facts, compiled, s)
    if isinstance(sizes, Misfit):
        return Refusal(_unfitting(facts, compiled, s, sizes))
    values = {name: bind(facts, name, b) for name, b in s.bound.items()}
    clash = _clash(sizes, dict(s.extents)) or _clash({**dict(s.extents), **sizes}, values)
    if clash is not None:
        return Refusal(Cause(clash, span=compiled.variant.span))
    lazy = {**deferred(s.bound), **{n: e for n, e in compiled.variant.let if n not in compiled.late_let}}
    for name in lazy:
        values.pop(name, None)
    return Environment({**dict(s.extents), **sizes, **values}, lazy)


def _sizes(facts: Facts, compiled: Compiled, s: Solution) -> dict[str, Any] | Misfit:
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
                    return Misfit(dims.name, f"shape of {dims.name} unknown")
                typed.append((dims, shape))
    known = {n: b.value for n, b in s.bound.items() if isinstance(b, Known) and isinstance(b.value, int)}
    return solve_dims(typed, {**dict(s.extents), **known})


def _unfitting(facts: Facts, compiled: Compiled, s: Solution, misfit: Misfit) -> Cause:
    given, bound = compiled.rule.given[misfit.name], s.bound.get(misfit.name)
    shape = facts.shape(bound) if isinstance(bound, (str, Virtual)) else None
    had = "" if shape is None else f"{misfit.name} of shape [{', '.join(str(d) for d in shape)}]"
    change = "bind symbolic dimensions: --dim NAME=VALUE" if "unknown" in misfit.reason else ""
    return Cause(misfit.reason, had, f"{misfit.name}: {capture_type_text(given)}", change, given.span)


def _clash(sizes: Mapping[str, Any], values: Mapping[str, Any]) -> str | None:
    """A size that is an attribute too (`hidden_size=U`), or an axis of a rearrange, must be the same number."""
    for name, size in sizes.items():
        value = values.get(name)
        if value is not None and isinstance(value, (int, tuple)) and value != size:
            return f"{name} is {value}, but {size} by the shapes"
    return None


def broken_condition(conditions: tuple[tuple[str, Expression], ...], env: Environment) -> Cause | None:
    """The first condition that does not hold, or cannot be decided, with the reason."""
    for text, condition in conditions:
        truth = as_condition(evaluate_expression(condition, env))
        if isinstance(truth, Unknown):
            return Cause(f"`{text}` is not decided: {truth.reason}", truth.reason, text, span=condition.span)
        if not truth:
            reason = f"{_in_words(condition, env)}`{text}` does not hold"
            return Cause(reason, _sides(condition, env), _written_out(condition, env), span=condition.span)
    return None


def _in_words(condition: Expression, env: Environment) -> str:
    """`dtype(x) == "int8"` is a storage that an entry asks for; said as `stored` says it."""
    match condition:
        case EApply(fn="==", args=(EApply(fn="dtype", args=(EName(name=name),)), ELiteral(value=str() as wanted))):
            return f"no {wanted} storage for {name}: it is {evaluate_expression(condition.args[0], env)}; "
    return ""


def _written_out(condition: Expression, env: Environment) -> str:
    definition = env.definition(condition.name) if isinstance(condition, EName) else None
    return expression_text(condition if definition is None else definition)


def _sides(condition: Expression, env: Environment) -> str:
    """What the parts of a condition that does not hold are: `rank(e)` is 5."""
    if isinstance(condition, EName):
        definition = env.definition(condition.name)  # a `let`: what it is made of says more than false
        return f"{condition.name} is {_value(env[condition.name])}" if definition is None else _sides(definition, env)
    parts = condition.args if isinstance(condition, EApply) else ()
    if isinstance(condition, EApply) and condition.fn in ("and", "or", "not"):
        return "; ".join(dict.fromkeys(w for p in parts if (w := _sides(p, env))))
    values = ((p, evaluate_expression(p, env)) for p in parts if not isinstance(p, (ELiteral, EList)))
    return ", ".join(f"{expression_text(p)} is {_value(v)}" for p, v in values)


def _value(value: object) -> str:
    if isinstance(value, Binding):
        value = value.const if value.const is not None else f"a tensor of {value.dtype}"
    if isinstance(value, np.ndarray):
        return f"{value.item():.6g}" if value.size == 1 else f"an array of shape {list(value.shape)}"
    if isinstance(value, Unknown):
        return f"not known ({value.reason})"
    return value if isinstance(value, str) else literal_text(value)
