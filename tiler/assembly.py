"""The schedule put together: what was decided, in the words of `Schedule`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fusion_engine.diagnostics import counted
from tiler.bounds import call_bytes, network_bounds
from tiler.call_plans import call_plan
from tiler.contents import packed, residencies, transfers
from tiler.fused import groups
from tiler.liveness import most_live
from tiler.rolling import RingPlan
from tiler.schedule import Bounds, CallPlan, Residency, Ring, Roll, Schedule, Transfer
from tiler.settled import Settled
from tiler.tables import tables_of
from tiler.timeline import timeline


def assemble(s: Settled) -> Schedule:
    """The schedule of what is settled. Raises GapFuseError where L3 is too small."""
    calls = tuple(call_plan(s, i) for i in range(len(s.homes.picked)))
    moved, stalls = transfers(s), _stalls(s)
    return Schedule(
        network=s.graph.name,
        target=s.target.name,
        budgets={name: level.budget for name, level in s.target.levels.items()},
        calls=calls,
        constants=tuple(packed(s, p) for p in s.constants.values()),
        residencies=residencies(s),
        stays=tuple(Residency(v.root, s.near.stays[v.root], v.bytes, v.first, v.last) for v in s.stays.lives),
        l3_homes=s.deep.homes,
        transfers=moved,
        peaks={"l1": max((c.l1_bytes for c in calls), default=0), "l2": s.homes.peak, "l3": s.deep.end},
        activations=most_live(s.homed, len(calls)),
        tables=tables_of(s.ahead.fetches, s.homes.stretches, s.homes.tables.places),
        bytes={h: _bytes(calls, moved, h) for h in s.target.hops},
        transfer_count={h: _commands(calls, moved, h) for h in s.target.hops},
        compute_cycles=sum(c.compute_cycles for c in calls),
        total_cycles=sum(c.total_cycles for c in calls) + stalls,
        bounds=_bounds(s),
        groups=groups(s.graph, s.homes.picked, s.stays.lives, s.stays.spans, s.stays.inner),
        rolls=_rolls(s),
        gap=s.memory.gap(s.options[0].objective.cycles * _uncounted(s)),
        notes=(*s.target.beyond(), *_notes(s, stalls)),
    )


def _stalls(s: Settled) -> int:
    """Cycles of starting copies from L3 and waiting for them."""
    stretches = [replace(x, cycles=sum(s.ahead.cycles[x.first : x.last + 1])) for x in s.homes.stretches]
    end = timeline(stretches, s.ahead.fetches, s.target.hops["l3_l2"]).end
    return round(end) - sum(s.ahead.cycles)


def _bytes(calls: Sequence[CallPlan], moved: Sequence[Transfer], hop: str) -> int:
    """Of one run: what opening brings from L3 is not among them."""
    running = sum(t.bytes for t in moved if t.start >= 0) if hop == "l3_l2" else 0
    return running + sum(o.bytes.get(hop, 0) for c in calls for o in c.operands)


def _commands(calls: Sequence[CallPlan], moved: Sequence[Transfer], hop: str) -> int:
    running = sum(t.commands for t in moved if t.start >= 0) if hop == "l3_l2" else 0
    return running + sum(o.transfers.get(hop, 0) for c in calls for o in c.operands)


def _bounds(s: Settled) -> Bounds:
    once = sum(call_bytes(s.graph, p.bound) for p in s.homes.picked)
    return network_bounds(s.graph, s.options, once, s.lives, s.target, s.memory.kept)


def _uncounted(s: Settled) -> float:
    """Cycles that first copies take although the choice did not count on them, where L3 changed no tiling."""
    total, passing = 0.0, {p.root for p in s.homes.passing.pieces}
    for first, tiling in s.stays.tilings.items():
        roll, picked = s.stays.rolls.get(first), s.homes.picked[first]
        if not passing.isdisjoint(o.root for o in picked.bound.operands):
            continue
        if roll is not None or picked.choice.total_cycles == tiling.total:
            total += sum(s.ahead.cycles[first : first + (1 if roll is None else len(roll.calls))]) - tiling.cycles
    return total


def _rolls(s: Settled) -> tuple[Roll, ...]:
    return tuple(
        Roll(
            first,
            first + len(plan.calls) - 1,
            plan.steps.step,
            plan.steps.count,
            tuple((c.axis, c.unit, c.height) for c in plan.calls),
            tuple(_ring(r, s.near.rings) for r in plan.rings),
        )
        for first, plan in sorted(s.stays.rolls.items())
    )


def _ring(r: RingPlan, at: Mapping[str, int]) -> Ring:
    return Ring(r.root, at[r.root], r.rows, r.row_bytes, r.height, r.every, r.again)


def _notes(s: Settled, stalls: int) -> Iterator[str]:
    """What of the network L2 does not hold, and what that costs."""
    whole, streamed = counted(len(s.constants), "constant"), sum(s.in_l2(r) is None for r in s.homes.constants)
    if s.pieces:
        yield f"fetched from L3 in every run: {len(s.pieces)} of {whole}, L2 does not hold all"
    if streamed:
        yield f"streamed from L3 tile by tile, in the calls' own cycles: {streamed} of {whole}"
    if s.homes.spilled:
        yield f"L2 is too small for these activations, they lie in L3: {', '.join(s.homes.spilled)}"
    if stalls:
        yield (
            f"beside the calls' own cycles {stalls:,} start copies from L3 and wait for them: with these tiles the run "
            f"is at most {100 * (s.homes.cycles / s.homes.bound - 1):.1f} % above the least"
        )
