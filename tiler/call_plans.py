"""One call of the schedule: its loops, and for each operand where it lies and how its tiles travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tiler.bounds import call_bytes
from tiler.choice import Bundle
from tiler.joining import Join
from tiler.options import Picked
from tiler.schedule import CallPlan, Loop, OperandPlan, Shares, Trailing
from tiler.settled import Settled


def call_plan(s: Settled, number: int) -> CallPlan:
    """The plan of the call with this number."""
    p = s.homes.picked[number]
    layout = s.ahead.layouts[number]
    return CallPlan(
        call=p.bound.call,
        kernel=p.bound.kernel,
        implementation=p.bound.implementation,
        axes=p.bound.extents,
        loops=_loops(p, number in s.near.downwards),
        operands=tuple(_operand(s, number, i) for i in range(len(p.bound.operands))),
        attrs=p.bound.attrs,
        scratch=layout.scratch,
        accumulator=layout.accumulator,
        tiles=p.choice.tiles,
        l1_bytes=s.ahead.ends[number],
        compute_cycles=p.choice.compute_cycles,
        moved_cycles=p.choice.moved_cycles,
        total_cycles=s.ahead.cycles[number],
        bound_bytes={"l2_l1": call_bytes(s.graph, p.bound, s.stays.roots | s.stays.inner), "l3_l2": 0},
        notes=p.notes,
        trailing=_trailing(s, p),
    )


def _loops(p: Picked, downwards: bool) -> tuple[Loop, ...]:
    extents = p.bound.extents
    return tuple(Loop(a, extents[a], tile, i == 0 and downwards) for i, (a, tile) in enumerate(p.choice.loops))


def _trailing(s: Settled, p: Picked) -> Trailing | None:
    if p.choice.trail is None:
        return None
    x, y = (p.bound.operands[i] for i in (p.choice.trail.input, p.choice.trail.result))
    spans = [(s.near.stays[o.root], prod(o.extent) * o.itemsize) for o in (x, y)]
    common = min(at + n for at, n in spans) - max(at for at, _ in spans)
    return Trailing(x.name, y.name, common) if common > 0 else None


def _operand(s: Settled, number: int, i: int) -> OperandPlan:
    choice, root = s.homes.picked[number].choice, s.homes.picked[number].bound.operands[i].root
    if root in s.near.rings:
        return replace(_in_l1(s, number, i, "ring", s.near.rings[root]), depth=0)
    if root in s.near.stays:
        return _in_l1(s, number, i, "l1", s.near.stays[root])
    bundle = choice.bundle(i)
    if bundle is not None:
        return _bundled(s, number, i, bundle)
    join = next((j for j in s.joined[number] if i in j.operands), None)
    copied = _copied(s, number, i)
    return copied if join is None else _joined(s, number, i, join, copied)


def _in_l1(s: Settled, number: int, i: int, level: str, at: int) -> OperandPlan:
    """Of a tensor that stays, or rows of it."""
    p = s.homes.picked[number]
    moved = p.choice.bytes[i], p.choice.transfers[i]
    return OperandPlan(p.bound.operands[i], p.choice.depth[i], (), 0, level, at, (), *moved)


def _copied(s: Settled, number: int, i: int) -> OperandPlan:
    """Of one that is copied by commands of its own."""
    p = s.homes.picked[number]
    o, choice = p.bound.operands[i], p.choice
    stage = s.homes.stages[number].get(o.name, ())
    return OperandPlan(
        operand=o,
        depth=choice.depth[i],
        l1=s.ahead.layouts[number].buffers[i],
        tile_bytes=choice.tile_bytes[i],
        level="l3" if stage else "l2",
        far={**s.deep.cold, **s.deep.homes}[o.root] if stage else s.far(o.root),
        stage=stage,
        bytes=choice.bytes[i],
        transfers=choice.transfers[i],
        ahead=i in s.ahead.started[number],
        places=s.places(o.root),
        l2_tile=choice.l2_tiles[i] if stage else None,
    )


def _joined(s: Settled, number: int, i: int, join: Join, copied: OperandPlan) -> OperandPlan:
    """Of one that comes with others that lie beside it, or brings them."""
    first = join.operands[0]
    bytes_, transfers = _shares(join, i)
    span, lead = (join.bytes, "") if i == first else (0, s.homes.picked[number].bound.operands[first].name)
    return replace(copied, bytes=bytes_, transfers=transfers, span=span, lead=lead)


def _shares(join: Join, operand: int) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Bytes and transfers of one of the operands that come together: all the first one's."""
    leads = operand == join.operands[0]
    return {"l2_l1": join.bytes if leads else 0}, {"l2_l1": join.commands if leads else 0}


def _bundled(s: Settled, number: int, i: int, b: Bundle) -> OperandPlan:
    """Of one whose tiles lie between those of others."""
    p = s.homes.picked[number]
    o, choice = p.bound.operands[i], p.choice
    names = tuple(p.bound.operands[k].name for k in b.operands)
    leads, offset = i == b.lead, b.offsets[b.operands.index(i)]
    return OperandPlan(
        operand=o,
        depth=choice.depth[i],
        l1=s.ahead.layouts[number].buffers[i],
        tile_bytes=choice.tile_bytes[i],
        level="l2",
        far=s.far(o.root) + offset,
        stage=(),
        bytes=choice.bytes[i],
        transfers=choice.transfers[i],
        ahead=i in s.ahead.started[number],
        span=b.offsets[-1] + choice.tile_bytes[b.operands[-1]] if leads else 0,
        lead="" if leads else names[0],
        shares=Shares(names, b.offsets, tuple(a for a, _ in b.axes), b.pitch) if leads else None,
        places=tuple(at + offset for at in s.places(o.root)),
    )
