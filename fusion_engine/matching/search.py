"""Every candidate of a view: at each node the variants whose root it can be, each with bounded backtracking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from fusion_engine.collection import paused
from fusion_engine.covering.cost import call_cost
from fusion_engine.covering.types import Candidate, Cause, Decline
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching.candidates import Refused, Taken, candidates_of
from fusion_engine.matching.emission import Cost, Emitter
from fusion_engine.matching.facts import Facts
from fusion_engine.matching.index import Compiled, build_index
from fusion_engine.matching.regions import regions
from fusion_engine.matching.solution import solution_of
from fusion_engine.matching.state import ExhaustedError, Miss, State
from fusion_engine.view.types import Scope, View, ViewNode

BUDGET = 20_000  # operators matched per variant and root


@dataclass(frozen=True, slots=True, eq=False)
class MatchResult:
    """`candidates` in order of root node, rule and variant; `declines` where asked for; `notes`: what was cut short."""

    candidates: tuple[Candidate, ...]
    declines: tuple[Decline, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class _Run:
    """What one call of match() gathers."""

    facts: Facts
    emitter: Emitter
    explain: bool
    budget: int
    candidates: list[Candidate] = field(default_factory=list)
    declines: list[Decline] = field(default_factory=list)
    exhausted: dict[tuple[str, str], int] = field(default_factory=dict)


def match(
    view: View,
    rules: RuleSet,
    kernels: Mapping[str, Kernel],
    cost: Cost | None = None,
    explain: bool = False,
    budget: int = BUDGET,
) -> MatchResult:
    """Every way that the rules can take nodes of the view onto kernels.

    With `explain`, also the deepest failed attempt of every rule and variant at every root, and why emit entries
    declined.
    `cost` prices a call by its kernel and sizes alone (default: `covering.cost.call_cost()`); infinite declines it.
    `budget` bounds the operators tried per variant and root; what hits it is declined and noted.
    """
    facts = Facts(view)
    run = _Run(facts, Emitter(view, kernels, cost or call_cost()), explain, budget)
    index = build_index(facts, rules, explain)
    states: dict[int, State] = {}
    with paused():
        for node in view.nodes:
            for compiled in index.at(node.op):
                _at_node(run, compiled, states, node)
    return MatchResult(tuple(run.candidates), tuple(run.declines), _notes(run))


def explain_node(
    view: View, rules: RuleSet, kernels: Mapping[str, Kernel], node_index: int, cost: Cost | None = None
) -> tuple[Decline, ...]:
    """Why no rule took a node: declines of the rules that mention its operator, the nearest first.

    Searched at every root from which a pattern can reach down to the node.
    """
    facts = Facts(view)
    node = view.nodes[node_index]
    run = _Run(facts, Emitter(view, kernels, cost or call_cost()), True, BUDGET)
    index = build_index(facts, rules, explain=True, only=(node.op,))
    states: dict[int, State] = {}
    for root in _above(view, node_index):
        for compiled in index.at(view.nodes[root].op):
            _at_node(run, compiled, states, view.nodes[root])
    declines = [d for d in run.declines if d.root == node_index or node_index in d.nodes]
    return tuple(sorted(declines, key=lambda d: (-d.depth, d.root != node_index, d.rule, d.variant, d.root)))


def _above(view: View, node_index: int, reach: int = 32) -> list[int]:
    """The node and what its results flow into, nearest first."""
    found = [node_index]
    for at in found:
        if len(found) >= reach:
            break
        for output in view.nodes[at].outputs:
            found.extend(u for u in view.users.get(output, ()) if u not in found)
    return found[:reach]


def _at_node(run: _Run, compiled: Compiled, states: dict[int, State], node: ViewNode) -> None:
    state = states.get(compiled.position)
    if state is None:
        state = states[compiled.position] = fresh_state(run.facts, compiled, run.budget, run.explain)
    for scope in scopes_at(compiled, node):
        for output in node.outputs:
            if output and not _search(run, compiled, state, node, output, scope):
                state = states[compiled.position] = fresh_state(run.facts, compiled, run.budget, run.explain)


def fresh_state(facts: Facts, compiled: Compiled, budget: int = BUDGET, explain: bool = False) -> State:
    """Nothing bound yet."""
    none: list[None] = [None] * len(compiled.slots)
    operators = compiled.operators
    return State(facts, list(none), [None] * operators, [False] * operators, _ignore, budget, explain)


def _ignore(_: State) -> None:
    """A fresh state belongs to no search yet."""


def scopes_at(compiled: Compiled, node: ViewNode) -> Iterator[tuple[Scope, ...]]:
    """The module instances around a node that a `scope` variant may mean; no restriction for the others."""
    wanted = compiled.variant.scope
    if wanted is None:
        yield ()
        return
    for depth, scope in enumerate(node.scopes):
        if fnmatchcase(scope.cls, wanted):
            yield node.scopes[: depth + 1]


def _search(run: _Run, compiled: Compiled, state: State, node: ViewNode, value: str, scope: tuple[Scope, ...]) -> bool:
    """One variant at one value. False where the search was cut off, which leaves the state unfit for use."""
    if compiled.variant.region is not None:
        _search_region(run, compiled, node)
        return True
    state.steps, state.scope = 0, scope
    if run.explain:
        state.miss = Miss()
    taken = Taken()
    state.found = _collector(run, compiled, taken)
    try:
        compiled.start(state, value)
    except (ExhaustedError, RecursionError):
        _exhausted(run, compiled, node)
        run.candidates.extend(taken.candidates)
        return False
    run.candidates.extend(taken.candidates)
    if run.explain:
        _explain(run, compiled, node, taken, state.miss)
    return True


def _search_region(run: _Run, compiled: Compiled, node: ViewNode) -> None:
    taken = Taken()
    variant = compiled.variant
    for solution in regions(run.facts, variant.pattern, variant.results[0], compiled.region, node):
        candidates_of(run.facts, run.emitter, compiled, solution, taken, run.explain)
    run.candidates.extend(taken.candidates)
    if run.explain:
        _explain(run, compiled, node, taken, Miss())


def _collector(run: _Run, compiled: Compiled, taken: Taken) -> Callable[[State], None]:
    def found(st: State) -> None:
        candidates_of(run.facts, run.emitter, compiled, solution_of(compiled, st), taken, run.explain)

    return found


def _exhausted(run: _Run, compiled: Compiled, node: ViewNode) -> None:
    key = (compiled.rule.name, compiled.variant.name)
    run.exhausted[key] = run.exhausted.get(key, 0) + 1
    if run.explain:
        cause = Cause(f"the search took more than {run.budget} steps", span=compiled.variant.span)
        run.declines.append(Decline(*key, node.index, cause, (node.index,), 1.0))


def _notes(run: _Run) -> tuple[str, ...]:
    return tuple(
        f"rule {rule}, variant {variant}: the search was cut off at {count} node{'s' if count > 1 else ''}"
        for (rule, variant), count in sorted(run.exhausted.items())
    )


# ---- declines ----


def _explain(run: _Run, compiled: Compiled, node: ViewNode, taken: Taken, miss: Miss) -> None:
    """Entries that declined a match; where nothing was matched, the deepest attempt."""
    name, variant = compiled.rule.name, compiled.variant.name
    needed = compiled.needed
    for refused in taken.refused:
        blame = _blame(node, refused)
        run.declines.append(Decline(name, variant, node.index, refused.cause, blame, 1.0, needed, needed))
    if taken.candidates or taken.refused or miss.matched < 0:
        return
    depth = min(miss.matched / max(needed, 1), 0.99)
    nodes = miss.nodes or (node.index,)
    run.declines.append(Decline(name, variant, node.index, miss.cause, nodes, depth, int(miss.matched), needed))


def _blame(node: ViewNode, refused: Refused) -> tuple[int, ...]:
    return refused.nodes or (node.index,)
