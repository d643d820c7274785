"""Tilings under which constants may pass through L2 in pieces: the outermost loop goes through each of them once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from fusion_engine.expr import names
from tiler.schedule import BoundOperand
from tiler.space import Space


def streaming(space: Space, order: Sequence[str], levels: Sequence[str], room: int | None) -> NDArray[np.bool_]:
    """Where the outermost split axis goes once along the outermost dim of each operand of level "stream", and what one
    of its iterations reads of them is at most `room` bytes."""
    result: NDArray[np.bool_] = np.ones(len(space.base), bool)
    pieces = np.zeros(len(space.base))
    for o, level in zip(space.call.operands, levels, strict=True):
        if level == "stream":
            along, size = _pieces(space, order, o)
            result, pieces = result & along, pieces + size
    return result if room is None else result & (pieces <= room)


def _pieces(space: Space, order: Sequence[str], o: BoundOperand) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Where the pieces of an operand follow each other, and their bytes."""
    along, twice, split = (np.zeros(len(space.base), bool) for _ in range(3))
    whole = prod(o.extent) * o.itemsize
    size = np.full(len(space.base), float(whole))
    for axis in order:
        here = space.trips[axis] > 1
        if axis in _outer_axes(o):
            along |= here & ~split
            twice |= here & split
            size = np.where(here, whole * space.full(space.grid.tile(axis)) / space.grid.extents[axis], size)
        split |= here
    return along & ~twice, size


def _outer_axes(o: BoundOperand) -> frozenset[str]:
    """The axes that walk an operand's outermost dim."""
    index = next((i for i, e in zip(o.index, o.extent, strict=True) if e > 1), None)
    return frozenset() if index is None else names(index)
