"""The part of an operand that a tile touches, clipped to the tensor: for the emitter and the kernel test harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion_engine.expr import Expr, bounds
from tiler.emit.affine import Affine, greatest, interval, least, number, term
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


def named_box(prefix: str, dim: str, box: DimBox) -> tuple[DimBox, list[str]]:
    """A clipped range gets names for its start and its size, and the lines that define them."""
    if "(" not in f"{box.start}{box.extent}":
        return box, []
    name = f"{prefix}_{dim.split('/')[0]}"
    start, lines = box.start, []
    if "(" in str(start):
        lines.append(f"const int32_t {name} = {start};")
        start = term(name)
    stop = box.extent + box.start  # the clipped end: what remains reads the name
    lines.append(f"const int32_t {name}_n = {stop - start};")
    return DimBox(start, term(f"{name}_n"), box.before, box.after), lines


def merged(extents: Sequence[Affine], pitches: Sequence[Affine]) -> tuple[tuple[Affine, ...], tuple[Affine, ...]]:
    """Without dims of extent 1; dims that are whole within the next outer one become part of it, as in gf_copy_box."""
    dims: list[tuple[Affine, Affine]] = []
    for extent, pitch in zip(extents, pitches, strict=True):
        if extent == number(1):
            continue
        if dims and extent.is_number and dims[-1][1] == pitch * extent.const:
            dims[-1] = (dims[-1][0] * extent.const, pitch)
        else:
            dims.append((extent, pitch))
    return tuple(e for e, _ in dims), tuple(p for _, p in dims)


def box_lines(sides: str, extents: Sequence[Affine], pitches: Sequence[Affine], item: int) -> list[str]:
    """The definition of `box`, its `sides` as initialisers; without dims it is one element."""
    extents, pitches = extents or [number(1)], pitches or [number(item)]
    shape = f".extent = {{{', '.join(map(str, extents))}}}, .pitch = {{{', '.join(map(str, pitches))}}}"
    return [
        f"const gf_box box = {{{sides}, .item = {item}, .rank = {len(extents)},",
        f"                    {shape}}};",
    ]
