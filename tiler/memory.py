"""The memory of a network as a whole: what stays in L1, where everything else lives, and addresses for all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fusion_engine.graph import FusedGraph
from tiler.decision import check_l1, decide_homes, smallest_l2_of
from tiler.homes import Homes, StagedRollError, rolled_picks
from tiler.liveness import Life, input_roots
from tiler.near import NearPlan, gaps, place_near
from tiler.objective import Objective
from tiler.options import CallOptions, Picked, Where
from tiler.placement import ALIGNMENT
from tiler.rolls import Rolls
from tiler.stays import Stays, choose_stays
from tiler.target import Target

ROUNDS = 3  # times that the choice is made anew because some activations turned out to lie in L3


@dataclass(frozen=True)
class Memory:
    """What stays in L1 and the homes of the rest, with addresses in both.

    `gap` is how far the calls' cost may be above the least over all tilings and sets of staying tensors, as a
    fraction; None where that is not proven.
    """

    stays: Stays
    homes: Homes
    near: NearPlan
    gap: float | None


def decide_memory(
    graph: FusedGraph,
    options: Sequence[CallOptions],
    lives: Sequence[Life],
    target: Target,
    objective: Objective,
    fused: bool = True,
) -> Memory:
    """Not `fused`: nothing stays in L1 from call to call. Raises GapFuseError: L1 or L2 too small, and the smallest
    that would do."""
    check_l1(options, target.budget("l1"))
    if not fused:
        return _without_rolls((), options, lives, target)
    candidates = _candidates(graph, lives)
    rolls = Rolls(graph, options, target, objective)
    if rolls.lasts:
        try:
            found = _decide(candidates, options, lives, target, frozenset(), rolls)
            if not found.homes.spilled:
                return found
        except StagedRollError:
            pass  # L2 is so small that something of a rolled group lies in L3, tile by tile: without rolling then
    return _without_rolls(candidates, options, lives, target)


def _candidates(graph: FusedGraph, lives: Sequence[Life]) -> list[Life]:
    """Activations that may stay in L1: all but the graph's inputs and outputs."""
    ends = frozenset(input_roots(graph)) | {graph.storage(n).root for n in graph.outputs}
    return [v for v in lives if v.root not in ends]


def _without_rolls(
    candidates: Sequence[Life], options: Sequence[CallOptions], lives: Sequence[Life], target: Target
) -> Memory:
    best, staged = _decide(candidates, options, lives, target, frozenset()), frozenset[str]()
    for _ in range(ROUNDS):
        spilled = frozenset(best.homes.spilled)
        if spilled <= staged:
            break
        staged |= spilled
        other = _decide(candidates, options, lives, target, staged)
        if (other.homes.cycles, other.homes.moving) >= (best.homes.cycles, best.homes.moving):
            break
        best = other
    return best


def _decide(
    candidates: Sequence[Life],
    options: Sequence[CallOptions],
    lives: Sequence[Life],
    target: Target,
    staged: frozenset[str],
    rolls: Rolls | None = None,
) -> Memory:
    """`staged` activations are taken to lie in L3 where they do not stay."""
    aside = [0] * len(options)
    least: Stays | None = None
    while True:
        stays, near, least = _settle_near(candidates, options, target, staged, aside, least, rolls)
        homes = decide_homes(options, lives, stays, target)
        near = place_near(homes.picked, stays, target.budget("l1"), target.cores)
        if not any(near.lacking):
            return Memory(stays, homes, near, _gap(least, stays))
        _set_aside(aside, near)


def smallest_l2(
    graph: FusedGraph, options: Sequence[CallOptions], lives: Sequence[Life], target: Target, fused: bool = True
) -> int:
    """The least L2 that does with what stays in L1. Raises GapFuseError: L1 too small."""
    check_l1(options, target.budget("l1"))
    candidates = _candidates(graph, lives) if fused else ()
    stays, _, _ = _settle_near(candidates, options, target, frozenset(), [0] * len(options), None)
    return smallest_l2_of(options, lives, stays, target)


def _settle_near(
    candidates: Sequence[Life],
    options: Sequence[CallOptions],
    target: Target,
    staged: frozenset[str],
    aside: list[int],
    least: Stays | None,
    rolls: Rolls | None = None,
) -> tuple[Stays, NearPlan, Stays]:
    """What stays and where, all of it placed; `aside` grows until that is so. With it the first, cheapest choice."""
    while True:
        stays = choose_stays(options, candidates, target.budget("l1"), aside, staged, rolls)
        assert stays is not None, "every call fits by itself"
        least = least or stays
        near = _placed(options, stays, target, staged)
        if not any(near.lacking):
            return replace(stays, room=gaps(near, stays, target.budget("l1"))), near, least
        _set_aside(aside, near)


def _set_aside(aside: list[int], near: NearPlan) -> None:
    for i, lack in enumerate(near.lacking):
        aside[i] += -(-lack // ALIGNMENT) * ALIGNMENT


def _placed(options: Sequence[CallOptions], stays: Stays, target: Target, staged: frozenset[str]) -> NearPlan:
    """Places in L1 with the tilings that the choice was made for."""
    where = Where(staged, stays.roots)
    rolled = rolled_picks(stays)
    picked = [rolled.get(i) or o.pick(room, where) for i, (o, room) in enumerate(zip(options, stays.room, strict=True))]
    found = [p for p in picked if isinstance(p, Picked)]
    assert len(found) == len(options), "the choice was among tilings that fit"
    return place_near(found, stays, target.budget("l1"), target.cores)


def _gap(least: Stays, chosen: Stays) -> float | None:
    if not least.proven:
        return None
    return (chosen.cost[0] - least.cost[0]) / max(least.cost[0], 1.0)
