"""The memory of a network as a whole: what stays in L1, where everything else lives, and addresses for all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fusion_engine.graph import FusedGraph
from tiler.decision import LackingError, TooSmallError, check_l1, decide_homes
from tiler.homes import Homes, rolled_picks
from tiler.liveness import Life, end_lives
from tiler.near import TOGETHER, NearPlan, gaps, place_near
from tiler.objective import Objective
from tiler.options import CallOptions
from tiler.placement import ALIGNMENT
from tiler.rolls import Rolls
from tiler.stay_choice import choose_stays
from tiler.stays import Stays
from tiler.tails import Early
from tiler.target import Target

ROUNDS = 3  # times that the choice is made anew because some activations turned out to lie in L3


@dataclass(frozen=True)
class Memory:
    """What stays in L1 and the homes of the rest, with addresses in both.

    `cost` is that of the calls, `least` what no tilings and staying tensors get below (minimising L2: with the least
    activations in it). Minimising L2, `excess` is how far the activations in it may be above the least as a fraction,
    None where that is not proven.
    """

    stays: Stays
    homes: Homes
    near: NearPlan
    cost: float
    least: float
    excess: float | None = 0.0
    kept: int | None = None  # the least bytes of activations in L2 at once, where that is asked for and proven

    def gap(self, more: float) -> float | None:
        """How far the plan may be above the least, as a fraction, where the calls cost `more` than was counted on."""
        if self.excess is None or self.excess > 0:
            return self.excess
        return max(0.0, (self.cost + more - self.least) / max(self.least, 1.0))


@dataclass(frozen=True)
class _Network:
    """What a choice is made for."""

    options: Sequence[CallOptions]
    lives: Sequence[Life]
    candidates: Sequence[Life]  # that may stay
    target: Target
    early: Early  # what is counted on of first copies that start early
    most: Early  # and in the bound


def decide_memory(
    graph: FusedGraph,
    options: Sequence[CallOptions],
    lives: Sequence[Life],
    target: Target,
    objective: Objective,
    fused: bool = True,
    early: Early = Early.MOST,
    rolls: Rolls | None = None,
) -> Memory:
    """With `fused` off every call is by itself, all activations in L2; `rolls` are the graph's, if made already.
    Raises GapFuseError: L1 or L2 too small, and the smallest that would do."""
    check_l1(options, target.budget("l1"))
    most = Early.MOST if fused and len(options) <= TOGETHER else Early.NONE
    network = _network(graph, options, lives, target, fused, (early if fused else most, most))
    rolls = (rolls or Rolls(graph, options, target, objective)) if fused else None
    least_left = objective.memory == "l2"
    rolled = _rolled(network, rolls, least_left)
    if isinstance(rolled, Memory) and not rolled.homes.spilled:
        return rolled
    try:
        found = _without_rolls(network, least_left)
    except LackingError as e:
        if isinstance(rolled, Memory):
            return rolled
        raise _too_small(e, rolled) from e
    better = isinstance(rolled, Memory) and not least_left and _run(rolled) < _run(found)
    return rolled if isinstance(rolled, Memory) and better else found


def _too_small(plain: LackingError, rolled: LackingError | None) -> TooSmallError:
    """Of the two what less would do for; the rolled groups, which seldom need less, are asked second."""
    told = plain.too_small()
    other = None if rolled is None else rolled.below(told.least)
    return told if other is None else other


def _run(memory: Memory) -> tuple[int, int]:
    """What plans that use L3 are compared by: cycles and bytes of a run."""
    return memory.homes.cycles, memory.homes.moving


def _rolled(network: _Network, rolls: Rolls | None, least_left: bool) -> Memory | LackingError | None:
    """With rolled groups; None where there are none."""
    if rolls is None or not rolls.lasts:
        return None
    try:
        return _decide(network, frozenset(), rolls, least_left)
    except LackingError as e:  # also where something that they read or write would have to lie in L3
        return e


def _network(
    graph: FusedGraph,
    options: Sequence[CallOptions],
    lives: Sequence[Life],
    target: Target,
    fused: bool,
    early: tuple[Early, Early],
) -> _Network:
    ends = end_lives(graph, lives)
    return _Network(options, lives, [v for v in lives if fused and v not in ends], target, *early)


def _without_rolls(network: _Network, least_left: bool) -> Memory:
    best, staged = _decide(network, frozenset(), None, least_left), frozenset[str]()
    for _ in range(ROUNDS):
        spilled = frozenset(best.homes.spilled)
        if spilled <= staged:
            break
        staged |= spilled
        try:
            other = _decide(network, staged, None, least_left)
        except LackingError:
            break
        if _run(other) >= _run(best):
            break
        best = other
    return best


def _decide(network: _Network, staged: frozenset[str], rolls: Rolls | None, least_left: bool) -> Memory:
    """`staged` activations are taken to lie in L3 where they do not stay."""
    aside = [0] * len(network.options)
    least: Stays | None = None
    if network.early is not network.most:
        least = _choose(network, aside, staged, rolls, least_left, network.most)
    while True:
        stays, near, least = _settle_near(network, staged, aside, least, rolls, least_left)
        homes = decide_homes(network.options, network.lives, stays, network.target)
        near = place_near(homes.picked, stays, network.target.budget("l1"), network.target.cores)
        if not any(near.lacking):
            kept = least.left if least_left and least.proven else None
            excess = _excess(least, stays) if least_left else 0.0
            return Memory(stays, homes, near, stays.cost[0], least.cost[0] if least_left else least.least, excess, kept)
        _set_aside(aside, near)


def smallest_l2(
    graph: FusedGraph,
    options: Sequence[CallOptions],
    lives: Sequence[Life],
    target: Target,
    objective: Objective,
    fused: bool = True,
) -> int:
    """The least L2 for which `decide_memory` finds something. Raises GapFuseError: L1 too small."""
    tight = target.with_budgets(l2=1)
    try:
        decide_memory(graph, options, lives, tight, objective, fused)
    except TooSmallError as e:
        return e.least
    return 1


def _settle_near(
    network: _Network,
    staged: frozenset[str],
    aside: list[int],
    least: Stays | None,
    rolls: Rolls | None,
    least_left: bool,
) -> tuple[Stays, NearPlan, Stays]:
    """What stays and where, all of it placed; `aside` grows until that is so. With it the first, cheapest choice."""
    l1 = network.target.budget("l1")
    while True:
        stays = _choose(network, aside, staged, rolls, least_left, network.early)
        least = least or stays
        near = _placed(network.options, stays, network.target, staged)
        if not any(near.lacking):
            return replace(stays, room=gaps(near, stays, l1)), near, least
        _set_aside(aside, near)


def _choose(
    network: _Network, aside: list[int], staged: frozenset[str], rolls: Rolls | None, least_left: bool, early: Early
) -> Stays:
    l1 = network.target.budget("l1")
    stays = choose_stays(
        network.options, network.lives, network.candidates, l1, aside, staged, rolls, least_left, early
    )
    assert stays is not None, "every call fits by itself"
    return stays


def _set_aside(aside: list[int], near: NearPlan) -> None:
    for i, lack in enumerate(near.lacking):
        aside[i] += -(-lack // ALIGNMENT) * ALIGNMENT


def _placed(options: Sequence[CallOptions], stays: Stays, target: Target, staged: frozenset[str]) -> NearPlan:
    """Places in L1 with the tilings that the choice was made for."""
    rolled = rolled_picks(stays)
    picked = [rolled.get(i) or stays.pick(i, o, staged) for i, o in enumerate(options)]
    return place_near(picked, stays, target.budget("l1"), target.cores)


def _excess(least: Stays, chosen: Stays) -> float | None:
    """Of activations in L2."""
    return (chosen.left - least.left) / max(least.left, 1) if least.proven else None
