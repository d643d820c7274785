"""Constants that one command brings: those of a call that lie side by side in L2 and in L1.

Chosen when addresses stand. Between two of them there may be what alignment leaves, less than 16 bytes, copied along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiler.choice import CallLayout, Choice
from tiler.options import Picked
from tiler.placement import ALIGNMENT
from tiler.target import Hop
from tiler.timeline import commands_of


@dataclass(frozen=True, slots=True)
class Join:
    """Operands of one call, by position, copied together: `bytes` from the first one's on, in so many `commands`."""

    operands: tuple[int, ...]
    bytes: int
    commands: int


def joins(
    picked: Picked, layout: CallLayout, far: Mapping[str, int], hop: Hop, exact: bool = False
) -> tuple[Join, ...]:
    """What a call's constants can be joined to; `far` are offsets in L2 by root, of what is copied from there. With
    `exact` no byte more may be copied."""
    runs: list[list[int]] = []
    for k in _whole(picked, far):
        if runs and _follows(picked, layout, far, runs[-1][-1], k, 1 if exact else ALIGNMENT):
            runs[-1].append(k)
        else:
            runs.append([k])
    return tuple(_join(picked, layout, run, hop) for run in runs if len(run) > 1)


def saved(join: Join, choice: Choice, hop: Hop, waits: bool) -> float:
    """Cycles of issuing and, where the call `waits` for its constants, waiting that one copy in place of several takes
    off."""
    issued = (sum(choice.transfers[k]["l2_l1"] for k in join.operands) - join.commands) * hop.start
    return issued + (sum(choice.first[k] for k in join.operands) - first(join, hop) if waits else 0)


def first(join: Join, hop: Hop) -> float:
    """Cycles of waiting for the copy."""
    return hop.latency + join.bytes / hop.bytes_per_cycle


def _whole(picked: Picked, far: Mapping[str, int]) -> Sequence[int]:
    """Constants copied once, whole, to one buffer, that no bundle brings."""
    c = picked.choice
    return [
        k
        for k, o in enumerate(picked.bound.operands)
        if o.role == "const"
        and o.root in far
        and c.depth[k] == 0
        and c.tile_bytes[k]
        and not c.double[k]
        and c.bundle(k) is None
        and c.tile_bytes[k] == c.bytes[k]["l2_l1"] == _packed(picked, o.root)
    ]


def _packed(picked: Picked, root: str) -> int:
    return next((p.bytes for p in picked.bound.packings if p.root == root), 0)


def _follows(picked: Picked, layout: CallLayout, far: Mapping[str, int], a: int, b: int, alignment: int) -> bool:
    """Whether b lies right behind a, on both sides."""
    step = -(-picked.choice.tile_bytes[a] // alignment) * alignment
    operands = picked.bound.operands
    near = layout.buffers[b][0] - layout.buffers[a][0]
    return bool(near == step == far[operands[b].root] - far[operands[a].root])


def _join(picked: Picked, layout: CallLayout, run: Sequence[int], hop: Hop) -> Join:
    end = layout.buffers[run[-1]][0] + picked.choice.tile_bytes[run[-1]]
    size = end - layout.buffers[run[0]][0]
    return Join(tuple(run), size, commands_of(size, hop))
