"""rewrite(): rules with `rewrite` applied to the view until none fires.

Every step makes the sum of the operators' weights smaller (language/measure.py), so it ends; what a step changed is
looked at again, and nothing else, so that the work follows the size of the network and the number of steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fusion_engine.collection import paused
from fusion_engine.covering.types import Cause, Decline
from fusion_engine.language.measure import weights_of
from fusion_engine.language.trees import children
from fusion_engine.language.types import OpPattern, Pattern, Rearrange, Rewrite, Rule, RuleSet
from fusion_engine.matching.facts import Facts
from fusion_engine.matching.index import Compiled, Index, build_index
from fusion_engine.matching.search import fresh_state, scopes_at
from fusion_engine.matching.solution import Refusal, Solution, base_environment, broken_condition, leak, solution_of
from fusion_engine.matching.state import ExhaustedError, State
from fusion_engine.rewriting.instance import Instance, RefusedError, instance_of
from fusion_engine.rewriting.workspace import Workspace
from fusion_engine.view.draft import Node
from fusion_engine.view.infer import Memo
from fusion_engine.view.rework import rebuilt
from fusion_engine.view.types import View, ViewNode

ROUNDS = 8  # normalising what was rewritten may open more, hardly ever twice
NEAR = 64  # users of one value that are looked at again
FAR = 4096  # nodes walked over to see that several results do not feed an operand


@dataclass(frozen=True, slots=True)
class Step:
    """One rewrite that was made: its rule and variant, and the nodes of the file that it rewrote."""

    rule: str
    variant: str
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """The view after rewriting, the steps in the order in which they were made, and what was cut short.

    `declines`: matches in the final view that are not rewritten, since what would stand there is no legal replacement.
    """

    view: View
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    declines: tuple[Decline, ...] = ()


def rewrite(view: View, rules: RuleSet) -> Rewritten:
    """The view with every rule that rewrites applied to a fixed point; nodes keep the names of the file's nodes."""
    rewriting = [r for r in rules.rules if r.rewrite]
    if not rewriting or not _possible(view, rules, rewriting):
        return Rewritten(view)
    steps: list[Step] = []
    notes: list[str] = []
    with paused():
        for _ in range(ROUNDS):
            run = _Run(view, rules, rewriting)
            run.work()
            notes += run.notes
            if not run.steps:
                return Rewritten(view, tuple(steps), tuple(dict.fromkeys(notes)), tuple(run.declines))
            steps += run.steps
            view = rebuilt(view, run.space.living, run.space.values)
        else:
            notes.append(f"rewriting was cut off after {ROUNDS} rounds")
    return Rewritten(view, tuple(steps), tuple(dict.fromkeys(notes)))


def _possible(view: View, rules: RuleSet, rewriting: Sequence[Rule]) -> bool:
    """Whether the view has the operators that some variant needs; most views do not, and are not copied."""
    index = build_index(Facts(view), replace(rules, rules=tuple(rewriting)), explain=False, rewriting=True)
    return bool(index.by_root or index.anywhere)


class _DoneError(Exception):
    """Leaves a search at the first match that was rewritten."""


