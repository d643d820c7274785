"""Whose numbers decide whether, and at what price, a variant's match is taken; all others only become operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fusion_engine.covering.types import Candidate, Cause, Constant
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.fitting import attributes_read
from fusion_engine.language.types import EApply, EList, Emit, EmitEntry, EName, Expression
from fusion_engine.language.vocabulary import as_condition, as_operand, evaluate_expression
from fusion_engine.matching.environment import Environment, bind, deferred
from fusion_engine.matching.facts import Facts, Virtual
from fusion_engine.matching.index import Compiled
from fusion_engine.matching.neighbourhoods import told_by_content
from fusion_engine.matching.solution import Refusal, Solution, base_environment
from fusion_engine.matching.storage import result_choices

Read = tuple[str, bool]  # a name, and whether it is its lens that is read
SHAPES = frozenset(("dim", "rank", "shape", "size", "length", "broadcasts", "present", "dtype", "constant", "same_as"))
LENS = frozenset(("scale", "zero", "stored", "quantised", "multiplier", "shift", "table_i8"))


def decided_by_numbers(facts: Facts, kernels: Mapping[str, Kernel], compiled: Compiled, s: Solution) -> bool:
    """Whether another match in equal surroundings might be taken otherwise, or at another price.

    Conditions are asked in their order: what stands behind one that does not hold anyway decides nothing.
    """
    env = base_environment(facts, compiled, s)
    if isinstance(env, Refusal):
        return False
    judge = _Judge(facts, s, {**dict(compiled.variant.let), **deferred(s.bound)}, env)
    holds = judge.conditions(compiled.variant.where)
    if not holds:
        return holds is None
    entries = (e for e in compiled.rule.emit if not e.variants or compiled.variant.name in e.variants)
    return any(_entry_decided(judge, e, kernels) for e in entries)


def _entry_decided(judge: _Judge, entry: EmitEntry, kernels: Mapping[str, Kernel]) -> bool:
    if isinstance(result_choices(judge.facts, judge.s.results, entry), Cause):
        return False
    holds = judge.conditions(entry.when)
    if not holds:
        return holds is None
    priced = (e for call in entry.calls for e in _priced(call, kernels))
    return any(judge.numbers(e) for e in priced) or _quantised_by_numbers(judge.facts, entry, judge.s)


@dataclass(frozen=True, slots=True, eq=False)
class Constants:
    """Where the constants of a candidate's calls come from, by identity: names of the graph, and expressions.

    `bound` are the tensors of the match, `env` what else its expressions see.
    """

    passed: Mapping[int, str]
    made: Mapping[int, tuple[Expression, np.ndarray]]
    bound: Mapping[str, str]
    env: Environment


def constants_of(facts: Facts, compiled: Compiled, s: Solution, c: Candidate) -> Constants | None:
    """None where anything in the calls but constants follows from numbers, or from a scale or zero point."""
    env = base_environment(facts, compiled, s)
    calls = compiled.rule.emit[c.emit].calls
    if isinstance(env, Refusal) or len(calls) != len(c.calls):
        return None
    judge = _Judge(facts, s, {**dict(compiled.variant.let), **deferred(s.bound)}, env)
    if any(judge.numbers(e) for call in calls for _, e in call.attrs):
        return None
    bound = {n: b for n, b in s.bound.items() if isinstance(b, str)}
    known = {id(const): v for v in bound.values() if (const := facts.view.const(v)) is not None}
    passed: dict[int, str] = {}
    made: dict[int, tuple[Expression, np.ndarray]] = {}
    for call, emitted in zip(calls, c.calls, strict=True):
        args = dict(call.args)
        for name, o in emitted.operands:
            expression = args.get(name)
            if not isinstance(o, Constant):
                continue
            if expression is None or judge.lenses(expression):
                return None
            if judge.passes(expression) and id(o.data) in known:
                passed[id(o.data)] = known[id(o.data)]
            elif judge.numbers(expression):
                made[id(o.data)] = expression, o.data
    return Constants(passed, made, bound, env)


def constants_elsewhere(facts: Facts, constants: Constants, bound: Mapping[str, str]) -> dict[int, np.ndarray] | None:
    """What the expressions give for other tensors; None where the type is another."""
    if not constants.made:
        return {}
    env = Environment({**constants.env, **{n: bind(facts, n, v) for n, v in bound.items()}}, constants.env.lazy)
    for name in constants.env.lazy:
        env.pop(name, None)
    found: dict[int, np.ndarray] = {}
    for identity, (expression, old) in constants.made.items():
        data = as_operand(evaluate_expression(expression, env))
        if (
            not isinstance(data, np.ndarray)
            or data.shape != old.shape
            or (data.dtype != old.dtype and old.dtype.kind != "f")
        ):
            return None
        with np.errstate(all="ignore"):
            found[identity] = data.astype(old.dtype, copy=False)
    return found


@dataclass(frozen=True, eq=False)
class _Judge:
    facts: Facts
    s: Solution
    lets: Mapping[str, Expression]
    env: Environment

    def conditions(self, conditions: tuple[tuple[str, Expression], ...]) -> bool | None:
        """Whether all hold; None where numbers decide. One that cannot be told yet is taken to hold."""
        for _, condition in conditions:
            if self.numbers(condition):
                return None
            if as_condition(evaluate_expression(condition, self.env)) is False:
                return False
        return True

    def numbers(self, expression: Expression) -> bool:
        """Whether the expression reads numbers that the surroundings do not tell."""
        return any(self._untold(name, lens) for name, lens in self._through_lets(expression))

    def passes(self, expression: Expression) -> bool:
        """Whether a captured value is handed on as it is."""
        match expression:
            case EName(name=name) if name in self.lets:
                return self.passes(self.lets[name])
            case EName(name=name):
                return self.s.bound.get(name) is not None
            case EApply(fn="given", args=(EName() as first, _)):
                return self.passes(first)
        return False

    def lenses(self, expression: Expression) -> bool:
        """Whether the expression reads a quantised value."""
        names = {name for name, _ in self._through_lets(expression)}
        return any(self.facts.stored(v) is not None for name in names for v in _tensors(self.s, name))

    def _through_lets(self, expression: Expression) -> Iterator[Read]:
        waiting = list(self._read(expression, lens=False))
        seen = set(waiting)
        while waiting:
            name, lens = waiting.pop()
            if name not in self.lets:
                yield name, lens
                continue
            more = [r for r in self._read(self.lets[name], lens) if r not in seen]
            seen.update(more)
            waiting += more

    def _read(self, expression: Expression, lens: bool) -> Iterator[Read]:
        match expression:
            case EName(name=name):
                yield name, lens
            case EApply(fn=fn) if fn in SHAPES:
                return
            case EApply(fn="given", args=(EName(name=name), _)) if self.s.bound.get(name) is not None:
                yield name, lens
            case EApply(fn=fn, args=parts):
                for part in parts:
                    yield from self._read(part, lens or fn in LENS)
            case EList(items=parts):
                for part in parts:
                    yield from self._read(part, lens)

    def _untold(self, name: str, lens: bool) -> bool:
        if lens and name in self.s.results:
            return bool(self.facts.quantisers(self.s.results[name]))
        if lens and any(self.facts.stored(v) is not None for v in _tensors(self.s, name)):
            return True
        return any(_untold(self.facts, v) for v in _tensors(self.s, name))


def _priced(call: Emit, kernels: Mapping[str, Kernel]) -> Iterator[Expression]:
    kernel = kernels.get(call.kernel)
    matters = frozenset[str]() if kernel is None else attributes_read(kernel)
    yield from (e for name, e in call.attrs if name in matters)
    yield from (t.dims for _, t in call.types if t.dims is not None)


def _tensors(s: Solution, name: str) -> Iterator[str | Virtual]:
    bound = s.bound.get(name)
    for value in bound if isinstance(bound, tuple) else (bound,):
        if isinstance(value, (str, Virtual)):
            yield value


def _untold(facts: Facts, value: str | Virtual) -> bool:
    """A constant whose numbers the surroundings do not tell."""
    if not facts.is_const(value):
        return False
    return isinstance(value, Virtual) or value in facts.view.producer or not told_by_content(facts, value)


def _quantised_by_numbers(facts: Facts, entry: EmitEntry, s: Solution) -> bool:
    """Float constants that may be int8, and activations that must have zero point 0."""
    for name, wanted in entry.stored.items():
        if wanted.dtype == "float" or name in s.results:
            continue
        for value in _tensors(s, name):
            stored = facts.stored(value)
            if stored is None and wanted.dtype == "int8" and _untold(facts, value):
                return True
            if stored is not None and wanted.symmetric and stored.const is None:
                return True
    return False
