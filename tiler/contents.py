"""What lies in L3 and in L2 over a run, in the words of `Schedule`: packed constants, residencies, the way between."""

from __future__ import annotations

from tiler.bound import Packing
from tiler.bundles import tiles_of
from tiler.fetching import Load
from tiler.schedule import PackedConstant, PackedTiles, Residency, Transfer
from tiler.settled import Settled
from tiler.timeline import Fetch, commands_of


def packed(s: Settled, pack: Packing) -> PackedConstant:
    """A constant, or several that come together, with its places in L3 and L2."""
    cold, l2 = s.deep.cold[pack.root], s.in_l2(pack.root)
    parts = _parts(s, pack) if pack.parts else ()
    return PackedConstant(pack.root, pack.buffer, pack.order, pack.dims, pack.bytes, cold, l2, parts)


def _parts(s: Settled, pack: Packing) -> tuple[PackedTiles, ...]:
    """Of constants that come together."""
    p = next(p for p in s.homes.picked if pack in p.bound.packings)
    b = next(b for b in p.choice.bundles if p.bound.operands[b.lead].root == pack.root)
    operands = [p.bound.operands[i] for i in b.operands]
    return tuple(
        PackedTiles(part.buffer, part.order, part.dims, o.extent, *tiles_of(p.bound, b, o, offset))
        for part, o, offset in zip(pack.parts, operands, b.offsets, strict=True)
    )


def residencies(s: Settled) -> tuple[Residency, ...]:
    """In L2: constants that stay, pieces of those that pass, activations."""
    end = max(len(s.options) - 1, 0)
    whole = [Residency(r, o, s.constants[r].bytes, 0, end) for r, o in s.homes.resident.items()]
    lives = [Residency(v.root, s.homes.activations[v.root], v.bytes, v.first, v.last) for v in s.homed]
    return (*whole, *(_passing(s, i) for i in range(len(s.homes.passing.pieces))), *lives)


def _passing(s: Settled, number: int) -> Residency:
    """A piece while its place is its own."""
    plan = s.homes.passing
    piece = plan.pieces[number]
    first, first_step = _step(s, plan.since[number])
    last, last_step = _step(s, piece.free - 1)
    size = min(piece.bytes, s.constants[piece.root].bytes - piece.begin)
    return Residency(piece.root, plan.places[number], size, first, last, first_step, last_step)


def _step(s: Settled, step: int) -> tuple[int, int]:
    """The call and its step of a step of the run."""
    stretch = next(x for x in s.homes.stretches if step < x.end)
    return stretch.first, step - stretch.begin


def transfers(s: Settled) -> tuple[Transfer, ...]:
    """From L3 to L2, when opening and in every run, in the order in which they are started."""
    opening = [
        Transfer((r,), o, s.deep.cold[r], size, -1, 0, _commands(s, size))
        for r, o in s.homes.resident.items()
        for size in (s.constants[r].bytes,)
    ]
    return (*opening, *(_transfer(s, x, f) for x, f in zip(s.homes.passing.loads, s.ahead.fetches, strict=True)))


def _transfer(s: Settled, load: Load, fetch: Fetch) -> Transfer:
    pieces = s.homes.passing.pieces[load.first : load.last + 1]
    (start, start_step), (wait, wait_step) = _step(s, fetch.start), _step(s, fetch.wait)
    return Transfer(
        roots=tuple(dict.fromkeys(p.root for p in pieces)),
        l2=load.l2,
        l3=s.deep.cold[pieces[0].root] + pieces[0].begin,
        bytes=fetch.bytes,
        start=start,
        wait=wait,
        commands=_commands(s, fetch.bytes),
        start_step=start_step,
        wait_step=wait_step,
    )


def _commands(s: Settled, size: int) -> int:
    return commands_of(size, s.target.hops["l3_l2"])
