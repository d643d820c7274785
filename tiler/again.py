"""Which inner tensors of a rolled group are made again where steps share rows, instead of kept and moved down.

Made again, a tensor needs no moving; its call computes the shared rows twice, and reads more: rows of tensors before it
stay longer or are themselves made again, tiles that come from L2 overlap. On cores that would stand idle the rows may
cost nothing. It never takes less L1 than the lowest ring. So it can only pay where computing the shared rows takes
fewer cycles than moving them; what all of it comes to, copies included, the plans' keys say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from tiler.rolling import SLIDE, RollSteps

SETS = 8  # of tensors made again that are weighed at each step size of a group


def remade(steps: RollSteps) -> list[RollSteps]:
    """The same steps with some results made again, those nearest the group's result first."""
    found = steps.once("again", lambda: list(islice((s for s in _sets(steps, len(steps.calls) - 2) if s), SETS)))
    return [replace(steps, again=s) for s in found]


def _sets(steps: RollSteps, number: int) -> Iterator[frozenset[int]]:
    """Each way to go on from a choice for the calls behind `number`."""
    if number < 0:
        yield steps.again
        return
    if _gains(steps, number):
        yield from _sets(replace(steps, again=steps.again | {number}), number - 1)
    yield from _sets(steps, number - 1)


def _gains(kept: RollSteps, number: int) -> bool:
    """Whether making a result again takes fewer cycles than moving it down before every step."""
    moved = kept.ring(number, 1)[1] / SLIDE
    if not moved:
        return False
    again = replace(kept, again=kept.again | {number})
    return sum(again.computing_of(number)) - sum(kept.computing_of(number)) < moved
