"""Every candidate of a view: at each node the variants whose root it can be, each with bounded backtracking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase

from fusion_engine.collection import paused
from fusion_engine.covering.cost import call_cost
from fusion_engine.covering.types import Candidate, Cause, Decline
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.types import RuleSet
from fusion_engine.matching.candidates import Refused, Taken, candidates_of
from fusion_engine.matching.decisive import constants_of, decided_by_numbers
from fusion_engine.matching.emission import Cost, Emitter
from fusion_engine.matching.everywhere import everywhere
from fusion_engine.matching.facts import Facts
from fusion_engine.matching.index import Compiled, Index, build_index
from fusion_engine.matching.neighbourhoods import Surroundings, surroundings
from fusion_engine.matching.regions import regions
from fusion_engine.matching.run import MatchResult, Run
from fusion_engine.matching.solution import Solution, solution_of
from fusion_engine.matching.state import ExhaustedError, Miss, State
from fusion_engine.view.types import Scope, View, ViewNode

BUDGET = 20_000  # operators matched per variant and root


CUTS = 32  # roots at which a variant may run out of it before it is tried no more


def match(
    view: View,
    rules: RuleSet,
    kernels: Mapping[str, Kernel],
    cost: Cost | None = None,
    explain: bool = False,
    budget: int = BUDGET,
    repeats: bool = True,
) -> MatchResult:
    """Every way that the rules can take nodes of the view onto kernels.

    With `explain`, also the deepest failed attempt of every rule and variant at every root, and why emit entries
    declined.
    `cost` prices a call by its kernel and sizes alone (default: `covering.cost.call_cost()`); infinite declines it.
    `budget` bounds the operators tried per variant and root; what hits it is declined and noted.
    `repeats`: nodes in equal surroundings are searched once. A candidate that repeats another makes its calls when it
    is asked for them; where numbers in constants keep it from that it raises StaleError: match again without `repeats`.
    """
    facts = Facts(view)
    run = Run(facts, Emitter(view, kernels, cost or call_cost()), explain, budget)
    index = build_index(facts, rules, explain)
    states: dict[int, State] = {}
    with paused():
        around = surroundings(facts) if repeats and not explain else None
        everywhere(run, index.of(regions=False), around, lambda c, n: _at_node(run, c, states, n))
        _regions(run, index.of(regions=True), around)
    return MatchResult(run.ordered, tuple(run.declines), _notes(run))


def explain_node(
    view: View, rules: RuleSet, kernels: Mapping[str, Kernel], node_index: int, cost: Cost | None = None
) -> tuple[Decline, ...]:
    """Why no rule took a node: declines of the rules that mention its operator, the nearest first.

    Searched at every root from which a pattern can reach down to the node.
    """
    facts = Facts(view)
    node = view.nodes[node_index]
    run = Run(facts, Emitter(view, kernels, cost or call_cost()), True, BUDGET)
    index = build_index(facts, rules, explain=True, only=(node.op,))
    states: dict[int, State] = {}
    for root in _above(view, node_index):
        for compiled in index.at(view.nodes[root].op):
            if compiled.variant.region is None:
                _at_node(run, compiled, states, view.nodes[root])
            else:
                _region(run, compiled, view.nodes[root], frozenset())
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


def _at_node(run: Run, compiled: Compiled, states: dict[int, State], node: ViewNode) -> None:
    if run.exhausted.get((compiled.rule.name, compiled.variant.name), 0) >= CUTS:
        return
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


def _search(run: Run, compiled: Compiled, state: State, node: ViewNode, value: str, scope: tuple[Scope, ...]) -> bool:
    """One variant at one value. False where the search was cut off, which leaves the state unfit for use."""
    state.steps, state.scope, state.low, state.numbers = 0, scope, node.index, False
    if run.explain:
        state.miss = Miss()
    taken = Taken()
    state.found = _collector(run, compiled, taken)
    try:
        compiled.start(state, value)
    except (ExhaustedError, RecursionError):
        _exhausted(run, compiled, node)
        run.keep(node, compiled, taken.candidates)
        return False
    run.keep(node, compiled, taken.candidates)
    if run.look is not None:
        run.look.low = min(run.look.low, state.low)
        run.look.numbers |= state.numbers
    if run.explain:
        _explain(run, compiled, node, taken, state.miss)
    return True


def _regions(run: Run, index: Index, around: Surroundings | None) -> None:
    """Region variants come last: they are cut where the others' candidates begin and end."""
    wanted = {c.position: _wanted(run, c.region) for c in index.all}
    if not wanted:
        return
    ends = frozenset[str]().union(*wanted.values())
    marks = [not ends.isdisjoint(n.outputs) for n in run.facts.view.nodes]
    apart = around.apart(marks) if around is not None else None
    everywhere(run, index, apart, lambda c, n: _region(run, c, n, wanted[c.position]))


