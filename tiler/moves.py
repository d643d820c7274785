"""Boxes to copy commands, by the rules of `gf_copy_box` (targets/common/gf_copy.c), so that counters equal the plan.

A box is dense on the near side and strided on the far side. Dims of extent 1 drop out; neighbouring dims that are
contiguous on both sides (outer pitch = extent * inner pitch) merge; a dim of pitch `item` becomes the run; the
innermost remaining dim is the strided one of a command (runs x run bytes, `pitch` apart) and each index of the outer
dims is a command of its own. A command holds at most `max_bytes`: as many runs as fit, or, where a run alone exceeds
it, pieces of that run. A hop with `dims` 1, a pitch above `max_pitch` or a negative one takes one command per run. An
empty box takes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class HopLimits:
    """What one command of a hop may be."""

    max_bytes: int = 2**32 - 1
    max_pitch: int = 2**31 - 1
    dims: int = 2


@dataclass(frozen=True, slots=True)
class MergedBox:
    """`outer` repetitions of `runs` runs of `run` bytes, `pitch` bytes apart on the far side."""

    run: int
    runs: int
    pitch: int
    outer: int


def merge_box(extent: Sequence[int], pitch: Sequence[int], item: int) -> MergedBox | None:
    """Dims outermost first, pitches and item in bytes. None for an empty box."""
    if any(e <= 0 for e in extent):
        return None
    dims: list[tuple[int, int]] = []
    for e, p in zip(extent, pitch, strict=True):
        if e == 1:
            continue
        if dims and dims[-1][1] == e * p:
            dims[-1] = (dims[-1][0] * e, p)
        else:
            dims.append((e, p))
    run = item * dims.pop()[0] if dims and dims[-1][1] == item else item
    runs, far_pitch = dims[-1] if dims else (1, 0)
    return MergedBox(run, runs, far_pitch, prod(e for e, _ in dims[:-1]))


def count_commands(box: MergedBox | None, limits: HopLimits) -> int:
    """How many commands the box takes."""
    if box is None:
        return 0
    strided = limits.dims >= 2 and 0 <= box.pitch <= limits.max_pitch and box.run <= limits.max_bytes
    step = min(limits.max_bytes // box.run, box.runs) if strided else 1
    if step == 1:
        return box.outer * box.runs * -(-box.run // limits.max_bytes)
    return box.outer * -(-box.runs // step)


def count_box(extent: Sequence[int], pitch: Sequence[int], item: int, limits: HopLimits) -> tuple[int, int]:
    """(bytes, commands) of copying one box."""
    return prod(max(e, 0) for e in extent) * item, count_commands(merge_box(extent, pitch, item), limits)
