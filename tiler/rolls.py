"""The rolled groups of one network, priced when asked for, and a chosen one as the picks of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from fusion_engine.diagnostics import counted
from fusion_engine.graph import FusedGraph
from tiler.again import remade
from tiler.bundles import bundled, whole
from tiler.chains import chains
from tiler.choice import CallLayout, Choice
from tiler.frontier import Frontier, empty, frontier
from tiler.objective import PARTS, Objective
from tiler.options import CallOptions, Picked
from tiler.roll_plans import RollPlan, roll_plans
from tiler.rolling import RollSteps
from tiler.row_calls import RollCall, roll_call
from tiler.target import Target

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # rows of the last result per step that are tried, beside all of them


class Rolls:
    """Every group worth rolling by its first call (`lasts`)."""

    def __init__(self, graph: FusedGraph, options: Sequence[CallOptions], target: Target, objective: Objective) -> None:
        self.target, self.objective = target, objective
        self.calls = [_first(graph, o) for o in options]
        self.lasts = {
            first: fitting
            for first, lasts in chains(graph, self.calls, target.budget("l1")).items()
            if (fitting := self._fitting(first, lasts))
        }
        self._memo: dict[tuple[int, int, frozenset[str]], tuple[Frontier, list[RollPlan]]] = {}

    def _fitting(self, first: int, lasts: Sequence[int]) -> list[int]:
        """Groups that fit L1 a row at a time with all tensors around them elsewhere in it; a longer one takes more."""
        result = []
        for last in lasts:
            calls = tuple(c for c in self.calls[first : last + 1] if c is not None)
            around = frozenset(o.root for c in calls for o in c.bound.operands if o.role != "const")
            if RollSteps(calls, 1, around, self.target).least_bytes > self.target.budget("l1"):
                break
            result.append(last)
        return result

    def out(self, last: int) -> str:
        """The root that a group ending here leaves."""
        call = self.calls[last]
        assert call is not None
        return call.out.root

    def inner(self, first: int, last: int) -> frozenset[str]:
        """The roots that such a group makes and reads by rows."""
        return frozenset(c.out.root for c in self.calls[first:last] if c is not None)

    def walked(self, first: int, last: int) -> frozenset[str]:
        """Roots that a group can read and write where they stay."""
        used = [(c, o) for c in self.calls[first : last + 1] if c is not None for o in c.bound.operands]
        return frozenset(o.root for _, o in used) - {o.root for c, o in used if not c.walks(o)}

    def frontier(self, first: int, last: int, stays: frozenset[str]) -> Frontier:
        """What nothing beats for each L1, over the rows made per step; an id is the number of the plan."""
        return self._weighed(first, last, stays)[0]

    def plan(self, first: int, last: int, stays: frozenset[str], number: int) -> RollPlan:
        return self._weighed(first, last, stays)[1][number]

    def _weighed(self, first: int, last: int, stays: frozenset[str]) -> tuple[Frontier, list[RollPlan]]:
        key = first, last, stays
        if key not in self._memo:
            self._memo[key] = self._weigh(first, last, stays)
        return self._memo[key]

    def _weigh(self, first: int, last: int, stays: frozenset[str]) -> tuple[Frontier, list[RollPlan]]:
        calls = tuple(c for c in self.calls[first : last + 1] if c is not None)
        plans: list[RollPlan] = []
        if any(o.root in stays and not c.walks(o) for c in calls for o in c.bound.operands):
            return empty(PARTS, 1), plans
        height = calls[-1].height
        for step in (*(s for s in STEPS if s < height), height):
            found = roll_plans(RollSteps(calls, step, stays, self.target), self.target.budget("l1"))
            if not found:
                break
            plans.extend(found)
        kept = self._unbeaten(plans)
        for steps in {id(p.steps): p.steps for p in plans}.values():
            if self._may_gain(steps, kept):
                plans.extend(p for s in remade(steps) for p in roll_plans(s, self.target.budget("l1")))
        return self._unbeaten(plans), plans

    def _unbeaten(self, plans: Sequence[RollPlan]) -> Frontier:
        if not plans:
            return empty(PARTS, 1)
        sizes = np.array([p.l1_bytes for p in plans], np.int64)
        keys = np.array([self._key(p) for p in plans], float)
        return frontier(sizes, keys, np.arange(len(plans)).reshape(-1, 1))

    def _may_gain(self, steps: RollSteps, kept: Frontier) -> bool:
        """Whether rows made again could beat all plans that keep them: they take no less L1, copying and computing, so
        at best they save all that is moved down in the lowest rings."""
        at = kept.at(steps.least_bytes)
        return at is not None and self._key(RollPlan(steps, ())) < tuple(kept.keys[at].tolist())

    def _key(self, plan: RollPlan) -> tuple[float, ...]:
        o, (cycles, moved, transfers, tiles) = self.objective, plan.key
        return o.cycles * cycles + o.near * moved + o.tiles * tiles, cycles, moved, transfers


def _first(graph: FusedGraph, options: CallOptions) -> RollCall | None:
    """The quickest implementation that rolls."""
    found = next((r for b in options.bound if (r := roll_call(graph, b)) is not None), None)
    if found is None:
        return None
    exact, limit = not options.objective.cycles, options.target.hops["l2_l1"].max_bytes
    return replace(found, bundle=whole(found.bound, exact, limit))


def roll_picks(plan: RollPlan) -> list[Picked]:
    """Each call of a rolled group as its choice: no loops of its own, one tile a step."""
    choices = [_choice(plan, i) for i in range(len(plan.calls))]
    return [Picked(bundled(c.bound, x), x, _notes(plan)) for c, x in zip(plan.calls, choices, strict=True)]


def _notes(plan: RollPlan) -> tuple[str, ...]:
    if plan.steps.count == 1:
        return ("one after the other in L1: what a call reads from L2 arrives while those before it compute",)
    again = [r.root for r in plan.rings if r.again]
    halos = f"; rows that steps share are made again of {', '.join(again)}" if again else ""
    steps, rows = counted(plan.steps.count, "step"), counted(plan.steps.step, "row")
    return (f"rolled: {steps} of {rows} of the group's result{halos}",)


def _choice(plan: RollPlan, number: int) -> Choice:
    steps, operands = plan.steps, range(len(plan.calls[number].bound.operands))
    moves = steps.moves[number]
    compute = plan.compute(number)
    return Choice(
        loops=(),
        depth=(0,) * len(operands),
        double=(False,) * len(operands),
        halved=(False,) * len(operands),
        tile_bytes=tuple(steps.tile_bytes(number, at) for at in operands),
        bytes=tuple({"l2_l1": 0 if m is None else m.total} for m in moves),
        transfers=tuple({"l2_l1": 0 if m is None else m.all_commands} for m in moves),
        scratch=steps.scratch(number),
        accumulator=0,
        tiles=steps.tiles(number),
        l1_bytes=plan.l1_bytes,
        stage_bytes=0,
        compute_cycles=compute,
        moved_cycles=ceil(sum(sum(m.issue) + sum(m.cycles) for m in moves if m is not None)),
        total_cycles=compute + plan.exposed(number),
        bundles=() if (b := plan.calls[number].bundle) is None else (b,),
    )


def roll_layout(plan: RollPlan, start: int) -> tuple[list[int], list[CallLayout]]:
    """Offsets of the rings (of each call's result but the last's), and every call's buffers, from `start` on."""
    at, rings = start, []
    for ring in plan.rings:
        rings.append(at)
        at += _up(ring.rows * ring.row_bytes)
    scratch_at = at
    at += max(plan.steps.scratch_bytes(i) for i in range(len(plan.calls)))
    layouts = []
    for i, c in enumerate(plan.calls):
        buffers: list[tuple[int, ...]] = []
        for moves in plan.steps.moves[i]:
            size = 0 if moves is None else _up(moves.tile)
            buffers.append((at,) if size else ())
            at += size
        if c.bundle is not None:
            share = buffers[c.bundle.lead][0]
            for operand, offset in zip(c.bundle.operands, c.bundle.offsets, strict=True):
                buffers[operand] = (share + offset,)
        layouts.append(CallLayout(tuple(buffers), _scratch(plan, i, scratch_at), None))
    return rings, layouts


def _scratch(plan: RollPlan, number: int, at: int) -> dict[str, tuple[int, int]]:
    result = {}
    sizes = plan.steps.scratch(number)
    for s in plan.calls[number].bound.scratch:
        result[s.name] = at, sizes[s.name]
        at += sizes[s.name] * (plan.steps.target.cores if s.per == "core" else 1)
    return result


def _up(size: int) -> int:
    return -(-size // 16) * 16