def _wanted(run: Run, members: frozenset[str]) -> frozenset[str]:
    """Values that kernels of operators outside the class read or make."""
    nodes = run.facts.view.nodes
    others: dict[Candidate, bool] = {}  # what repeats another stands for the same operators
    values: set[str] = set()
    for _, _, c in run.candidates:
        first = c.like or c
        if first not in others:
            others[first] = any(nodes[i].op not in members for i in first.nodes)
        if others[first]:
            values.update(c.consumes)
            values.update(c.produces)
    return frozenset(values)


def _region(run: Run, compiled: Compiled, node: ViewNode, wanted: frozenset[str]) -> None:
    taken = Taken()
    variant = compiled.variant
    found = regions(run.facts, variant.pattern, variant.results[0], compiled.region, node, wanted)
    if found.limited:
        key = (compiled.rule.name, variant.name)
        run.limited[key] = run.limited.get(key, 0) + 1
    for solution in found.solutions:
        _offer(run, compiled, solution, taken)
    if run.look is not None:
        run.look.low = min(run.look.low, found.low)
    run.keep(node, compiled, taken.candidates)
    if run.explain:
        _explain(run, compiled, node, taken, Miss())


def _collector(run: Run, compiled: Compiled, taken: Taken) -> Callable[[State], None]:
    def found(st: State) -> None:
        _offer(run, compiled, solution_of(compiled, st), taken)

    return found


def _offer(run: Run, compiled: Compiled, s: Solution, taken: Taken) -> None:
    if run.look is not None and not run.look.numbers:
        run.look.numbers = decided_by_numbers(run.facts, run.emitter.kernels, compiled, s)
    before = len(taken.candidates)
    candidates_of(run.facts, run.emitter, compiled, s, taken, run.only)
    if run.look is not None and not run.look.numbers:
        fresh = taken.candidates[before:]
        run.look.constants.update((id(c), constants_of(run.facts, compiled, s, c)) for c in fresh)


def _exhausted(run: Run, compiled: Compiled, node: ViewNode) -> None:
    key = (compiled.rule.name, compiled.variant.name)
    run.exhausted[key] = run.exhausted.get(key, 0) + 1
    if run.explain:
        cause = Cause(f"the search took more than {run.budget} steps", span=compiled.variant.span)
        run.declines.append(Decline(*key, node.index, cause, (node.index,), 1.0))


def _notes(run: Run) -> tuple[str, ...]:
    cut = [
        f"rule {rule}, variant {variant}: the search was cut off at {_places(count)}"
        + (", then given up" if count >= CUTS else "")
        for (rule, variant), count in sorted(run.exhausted.items())
    ]
    limited = [
        f"rule {rule}, variant {variant}: the region was larger than one may be at {_places(count)}"
        for (rule, variant), count in sorted(run.limited.items())
    ]
    return (*cut, *limited)


def _places(count: int) -> str:
    return f"{count} node{'s' if count > 1 else ''}"


# ---- declines ----


def _explain(run: Run, compiled: Compiled, node: ViewNode, taken: Taken, miss: Miss) -> None:
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