@dataclass(eq=False)
class _Run:
    """One round: a workspace, and the nodes still to be looked at."""

    view: View
    rules: RuleSet
    rewriting: Sequence[Rule]
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    declines: list[Decline] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.space = Workspace.of(self.view)
        made = frozenset(n.op for r in self.rewriting for w in r.rewrite for n in w.nodes)
        self.facts = Facts(self.space.view, made)
        self.index: Index = build_index(self.facts, self.rules, explain=False, rewriting=True)
        self.weights = weights_of(self.rewriting)
        patterns = [p for r in self.rewriting for v in r.variants for p in (v.pattern, *v.extra)]
        self.height = max((_height(p) for p in patterns), default=1)
        self.memo: Memo = {}
        self.states: dict[int, State] = {}
        self.queue = deque(n.index for n in self.space.nodes if self.index.at(n.op))
        self.waiting = set(self.queue)

    def work(self) -> None:
        while self.queue:
            index = self.queue.popleft()
            self.waiting.discard(index)
            if index not in self.space.dead:
                self._at(self.space.nodes[index])

    def _at(self, node: ViewNode) -> None:
        for compiled in self.index.at(node.op):
            for scope in scopes_at(compiled, node):
                for output in node.outputs:
                    if not output:
                        continue
                    state = self.states.pop(compiled.position, None) or fresh_state(self.facts, compiled)
                    state.steps, state.scope = 0, scope
                    state.found = lambda st, c=compiled: self._found(c, st)  # type: ignore[misc]
                    try:
                        compiled.start(state, output)
                    except _DoneError:
                        return
                    except (ExhaustedError, RecursionError):
                        self._exhausted(compiled)
                        continue
                    self.states[compiled.position] = state

    def _exhausted(self, compiled: Compiled) -> None:
        self.notes.append(f"rule {compiled.rule.name}, variant {compiled.variant.name}: the search was cut off")

    def _found(self, compiled: Compiled, st: State) -> None:
        s = solution_of(compiled, st)
        if s.pairs or len(s.results) != len(compiled.variant.results) or leak(self.facts, compiled, s) is not None:
            return
        env = base_environment(self.facts, compiled, s)
        if isinstance(env, Refusal) or broken_condition(compiled.variant.where, env) is not None:
            return
        for rewriting in compiled.rule.rewrite:
            if rewriting.variants and compiled.variant.name not in rewriting.variants:
                continue
            try:
                made = instance_of(self.space, s, rewriting, env, self.memo)
                self._replace(compiled, s, made)
            except RefusedError as e:
                self._refused(compiled, s, rewriting, str(e))
                continue
            raise _DoneError

    def _refused(self, compiled: Compiled, s: Solution, rewriting: Rewrite, reason: str) -> None:
        root = self.space.producer[s.results[compiled.variant.results[0]]]
        cause = Cause(f"the rewrite is refused: {reason}", span=rewriting.span)
        needed = compiled.needed
        decline = Decline(compiled.rule.name, compiled.variant.name, root, cause, (root,), 1.0, needed, needed)
        self.declines.append(decline)

    def _replace(self, compiled: Compiled, s: Solution, made: Instance) -> None:
        """Put the new nodes in. Raises RefusedError before anything is changed."""
        gone = _removable(self.space, self.facts.outputs.union(made.operands), s)
        results = set(s.results.values())
        if any(self.space.producer.get(v) not in gone for v in results):
            raise RefusedError("another result of the node is used")
        before = sum(self.weights.get(self.space.nodes[i].op, 1) for i in gone)
        if sum(self.weights.get(n.op, 1) for n in made.nodes) >= before:
            raise RefusedError("the measure would not fall")
        if len(results) > 1 and _feeds(self.space, results, made.operands, gone):
            raise RefusedError("a result flows back into an operand")
        origins = tuple(dict.fromkeys(o for i in sorted(s.nodes) for o in self.space.nodes[i].origins))
        touched = {v for i in gone for v in (*self.space.nodes[i].inputs, *self.space.nodes[i].outputs) if v}
        self.space.remove(gone)
        fresh = self._put(made, origins)
        self.facts.forget({*touched, *made.values, *made.operands})
        self.steps.append(Step(compiled.rule.name, compiled.variant.name, origins))
        self._again(fresh, {*touched, *made.results.values()})

    def _put(self, made: Instance, origins: tuple[str, ...]) -> list[int]:
        for name, value in made.values.items():
            old = self.space.values.get(name)
            self.space.values[name] = value if old is None else replace(old, const=value.const)
        fresh = [self.space.add(node) for node in made.nodes]
        for result, stands in made.results.items():
            if result == stands:
                continue
            self.space.use_instead(result, stands)
            if result in self.facts.outputs:
                fresh.append(self.space.add(Node("Identity", [stands], [result], {}, origins)))
        return fresh

    def _again(self, fresh: Sequence[int], values: set[str]) -> None:
        """Look again at what was made, and at what lies so far above a change that a pattern could reach it."""
        near = [*fresh, *sorted(u for v in values for u in self.space.users.get(v, ())[:NEAR])]
        for _ in range(self.height):
            above = [u for i in near for o in self.space.nodes[i].outputs for u in self.space.users.get(o, ())[:NEAR]]
            near = list(dict.fromkeys((*near, *above)))
        for index in near:
            if index not in self.waiting and index not in self.space.dead and self.index.at(self.space.nodes[index].op):
                self.waiting.add(index)
                self.queue.append(index)


def _height(p: Pattern) -> int:
    below = max((_height(c) for c in children(p)), default=0)
    return below + (1 if isinstance(p, OpPattern) else 4 if isinstance(p, Rearrange) else 0)


def _removable(space: Workspace, needed: frozenset[str], s: Solution) -> frozenset[int]:
    """The match's nodes that nothing needs any more, users before makers; `needed`: outputs, what new nodes read."""
    results = set(s.results.values())
    gone: set[int] = set()
    waiting = sorted(s.nodes, reverse=True)
    while True:
        free = [i for i in waiting if all(_unneeded(space, o, needed, results, gone) for o in space.nodes[i].outputs)]
        if not free:
            return frozenset(gone)
        gone.update(free)
        waiting = [i for i in waiting if i not in gone]


def _unneeded(space: Workspace, value: str, needed: frozenset[str], results: set[str], gone: set[int]) -> bool:
    if not value or value in results:
        return True
    return value not in needed and all(u in gone for u in space.users.get(value, ()))


def _feeds(space: Workspace, results: set[str], operands: Sequence[str], gone: frozenset[int]) -> bool:
    """Whether an operand is a result or computed from one; a walk that grows too long counts as yes."""
    if not results.isdisjoint(operands):
        return True
    goals = {space.producer[o] for o in operands if o in space.producer}
    seen: set[int] = set()
    queue = [u for v in sorted(results) for u in space.users.get(v, ()) if u not in gone]
    while queue and len(seen) < FAR:
        index = queue.pop()
        if index in goals:
            return True
        if index not in seen:
            seen.add(index)
            queue += [u for o in space.nodes[index].outputs for u in space.users.get(o, ()) if u not in gone]
    return bool(queue)
