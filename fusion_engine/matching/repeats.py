"""Matches alike but for their names: repeated blocks of a network are emitted once and renamed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fusion_engine.covering.types import Candidate, Constant, EmittedCall, Operand, ValueRef
from fusion_engine.language.vocabulary import as_operand, evaluate_expression
from fusion_engine.matching.facts import SCALAR, Facts, Known
from fusion_engine.matching.index import Compiled
from fusion_engine.matching.solution import Solution
from fusion_engine.matching.state import Bound, Deferred


def likeness(facts: Facts, compiled: Compiled, s: Solution, read: frozenset[str]) -> Hashable | None:
    """Equal for matches whose candidates differ in names alone; None where that cannot be told.

    `read` are the names whose constants count by content; other constants only by type: what is made of them is made
    anew.

    Quantised values are left out (a scale is a constant of its own), and several results (whether they flow back into
    an operand depends on the graph around).
    """
    if s.pairs or len(s.results) != 1:
        return None
    seen: dict[str, int] = {}
    parts: list[Hashable] = [compiled.position, s.extents]
    for name, bound in s.bound.items():
        part = _part(facts, bound, seen, name not in read)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _part(facts: Facts, bound: Bound, seen: dict[str, int], unread: bool) -> Hashable | None:
    if bound is None or isinstance(bound, Deferred):
        return id(bound)  # the variant's own expression
    if isinstance(bound, Known):
        return repr(bound.value)  # 1 and 1.0 are not alike
    if isinstance(bound, tuple):
        several = tuple(_part(facts, v, seen, unread) for v in bound)
        return None if None in several else several
    if not isinstance(bound, str):
        return None
    kind = facts.kind(bound, unread)
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


def constants_between(facts: Facts, names: Mapping[str, str]) -> dict[int, np.ndarray]:
    """Constants of one match, by identity, to those of the other."""
    found: dict[int, np.ndarray] = {}
    for old, new in names.items():
        a, b = facts.view.const(old), facts.view.const(new)
        if a is not None and b is not None:
            found[id(a)] = b
    return found


def repeatable(facts: Facts, s: Solution, candidates: Sequence[Candidate]) -> bool:
    """Whether every constant operand is a captured constant, or can be made again, or is unlike them all: of none."""
    values = [v for b in s.bound.values() for v in (b if isinstance(b, tuple) else (b,)) if isinstance(v, str)]
    own = [const for v in values if (const := facts.view.const(v)) is not None and const.nbytes > SCALAR]
    same, sizes = {id(c) for c in own}, {c.size for c in own}
    operands = [o for c in candidates for call in c.calls for _, o in call.operands if isinstance(o, Constant)]
    return all(id(o.data) in same or o.made_by is not None or o.data.size not in sizes for o in operands)


def constants_made(
    candidates: Sequence[Candidate], constants: dict[int, np.ndarray], environment: Callable[[], Mapping[str, Any]]
) -> bool:
    """Add what the operands' expressions give in another match; False where one gives another type than it did."""
    env: Mapping[str, Any] | None = None
    for o in (o for c in candidates for call in c.calls for _, o in call.operands):
        if not isinstance(o, Constant) or id(o.data) in constants or o.made_by is None:
            continue
        env = environment() if env is None else env
        data = as_operand(evaluate_expression(o.made_by, env))  # type: ignore[arg-type]
        if not isinstance(data, np.ndarray) or data.shape != o.data.shape:
            return False
        if data.dtype != o.data.dtype and (data.dtype.kind != "f" or o.data.dtype.kind != "f"):
            return False
        with np.errstate(all="ignore"):
            constants[id(o.data)] = data.astype(o.data.dtype, copy=False)
    return True


def renamed(
    c: Candidate, names: Mapping[str, str], constants: Mapping[int, np.ndarray], nodes: frozenset[int], evidence: str
) -> Candidate:
    """The same candidate at another place; temporaries follow the result they are named by."""
    temporaries = tuple(replace(t, name=_temporary(t.name, c, names)) for t in c.temporaries)
    local = {**names, **{t.name: n.name for t, n in zip(c.temporaries, temporaries, strict=True)}}
    return Candidate(
        rule=c.rule,
        variant=c.variant,
        emit=c.emit,
        calls=tuple(_call(call, local, constants) for call in c.calls),
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


def _call(call: EmittedCall, names: Mapping[str, str], constants: Mapping[int, np.ndarray]) -> EmittedCall:
    return EmittedCall(
        call.kernel,
        tuple((n, _operand(o, names, constants)) for n, o in call.operands),
        tuple((n, names[v]) for n, v in call.results),
        call.attrs,
        None if call.alias is None else replace(call.alias, of=names[call.alias.of]),
    )


def _operand(operand: Operand, names: Mapping[str, str], constants: Mapping[int, np.ndarray]) -> Operand:
    if isinstance(operand, ValueRef):
        return ValueRef(names[operand.name])
    other = constants.get(id(operand.data))
    return operand if other is None else Constant(other, operand.made_by)
