"""Matches into candidates: one per rule, variant, emit entry, node set and values produced; the first binding wins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from fusion_engine.covering.types import Candidate, Cause, ValueRef
from fusion_engine.language.types import EmitEntry, OpPattern
from fusion_engine.matching.emission import Emission, Emitter
from fusion_engine.matching.environment import Environment, bind_result
from fusion_engine.matching.facts import DEQUANTIZE, Facts
from fusion_engine.matching.index import Compiled
from fusion_engine.matching.operands import DeclinedError
from fusion_engine.matching.solution import Refusal, Solution, base_environment, broken_condition, leak
from fusion_engine.matching.storage import Made, inner_misfit, result_choices, store_captures
from fusion_engine.view.types import View


@dataclass(frozen=True, slots=True)
class Refused:
    """An emit entry (None: the match as a whole) that did not take a match."""

    entry: int | None
    cause: Cause
    nodes: tuple[int, ...]


Key = tuple[int, frozenset[int], tuple[str, ...]]


@dataclass(eq=False)
class Taken:
    """What one variant gave at one root."""

    candidates: list[Candidate] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)
    settled: set[frozenset[int]] = field(default_factory=set)  # node sets of which another binding gives nothing new
    refused: list[Refused] = field(default_factory=list)

    def refuse(self, entry: int | None, cause: Cause, nodes: tuple[int, ...] = ()) -> None:
        refused = Refused(entry, cause, nodes)
        if refused not in self.refused:
            self.refused.append(refused)


def candidates_of(
    facts: Facts, emitter: Emitter, compiled: Compiled, s: Solution, taken: Taken, only: int | None = None
) -> None:
    """Add what the emit entries (or the `only` one) make of one match to `taken`, and why the others do not."""
    if len(s.results) != len(compiled.variant.results) or s.nodes in taken.settled:
        return
    leaking = leak(facts, compiled, s)
    if leaking is not None:
        taken.refuse(None, leaking.cause, leaking.nodes)
        return
    _emit_entries(facts, emitter, compiled, s, taken, only)


def _emit_entries(
    facts: Facts, emitter: Emitter, compiled: Compiled, s: Solution, taken: Taken, only: int | None
) -> None:
    env = base_environment(facts, compiled, s)
    if isinstance(env, Refusal):
        taken.refuse(None, env.cause, env.nodes)
        return
    if compiled.rule.rewrite:
        _refuse_rewrite(compiled, s, env, taken)
    settled = True
    for position, entry in enumerate(compiled.rule.emit):
        if (entry.variants and compiled.variant.name not in entry.variants) or only not in (None, position):
            continue
        settled &= _try_entry(facts, emitter, compiled, s, env, position, entry, taken)
    if settled:
        taken.settled.add(s.nodes)


def _refuse_rewrite(compiled: Compiled, s: Solution, env: Environment, taken: Taken) -> None:
    """What keeps a match of a rule that rewrites from being one, for those who ask."""
    broken = broken_condition(compiled.variant.where, env)
    if s.pairs:
        broken = Cause("an inner value is quantised: a rewrite would drop its rounding", span=compiled.variant.span)
    if broken is not None:
        taken.refuse(None, broken)


def _try_entry(
    facts: Facts,
    emitter: Emitter,
    compiled: Compiled,
    s: Solution,
    env: Environment,
    position: int,
    entry: EmitEntry,
    taken: Taken,
) -> bool:
    """Whether another binding of the same nodes could give nothing more."""
    choices = result_choices(facts, s.results, entry)
    if isinstance(choices, Cause):
        taken.refuse(position, _of_entry(entry, choices, emitter.chief(entry)))
        return True
    settled = True
    for made in choices:
        key = (position, s.nodes, tuple(m.produced for m in made))
        if key in taken.keys:
            continue
        try:
            taken.candidates.append(_candidate(facts, emitter, compiled, s, env, position, entry, made))
            taken.keys.add(key)
        except DeclinedError as e:
            kernel = e.kernel or emitter.chief(entry)
            taken.refuse(position, _of_entry(entry, e.cause, kernel) if e.of_kernel else e.cause)
            settled = False
    return settled


def _of_entry(entry: EmitEntry, cause: Cause, kernel: str) -> Cause:
    """The same cause, saying which kernel it is about, at the entry where it has no place of its own."""
    return replace(cause, reason=f"{kernel}: {cause.reason}", span=cause.span or entry.calls[0].span)


def _candidate(
    facts: Facts,
    emitter: Emitter,
    compiled: Compiled,
    s: Solution,
    base: Environment,
    position: int,
    entry: EmitEntry,
    made: tuple[Made, ...],
) -> Candidate:
    """One entry with one storage of the results. Raises DeclinedError."""
    env = _environment(facts, compiled, base, made)
    _check_storage(facts, compiled, s, entry, env, made)
    for conditions in (compiled.variant.where, entry.when):
        broken = broken_condition(conditions, env)
        if broken is not None:
            raise DeclinedError(broken, of_kernel=conditions is entry.when)
    produced = tuple(m.produced for m in made)
    emission = emitter.emit(entry, env, made)
    consumed = _consumed(facts.view, emission)
    nodes = s.nodes | {m.node for m in made if m.node is not None} | _absorbed(facts, s, consumed)
    if len(produced) > 1 and not _convex(facts.view, nodes, produced, consumed):
        raise DeclinedError("a result flows back into an operand")
    return Candidate(
        rule=compiled.rule.name,
        variant=compiled.variant.name,
        emit=position,
        calls=emission.calls,
        nodes=nodes,
        consumes=consumed,
        produces=produced,
        evidence=_evidence(facts, compiled, s),
        cost=emission.cost + (compiled.variant.region is not None),  # of equals, the pattern that says what it is
        temporaries=emission.temporaries,
    )


def _environment(facts: Facts, compiled: Compiled, base: Environment, made: tuple[Made, ...]) -> Environment:
    """The match's names with the results in this storage; `let` that reads a result's scale is computed anew."""
    late = {n: e for n, e in compiled.variant.let if n in compiled.late_let}
    results = {
        m.name: bind_result(facts, m.name, m.value, m.produced if m.quantisation else None, m.quantisation)
        for m in made
    }
    return Environment({**base, **results}, late, base)


def _check_storage(
    facts: Facts, compiled: Compiled, s: Solution, entry: EmitEntry, env: Environment, made: tuple[Made, ...]
) -> None:
    stored = store_captures(facts, entry, env, compiled.rule.given, compiled.variant.results)
    if isinstance(stored, Cause):
        raise DeclinedError(stored)
    env.update(stored)
    misfit = inner_misfit(facts, entry, s.pairs, env, made)
    if misfit is not None:
        raise DeclinedError(misfit)


def _consumed(view: View, emission: Emission) -> tuple[str, ...]:
    """Values of the view that the calls read, in order, each once."""
    own = {t.name for t in emission.temporaries}
    refs = [o.name for c in emission.calls for _, o in c.operands if isinstance(o, ValueRef) and o.name not in own]
    return tuple(dict.fromkeys(r for r in refs if view.const(r) is None))


def _absorbed(facts: Facts, s: Solution, consumed: tuple[str, ...]) -> set[int]:
    """DequantizeLinears of captures whose integers are read instead, or that were computed at compile time."""
    if not facts.has_lens:
        return set()
    found: set[int] = set()
    for bound in s.bound.values():
        for value in bound if isinstance(bound, tuple) else (bound,):
            node = facts.maker(value) if isinstance(value, str) and value not in consumed else None
            if node is not None and node.op == DEQUANTIZE:
                found.add(node.index)
    return found


def _convex(view: View, nodes: frozenset[int], produced: tuple[str, ...], consumed: tuple[str, ...]) -> bool:
    """No operand is computed, outside, from a result."""
    made = [view.producer[v] for v in consumed if v in view.producer]
    last = max(made, default=-1)
    goals = set(made) - nodes
    queue = list(produced)
    seen: set[int] = set()
    while queue:
        for user in view.users.get(queue.pop(), ()):
            if user in goals:
                return False
            if user not in seen and user not in nodes and user <= last:
                seen.add(user)
                queue.extend(view.nodes[user].outputs)
    return True


# ---- evidence ----


def _evidence(facts: Facts, compiled: Compiled, s: Solution) -> str:
    if s.scope:
        return f"scope {s.scope[-1].cls}{f' {s.scope[-1].name}' if s.scope[-1].name else ''}"
    ops = [facts.view.nodes[i].op for i in sorted(s.nodes)]
    functions = [op for op in ops if "::" in op]
    if functions and _calls_function(compiled.variant.pattern):
        return f"function {functions[0]}"
    return "operator" if len(ops) == 1 else "structure"


def _calls_function(pattern: object) -> bool:
    inner = getattr(pattern, "pattern", None)
    parts: Iterable[object] = getattr(pattern, "inputs", ()) or getattr(pattern, "options", ())
    if isinstance(pattern, OpPattern) and pattern.callee is not None:
        return True
    return any(_calls_function(p) for p in ((inner,) if inner is not None else tuple(parts)))
