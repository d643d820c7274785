"""The part of an operand that a tile touches, clipped to the tensor: for the emitter and the kernel test harness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusion_engine.expr import Expr, bounds
from tiler.emit.affine import Affine, greatest, interval, least, number
from tiler.schedule import BoundOperand


@dataclass(frozen=True, slots=True)
class AxisRange:
    """A tile's part of an axis: [at, at + n)."""

    at: Affine
    n: Affine

    @property
    def inclusive(self) -> tuple[Affine, Affine]:
        return self.at, self.at + self.n - 1


@dataclass(frozen=True, slots=True)
class DimBox:
    """A tile's part of one dim: `extent` elements from `start`; `before` and `after` more lie outside the tensor."""

    start: Affine
    extent: Affine
    before: Affine
    after: Affine


def operand_box(operand: BoundOperand, ranges: Mapping[str, AxisRange], axes: Mapping[str, int]) -> tuple[DimBox, ...]:
    """One DimBox per dim. `axes` gives the axes' full extents, which tell where clipping is needed at all."""
    return tuple(
        _dim_box(index, extent, ranges, axes) for index, extent in zip(operand.index, operand.extent, strict=True)
    )


def _dim_box(index: Expr | None, extent: int, ranges: Mapping[str, AxisRange], axes: Mapping[str, int]) -> DimBox:
    zero, end = number(0), number(extent)
    if index is None:
        return DimBox(zero, end, zero, zero)
    low, high = interval(index, {a: r.inclusive for a, r in ranges.items()})
    stop = high + 1
    least_low, most_low, least_stop, most_stop = _reach(index, axes)
    start = greatest(low, zero) if least_low < 0 else low
    start = least(start, end) if most_low > extent else start
    clipped = least(stop, end) if most_stop > extent else stop
    clipped = greatest(clipped, zero) if least_stop < 0 else clipped
    before = greatest(low * -1, zero) if least_low < 0 else zero
    after = greatest(stop - extent, zero) if most_stop > extent else zero
    return DimBox(start, clipped - start, before, after)


def _reach(index: Expr, axes: Mapping[str, int]) -> tuple[int, int, int, int]:
    """Least and greatest start, least and greatest stop over every tile there may be."""
    low, high = bounds(index, dict.fromkeys(axes, 0), {a: n - 1 for a, n in axes.items()})
    return int(low), int(high), int(low) + 1, int(high) + 1


def far_elements(operand: BoundOperand, box: tuple[DimBox, ...]) -> Affine:
    """Where the box begins, in elements of the root."""
    total = number(operand.far_offset)
    for dim, stride in zip(box, operand.far_strides, strict=True):
        total = total + dim.start * stride
    return total
