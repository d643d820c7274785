"""In which order independent calls run: the order given, and others that may need less memory.

Which order is best shows only when it is planned, for what stays in L1 and what rolls depends on it. So `call_orders`
proposes the few that matter: the least bytes of activations live at once, and the least that lies beyond L1, summed
over the calls. Each is found by dynamic programming over the sets of calls that are done, exact where the graph is
narrow; where it is wide the best `WIDTH` sets of each size are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from fusion_engine.graph import FusedGraph
from tiler.dependencies import predecessors
from tiler.liveness import activation_lives

WIDTH = 512  # sets of done calls of one size; above, the best of them, and nothing is proven

Cost = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CallOrder:
    """Calls by their numbers in the graph. `live` bytes of activations at the fullest call; `least` over all orders,
    None where that is not proven."""

    name: str
    calls: tuple[int, ...]
    live: int
    least: int | None


def call_orders(graph: FusedGraph, l1: int) -> tuple[CallOrder, ...]:
    """The given order, then those that have less live at once, or less of it beyond `l1`; one where all orders are as
    good."""
    work = _Work(graph)
    given = tuple(range(len(graph.calls)))
    if work.is_chain:
        return (CallOrder("given", given, work.peak(given), work.peak(given)),)
    found, exact = work.best(lambda cost, live: (max(cost[0], live), cost[1] + live))
    beyond, _ = work.best(lambda cost, live: (cost[0] + max(0, live - l1), cost[1] + live))
    least = work.peak(found) if exact or work.peak(found) == work.floor else None
    orders = [CallOrder("given", given, work.peak(given), least)]
    if work.peak(found) < work.peak(given):
        orders.append(CallOrder("least live", found, work.peak(found), least))
    if beyond != found and work.beyond(beyond, l1) < work.beyond(given, l1):
        orders.append(CallOrder("least beyond L1", beyond, work.peak(beyond), least))
    return tuple(orders)


def in_order(graph: FusedGraph, order: CallOrder) -> FusedGraph:
    """The graph with its calls in this order."""
    return replace(graph, calls=tuple(graph.calls[i] for i in order.calls))


@dataclass(frozen=True, slots=True)
class _Done:
    """A set of done calls: the cheapest way to it ended with `last`. `live` bytes lie between it and the next call,
    `ready` calls (bits) may be next."""

    cost: Cost
    last: int
    live: int
    ready: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A root that is not a constant: calls that use it (bits), and whether it is there from the start or to the
    end."""

    bytes: int
    users: int
    given: bool
    kept: bool


class _Work:
    """The calls of a graph, what they wait for and what they use."""

    def __init__(self, graph: FusedGraph) -> None:
        self.calls = len(graph.calls)
        self.before = predecessors(graph)
        self.behind = [[j for j in range(i + 1, self.calls) if self.before[j] >> i & 1] for i in range(self.calls)]
        self.tensors = _tensors(graph)
        self.uses = [[t for t in self.tensors if t.users >> i & 1] for i in range(self.calls)]

    @property
    def is_chain(self) -> bool:
        """Whether each call waits for the one before it."""
        return all(self.before[i] >> (i - 1) & 1 for i in range(1, self.calls))

    @cached_property
    def floor(self) -> int:
        """What some call needs in any order: the tensors that it uses."""
        return max((sum(t.bytes for t in used) for used in self.uses), default=0)

    @cached_property
    def start(self) -> _Done:
        live = sum(t.bytes for t in self.tensors if t.given)
        return _Done((0, 0), -1, live, sum(1 << i for i in range(self.calls) if not self.before[i]))

    def best(self, weigh: Callable[[Cost, int], Cost]) -> tuple[tuple[int, ...], bool]:
        """The order of least cost, `weigh` adding to it what is live during a call; whether nothing was left out."""
        levels = [{0: self.start}]
        exact = True
        for _ in range(self.calls):
            known: dict[int, _Done] = {}
            for done, state in levels[-1].items():
                for call in _bits(state.ready):
                    self._add(known, done, state, call, weigh)
            exact = exact and len(known) <= WIDTH
            levels.append(dict(sorted(known.items(), key=lambda x: (x[1].cost, x[0]))[:WIDTH]))
        return _walked(levels), exact

    def _add(
        self, known: dict[int, _Done], done: int, state: _Done, call: int, weigh: Callable[[Cost, int], Cost]
    ) -> None:
        now = done | 1 << call
        during = state.live + sum(t.bytes for t in self.uses[call] if not t.given and not t.users & done)
        cost = weigh(state.cost, during)
        if now in known and known[now].cost <= cost:
            return
        after = during - sum(t.bytes for t in self.uses[call] if not t.kept and not t.users & ~now)
        freed = sum(1 << j for j in self.behind[call] if not self.before[j] & ~now)
        known[now] = _Done(cost, call, after, (state.ready & ~(1 << call)) | freed)

    def during(self, order: tuple[int, ...]) -> list[int]:
        """Bytes live during each call of an order."""
        result, done, state = [], 0, self.start
        for call in order:
            known: dict[int, _Done] = {}
            self._add(known, done, state, call, lambda _, live: (live, 0))
            done |= 1 << call
            state = known[done]
            result.append(state.cost[0])
        return result

    def peak(self, order: tuple[int, ...]) -> int:
        return max(self.during(order), default=0)

    def beyond(self, order: tuple[int, ...], l1: int) -> int:
        return sum(max(0, live - l1) for live in self.during(order))


def _tensors(graph: FusedGraph) -> list[_Tensor]:
    lives = activation_lives(graph)
    users = dict.fromkeys((v.root for v in lives), 0)
    for i, call in enumerate(graph.calls):
        for _, name in (*call.operands, *call.results):
            root = graph.root(name)
            if root in users:
                users[root] |= 1 << i
    inputs, outputs = ({graph.root(n) for n in names} for names in (graph.inputs, graph.outputs))
    return [_Tensor(v.bytes, users[v.root], v.root in inputs, v.root in outputs) for v in lives]


def _walked(levels: list[dict[int, _Done]]) -> tuple[int, ...]:
    """The calls from the first level to the one set of the last, of which each names its last call."""
    order = []
    done = (1 << (len(levels) - 1)) - 1
    for level in reversed(levels[1:]):
        order.append(level[done].last)
        done &= ~(1 << order[-1])
    return tuple(reversed(order))


def _bits(mask: int) -> list[int]:
    result = []
    while mask:
        low = mask & -mask
        result.append(low.bit_length() - 1)
        mask ^= low
    return result
