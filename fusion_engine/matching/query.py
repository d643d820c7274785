"""find(): every place where a pattern matches, without kernels: what the names are, and what a rule would object to."""

from __future__ import annotations

from dataclasses import dataclass

from fusion_engine.covering.types import Cause
from fusion_engine.language.types import RuleSet
from fusion_engine.matching.facts import Facts, Known, Virtual
from fusion_engine.matching.index import Compiled, build_index
from fusion_engine.matching.search import BUDGET, scopes_at
from fusion_engine.matching.solution import Refusal, Solution, base_environment, broken_condition, leak, solution_of
from fusion_engine.matching.state import Bound, ExhaustedError, State
from fusion_engine.view.types import Scope, View, ViewNode


@dataclass(frozen=True, slots=True)
class Found:
    """One match: view nodes, names to what they are, and the objection of a rule without `shared:` (or None)."""

    nodes: tuple[int, ...]
    names: tuple[tuple[str, str], ...]
    objection: Cause | None


@dataclass(frozen=True, slots=True)
class Matches:
    """What was found, and the nodes at which the search was cut off: there may be more."""

    found: tuple[Found, ...]
    cut: tuple[int, ...] = ()


def find(view: View, query: RuleSet) -> Matches:
    """Every match of the one rule of `query`, in order of its root; the first binding of each set of nodes."""
    facts = Facts(view)
    index = build_index(facts, query, explain=True)
    found: dict[frozenset[int], Found] = {}
    cut: dict[int, None] = {}
    for node in view.nodes:
        for compiled in index.at(node.op):
            solutions, whole = _solutions(facts, compiled, node)
            if not whole:
                cut[node.index] = None
            for s in solutions:
                if s.nodes not in found and _holds(facts, compiled, s):
                    found[s.nodes] = _found(facts, compiled, s)
    return Matches(tuple(found.values()), tuple(cut))


def _solutions(facts: Facts, compiled: Compiled, node: ViewNode) -> tuple[list[Solution], bool]:
    """The matches at a node, and whether they are all."""
    found: list[Solution] = []
    places = [(scope, output) for scope in scopes_at(compiled, node) for output in node.outputs if output]
    whole = [_search(facts, compiled, output, scope, found) for scope, output in places]
    return found, all(whole)


def _search(facts: Facts, compiled: Compiled, value: str, scope: tuple[Scope, ...], found: list[Solution]) -> bool:
    def collect(st: State) -> None:
        found.append(solution_of(compiled, st))

    slots, operators = len(compiled.slots), compiled.operators
    state = State(facts, [None] * slots, [None] * operators, [False] * operators, collect, BUDGET, False, scope)
    try:
        compiled.start(state, value)
    except (ExhaustedError, RecursionError):
        return False
    return True


def _holds(facts: Facts, compiled: Compiled, s: Solution) -> bool:
    env = base_environment(facts, compiled, s)
    return not isinstance(env, Refusal) and broken_condition(compiled.variant.where, env) is None


def _found(facts: Facts, compiled: Compiled, s: Solution) -> Found:
    refusal = leak(facts, compiled, s)
    v = compiled.variant
    order = dict.fromkeys((*v.captures, *v.attr_captures, *v.inner, *v.results, *s.bound))
    names = tuple((n, _described(facts, s.bound[n])) for n in order if n in s.bound and "." not in n)
    return Found(tuple(sorted(s.nodes)), names, None if refusal is None else refusal.cause)


def _described(facts: Facts, bound: Bound) -> str:
    """`const float32[8, 3]`, `float32[1, 8] made by Relu`, a number, `absent`."""
    match bound:
        case None:
            return "absent"
        case Known(value=value):
            return "absent" if value is None else _number(value)
        case tuple():
            return "; ".join(_described(facts, part) for part in bound)
        case str() | Virtual():
            return _tensor(facts, bound)
    return "computed from the others"


def _number(value: object) -> str:
    return str(list(value) if isinstance(value, tuple) else value)


def _tensor(facts: Facts, value: str | Virtual) -> str:
    name = value.stored if isinstance(value, Virtual) else value
    shape, const, maker = facts.shape(value), facts.const(value), facts.maker(name)
    extents = "?" if shape is None else ", ".join("?" if d is None else str(d) for d in shape)
    text = f"{facts.dtype(value) or '?'}[{extents}] `{name}`"
    if const is not None:
        return f"const {text} = {const.item():.9g}" if const.size == 1 else f"const {text}"
    return f"{text} made by {maker.op}" if maker is not None else f"{text} (input)"
