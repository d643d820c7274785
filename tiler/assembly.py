"""The schedule put together: what was decided, in the words of `Schedule`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.graph import FusedGraph
from tiler.ahead import Ahead
from tiler.bound import Packing
from tiler.bounds import call_bytes, network_bounds
from tiler.bundles import tiles_of
from tiler.choice import Bundle
from tiler.cost import align16
from tiler.fetching import Load
from tiler.fused import groups
from tiler.joining import Join
from tiler.liveness import Life, constant_outputs, most_live
from tiler.memory import Memory
from tiler.options import CallOptions, Picked
from tiler.pieces import roots_in_l3
from tiler.placement import Block, place
from tiler.rolling import RingPlan
from tiler.schedule import (
    CallPlan,
    Group,
    Loop,
    OperandPlan,
    PackedConstant,
    PackedTiles,
    Residency,
    Ring,
    Roll,
    Schedule,
    Shares,
    Trailing,
    Transfer,
)
from tiler.stays import widened
from tiler.tables import tables_of
from tiler.target import Target
from tiler.timeline import Fetch, commands_of, timeline


def assemble(
    graph: FusedGraph,
    target: Target,
    options: Sequence[CallOptions],
    lives: Sequence[Life],
    memory: Memory,
    joined: Sequence[Sequence[Join]],
    ahead: Ahead,
) -> Schedule:
    """The schedule of what `memory` decided, what comes together and what starts early. Raises GapFuseError where L3
    is too small."""
    return _Assembly(graph, target, options, lives, memory, joined, ahead).schedule()


@dataclass(frozen=True)
class _DeepLayout:
    """Offsets in L3: the constants' image, then the spilled activations."""

    cold: Mapping[str, int]
    homes: Mapping[str, int]
    end: int


