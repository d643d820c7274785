"""Which part of an operand a tile touches: per dim, the range of its index map over the tile's axes, clipped to the
tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_engine.expr import Expr, bounds
from tiler.schedule import BoundOperand

Count = Any  # an int, or a numpy array of them


@dataclass(frozen=True, slots=True)
class DimRange:
    """`count` elements from `start`; the map reaches `before` elements in front of the tensor and `after` beyond its
    end."""

    start: Count
    count: Count
    before: Count
    after: Count


def clip_range(low: Count, high: Count, extent: int) -> DimRange:
    """The inclusive range [low, high] of coordinates, clipped to [0, extent).

    `before` and `after` say how far the range reaches beyond the tensor, also where none of it lies inside.
    """
    if isinstance(low, int) and isinstance(high, int):
        start, end = min(max(low, 0), extent), min(max(high + 1, 0), extent)
        return DimRange(start, end - start, max(-low, 0), max(high + 1 - extent, 0))
    start, end = np.clip(low, 0, extent), np.clip(high + 1, 0, extent)
    return DimRange(start, end - start, np.maximum(-low, 0), np.maximum(high + 1 - extent, 0))


def dim_range(index: Expr | None, extent: int, first: Mapping[str, Count], last: Mapping[str, Count]) -> DimRange:
    """The range along one dim for axes between `first` and `last` inclusive; a None index is the whole extent."""
    if index is None:
        return DimRange(0, extent, 0, 0)
    low, high = bounds(index, first, last)
    return clip_range(low, high, extent)


def tile_box(operand: BoundOperand, start: Mapping[str, int], length: Mapping[str, int]) -> tuple[DimRange, ...]:
    """The box of one tile: per dim (L1 order) its range, for axes [start, start + length)."""
    last = {a: start[a] + length[a] - 1 for a in start}
    return tuple(dim_range(i, e, start, last) for i, e in zip(operand.index, operand.extent, strict=True))