class _Assembly:
    def __init__(
        self,
        graph: FusedGraph,
        target: Target,
        options: Sequence[CallOptions],
        lives: Sequence[Life],
        memory: Memory,
        joined: Sequence[Sequence[Join]],
        ahead: Ahead,
    ) -> None:
        self.graph, self.target, self.options, self.lives = graph, target, options, lives
        self.memory, self.homes, self.near = memory, memory.homes, memory.near
        self.homed = [widened(v, memory.stays.spans) for v in lives if v.root in memory.homes.activations]  # in L2
        self.joined, self.ahead = joined, ahead
        self.constants = self._constants()
        self.pieces = self._pieces()
        self.deep = self._deep_layout()

    def schedule(self) -> Schedule:
        calls = tuple(self._call(i, p) for i, p in enumerate(self.homes.picked))
        transfers = self._transfers()
        bound_bytes = sum(call_bytes(self.graph, p.bound) for p in self.homes.picked)
        stalls = self._stalls()
        running = [t for t in transfers if t.start >= 0]
        return Schedule(
            network=self.graph.name,
            target=self.target.name,
            budgets={name: level.budget for name, level in self.target.levels.items()},
            calls=calls,
            constants=tuple(self._packed(p) for p in self.constants.values()),
            residencies=self._residencies(),
            stays=tuple(
                Residency(v.root, self.near.stays[v.root], v.bytes, v.first, v.last) for v in self.memory.stays.lives
            ),
            l3_homes=self.deep.homes,
            transfers=transfers,
            peaks={"l1": max((c.l1_bytes for c in calls), default=0), "l2": self.homes.peak, "l3": self.deep.end},
            activations=most_live(self.homed, len(calls)),
            tables=tables_of(self.ahead.fetches, self.homes.stretches, self.homes.tables.places),
            bytes={
                h: _total(calls, h, "bytes") + (sum(t.bytes for t in running) if h == "l3_l2" else 0)
                for h in self.target.hops
            },
            transfer_count={
                h: _total(calls, h, "transfers") + (sum(t.commands for t in running) if h == "l3_l2" else 0)
                for h in self.target.hops
            },
            compute_cycles=sum(c.compute_cycles for c in calls),
            total_cycles=sum(c.total_cycles for c in calls) + stalls,
            bounds=network_bounds(self.graph, self.options, bound_bytes, self.lives, self.target, self.memory.kept),
            groups=self._groups(),
            rolls=self._rolls(),
            gap=self.memory.gap(self.options[0].objective.cycles * self._uncounted()),
            notes=(*self.target.beyond(), *self._notes(stalls)),
        )

    def _stalls(self) -> int:
        """Cycles of starting copies from L3 and waiting for them."""
        stretches = [replace(s, cycles=sum(self.ahead.cycles[s.first : s.last + 1])) for s in self.homes.stretches]
        end = timeline(stretches, self.ahead.fetches, self.target.hops["l3_l2"]).end
        return round(end) - sum(self.ahead.cycles)

    def _uncounted(self) -> float:
        """Cycles that first copies take although the choice did not count on them, where L3 changed no tiling."""
        total, passing = 0.0, {p.root for p in self.homes.passing.pieces}
        for first, tiling in self.memory.stays.tilings.items():
            roll = self.memory.stays.rolls.get(first)
            read = {o.root for o in self.homes.picked[first].bound.operands}
            if read & passing:
                continue
            cycles = self.ahead.cycles[first : first + (1 if roll is None else len(roll.calls))]
            if roll is not None or self.homes.picked[first].choice.total_cycles == tiling.total:
                total += sum(cycles) - tiling.cycles
        return total

    # ---- constants and L3 ----

    def _constants(self) -> dict[str, Packing]:
        """Every packed constant, and constants that are outputs themselves: what stays, what passes, the rest."""
        homes = self.homes
        in_order = (*homes.resident, *roots_in_l3(homes.passing.pieces))
        result = {r: homes.constants[r] for r in in_order} | dict(homes.constants)
        for b in constant_outputs(self.graph):
            names = tuple(f"d{i}" for i in range(len(b.shape)))
            order = tuple(names[i] for i in b.storage_order)
            result.setdefault(b.name, Packing(b.name, b.name, names, order, b.nbytes))
        return result

    def _pieces(self) -> dict[str, list[int]]:
        """The numbers of the pieces of each constant that passes, by where they begin."""
        result: dict[str, list[int]] = {}
        for i, p in enumerate(self.homes.passing.pieces):
            result.setdefault(p.root, []).append(i)
        return result

    def _deep_layout(self) -> _DeepLayout:
        cold, at = {}, 0
        for root, pack in self.constants.items():
            cold[root] = at
            at += align16(pack.bytes)
        spilled = [Block(v.root, v.bytes, v.first, v.last) for v in self.lives if v.root in self.homes.spilled]
        placed = place(spilled, len(self.options)) if spilled else None
        homes = {b.name: at + o for b, o in zip(spilled, placed.offsets, strict=True)} if placed else {}
        end = at + (placed.peak if placed else 0)
        if end > self.target.budget("l3"):
            raise GapFuseError(
                Diagnostic(
                    f"L3 is too small: {at} bytes of constants and {end - at} of activations, "
                    f"{self.target.budget('l3')} are there",
                    help=f"the smallest L3 that would do is {end} bytes (--l3 {end})",
                )
            )
        return _DeepLayout(cold, homes, end)

    def _packed(self, pack: Packing) -> PackedConstant:
        l2 = self.homes.resident.get(pack.root)
        if l2 is None and pack.root in self.pieces:
            l2 = self.homes.passing.places[self.pieces[pack.root][0]]
        cold = self.deep.cold[pack.root]
        return PackedConstant(
            pack.root, pack.buffer, pack.order, pack.dims, pack.bytes, cold, l2, self._parts(pack) if pack.parts else ()
        )

    def _parts(self, pack: Packing) -> tuple[PackedTiles, ...]:
        """Of constants that come together."""
        p = next(p for p in self.homes.picked if pack in p.bound.packings)
        b = next(b for b in p.choice.bundles if p.bound.operands[b.lead].root == pack.root)
        operands = [p.bound.operands[i] for i in b.operands]
        return tuple(
            PackedTiles(part.buffer, part.order, part.dims, o.extent, *tiles_of(p.bound, b, o, offset))
            for part, o, offset in zip(pack.parts, operands, b.offsets, strict=True)
        )

    def _residencies(self) -> tuple[Residency, ...]:
        end = max(len(self.options) - 1, 0)
        whole = [Residency(r, o, self.constants[r].bytes, 0, end) for r, o in self.homes.resident.items()]
        lives = [Residency(v.root, self.homes.activations[v.root], v.bytes, v.first, v.last) for v in self.homed]
        return (*whole, *(self._passing(i) for i in range(len(self.homes.passing.pieces))), *lives)

    def _passing(self, i: int) -> Residency:
        """A piece while its place is its own."""
        plan = self.homes.passing
        piece = plan.pieces[i]
        first, first_step = self._step(plan.since[i])
        last, last_step = self._step(piece.free - 1)
        size = min(piece.bytes, self.constants[piece.root].bytes - piece.begin)
        return Residency(piece.root, plan.places[i], size, first, last, first_step, last_step)

    def _step(self, step: int) -> tuple[int, int]:
        """The call and its step of a step of the run."""
        s = next(s for s in self.homes.stretches if step < s.end)
        return s.first, step - s.begin

    def _transfers(self) -> tuple[Transfer, ...]:
        opening = [
            Transfer((r,), o, self.deep.cold[r], size, -1, 0, self._commands(size))
            for r, o in self.homes.resident.items()
            for size in (self.constants[r].bytes,)
        ]
        return (*opening, *map(self._transfer, self.homes.passing.loads, self.ahead.fetches))

    def _transfer(self, load: Load, fetch: Fetch) -> Transfer:
        pieces = self.homes.passing.pieces[load.first : load.last + 1]
        (start, start_step), (wait, wait_step) = self._step(fetch.start), self._step(fetch.wait)
        return Transfer(
            roots=tuple(dict.fromkeys(p.root for p in pieces)),
            l2=load.l2,
            l3=self.deep.cold[pieces[0].root] + pieces[0].begin,
            bytes=fetch.bytes,
            start=start,
            wait=wait,
            commands=self._commands(fetch.bytes),
            start_step=start_step,
            wait_step=wait_step,
        )

    def _commands(self, size: int) -> int:
        return commands_of(size, self.target.hops["l3_l2"])

    # ---- calls ----

    def _call(self, number: int, p: Picked) -> CallPlan:
        choice = p.choice
        extents = p.bound.extents
        layout = self.ahead.layouts[number]
        return CallPlan(
            call=p.bound.call,
            kernel=p.bound.kernel,
            implementation=p.bound.implementation,
            axes=extents,
            loops=tuple(
                Loop(axis, extents[axis], tile, i == 0 and number in self.near.downwards)
                for i, (axis, tile) in enumerate(choice.loops)
            ),
            operands=tuple(self._operand(number, p, i, layout.buffers[i]) for i in range(len(p.bound.operands))),
            attrs=p.bound.attrs,
            scratch=layout.scratch,
            accumulator=layout.accumulator,
            tiles=choice.tiles,
            l1_bytes=self.ahead.ends[number],
            compute_cycles=choice.compute_cycles,
            moved_cycles=choice.moved_cycles,
            total_cycles=self.ahead.cycles[number],
            bound_bytes={
                "l2_l1": call_bytes(self.graph, p.bound, self.memory.stays.roots | self.memory.stays.inner),
                "l3_l2": 0,
            },
            notes=p.notes,
            trailing=self._trailing(p),
        )

    def _trailing(self, p: Picked) -> Trailing | None:
        if p.choice.trail is None:
            return None
        x, y = (p.bound.operands[i] for i in (p.choice.trail.input, p.choice.trail.result))
        spans = [(self.near.stays[o.root], prod(o.extent) * o.itemsize) for o in (x, y)]
        common = min(at + n for at, n in spans) - max(at for at, _ in spans)
        return Trailing(x.name, y.name, common) if common > 0 else None

    def _operand(self, number: int, p: Picked, i: int, l1: tuple[int, ...]) -> OperandPlan:
        o, choice = p.bound.operands[i], p.choice
        if o.root in self.near.rings:
            return OperandPlan(o, 0, (), 0, "ring", self.near.rings[o.root], (), choice.bytes[i], choice.transfers[i])
        if o.root in self.near.stays:
            return OperandPlan(
                o, choice.depth[i], (), 0, "l1", self.near.stays[o.root], (), choice.bytes[i], choice.transfers[i]
            )
        bundle = choice.bundle(i)
        if bundle is not None:
            return self._bundled(number, p, i, l1, bundle)
        stage = self.homes.stages[number].get(o.name, ())
        join = next((j for j in self.joined[number] if i in j.operands), None)
        moved = _shares(join, i) if join is not None else (choice.bytes[i], choice.transfers[i])
        return OperandPlan(
            operand=o,
            depth=choice.depth[i],
            l1=l1,
            tile_bytes=choice.tile_bytes[i],
            level="l3" if stage else "l2",
            far=self._far(o.root) if not stage else {**self.deep.cold, **self.deep.homes}[o.root],
            stage=stage,
            bytes=moved[0],
            transfers=moved[1],
            ahead=i in self.ahead.started[number],
            span=join.bytes if join is not None and i == join.operands[0] else 0,
            lead=p.bound.operands[join.operands[0]].name if join is not None and i != join.operands[0] else "",
            places=self._places(o.root),
        )

    def _bundled(self, number: int, p: Picked, i: int, l1: tuple[int, ...], b: Bundle) -> OperandPlan:
        o, choice = p.bound.operands[i], p.choice
        names = tuple(p.bound.operands[k].name for k in b.operands)
        leads, offset = i == b.lead, b.offsets[b.operands.index(i)]
        return OperandPlan(
            operand=o,
            depth=choice.depth[i],
            l1=l1,
            tile_bytes=choice.tile_bytes[i],
            level="l2",
            far=self._far(o.root) + offset,
            stage=(),
            bytes=choice.bytes[i],
            transfers=choice.transfers[i],
            ahead=i in self.ahead.started[number],
            span=b.offsets[-1] + choice.tile_bytes[b.operands[-1]] if leads else 0,
            lead="" if leads else names[0],
            shares=Shares(names, b.offsets, tuple(a for a, _ in b.axes), b.pitch) if leads else None,
            places=tuple(at + offset for at in self._places(o.root)),
        )

    def _far(self, root: str) -> int:
        """The root's offset in L2."""
        if root in self.homes.resident:
            return self.homes.resident[root]
        if root in self.pieces:
            return self.homes.passing.places[self.pieces[root][0]]
        return self.homes.activations[root]

    def _places(self, root: str) -> tuple[int, ...]:
        """For each piece of a constant, where the whole would begin; nothing where that is always the same."""
        plan = self.homes.passing
        found = tuple(plan.places[i] - plan.pieces[i].begin for i in self.pieces.get(root, ()))
        return found if len(set(found)) > 1 else ()

    def _groups(self) -> tuple[Group, ...]:
        stays = self.memory.stays
        return groups(self.graph, self.homes.picked, stays.lives, stays.spans, stays.inner)

    def _rolls(self) -> tuple[Roll, ...]:
        return tuple(
            Roll(
                first,
                first + len(plan.calls) - 1,
                plan.steps.step,
                plan.steps.count,
                tuple((c.axis, c.unit, c.height) for c in plan.calls),
                tuple(map(self._ring, plan.rings)),
            )
            for first, plan in sorted(self.memory.stays.rolls.items())
        )

    def _ring(self, r: RingPlan) -> Ring:
        return Ring(r.root, self.near.rings[r.root], r.rows, r.row_bytes, r.height, r.every, r.again)

    def _notes(self, stalls: int) -> tuple[str, ...]:
        notes = []
        streamed = sum(self._packed(p).l2 is None for p in self.homes.constants.values())
        if self.pieces:
            notes.append(
                f"{len(self.pieces)} of {len(self.constants)} constants are fetched from L3 in every run: "
                f"L2 does not hold all"
            )
        if streamed:
            notes.append(f"{streamed} of {len(self.constants)} constants are streamed from L3 tile by tile")
        if self.homes.spilled:
            notes.append(f"L2 is too small for these activations, they lie in L3: {', '.join(self.homes.spilled)}")
        if stalls:
            notes.append(
                f"{stalls:,} cycles are spent starting copies from L3 and waiting for them: with these tiles the run "
                f"is at most {100 * (self.homes.cycles / self.homes.bound - 1):.1f} % above the least"
            )
        return tuple(notes)


def _shares(join: Join, operand: int) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Bytes and transfers of one of the operands that come together: all the first one's."""
    leads = operand == join.operands[0]
    return {"l2_l1": join.bytes if leads else 0}, {"l2_l1": join.commands if leads else 0}


def _total(calls: Sequence[CallPlan], hop: str, what: str) -> int:
    counts = [o.bytes if what == "bytes" else o.transfers for c in calls for o in c.operands]
    return sum(c.get(hop, 0) for c in counts)
