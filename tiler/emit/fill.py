"""Values of the argument struct's members for one tile: C texts for the emitter, numbers for the test harness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import Name
from fusion_engine.graph import CallAttr
from fusion_engine.kernels.descriptor import Kernel
from tiler.emit.affine import Affine, number, times
from tiler.emit.args import ArgMember, access_of, operand_names
from tiler.emit.boxes import AxisRange, DimBox
from tiler.schedule import BoundOperand


@dataclass(frozen=True, slots=True)
class Tile:
    """One tile of a call: what its operands' boxes and its axes are, as numbers or as C texts.

    Operands named in `stays` lie inside their whole tensor in L1, the others are dense.
    """

    kernel: Kernel
    operands: Mapping[str, BoundOperand]
    boxes: Mapping[str, tuple[DimBox, ...]]
    ranges: Mapping[str, AxisRange]
    attrs: Mapping[str, CallAttr]
    stays: frozenset[str] = frozenset()


Value = Affine | int | float | tuple[Affine, ...] | tuple[int, ...] | tuple[float, ...]


def member_value(member: ArgMember, tile: Tile) -> Value:
    """The value of any member but addresses, `first`, `last` and scratch pitches, which are the caller's."""
    match member.kind:
        case "extent":
            return _dim_value(member, tile, "extent")
        case "before" | "after":
            return _dim_value(member, tile, member.kind)
        case "dim_at":
            return _dim_value(member, tile, "start")
        case "rows":
            return _rows(member.of, tile)
        case "lines":
            return _lines(member.of, tile)
        case "strides":
            return _strides(member, tile)
        case "axis":
            return _axis(member, tile)
        case "axis_at":
            return tile.ranges[member.of].at
        case "attr":
            return _attribute(member, tile)
        case "itemsize":
            return _itemsize(member, tile)
    raise GapFuseError(f"the caller fills `{member.name}`")


def _dim_value(member: ArgMember, tile: Tile, field: str) -> Affine:
    operand = tile.operands.get(member.of)
    if operand is None:
        return number(0)
    for dim, box in zip(operand.dims, tile.boxes[member.of], strict=True):
        name, _, block = dim.partition("/")
        if name == member.dim:
            value: Affine = getattr(box, field)
            return value * int(block or 1)
    return number(1 if field == "extent" else 0)  # a dim of extent 1 that the binding dropped


def _axis(member: ArgMember, tile: Tile) -> Affine | tuple[Affine, ...]:
    if member.length is None:
        return tile.ranges[member.of].n
    return tuple(tile.ranges[f"{member.of}{i}"].n for i in range(member.length))


def _attribute(member: ArgMember, tile: Tile) -> Value:
    value = tile.attrs[member.of]
    if isinstance(value, str):
        raise GapFuseError(f"attribute `{member.of}` has the text {value!r} where the struct has {member.ctype}")
    return value


def _itemsize(member: ArgMember, tile: Tile) -> int:
    for name, operand in operand_names(tile.kernel, len(tile.operands)):
        if operand.dtype == member.of and name in tile.operands:
            return tile.operands[name].itemsize
    return 0


def _strides(member: ArgMember, tile: Tile) -> tuple[Affine, ...]:
    """Element strides in L1: along the group's axes, or, for an operand of named dims in any order, along its dims."""
    assert member.length is not None
    operand = tile.operands.get(member.of)
    if operand is None:
        return (number(0),) * member.length
    strides = _strides_in_l1(member.of, tile)
    signature = next(o for name, o in operand_names(tile.kernel, len(tile.operands)) if name == member.of)
    if not any(d.startswith("*") for d in signature.dims):
        by_name = dict(zip(operand.dims, strides, strict=True))
        return tuple(by_name.get(d.lower(), number(0)) for d in signature.dims)
    group = _group_axis(tile.kernel, signature.name)
    by_axis = {i.name: s for i, s in zip(operand.index, strides, strict=True) if isinstance(i, Name)}
    return tuple(by_axis.get(f"{group}{i}", number(0)) for i in range(member.length))


def _group_axis(kernel: Kernel, operand: str) -> str:
    groups = {axis for axis, extent in kernel.axes if extent.startswith("*")}
    for index in access_of(kernel, operand):
        if isinstance(index, Name) and index.name in groups:
            return index.name
    raise GapFuseError(f"kernel `{kernel.name}`: no group axis walks `{operand}`")


def _rows(name: str, tile: Tile) -> Affine:
    """Elements from one row to the next."""
    if name not in tile.operands:
        return number(0)
    return _apart(name, tile, 1) or tile.boxes[name][-1].extent


def _lines(name: str, tile: Tile) -> Affine:
    """Elements from one line of rows to the next."""
    if name not in tile.operands:
        return number(0)
    return _apart(name, tile, 2) or _dense(tile.boxes[name])[-3]


def _apart(name: str, tile: Tile, inner: int) -> Affine | None:
    """Of a tile that stays, the elements between two indices of the first dim outside the `inner` last that moves."""
    if name not in tile.stays:
        return None
    dims = zip(tile.boxes[name][:-inner], tile.operands[name].far_strides[:-inner], strict=True)
    return next((number(stride) for dim, stride in reversed(list(dims)) if dim.extent != number(1)), None)


def _strides_in_l1(name: str, tile: Tile) -> list[Affine]:
    if name in tile.stays:
        return [number(s) for s in tile.operands[name].far_strides]
    return _dense(tile.boxes[name])


def _dense(box: tuple[DimBox, ...]) -> list[Affine]:
    strides = [number(1)]
    for dim in reversed(box[1:]):
        strides.insert(0, times(strides[0], dim.extent))
    return strides[: len(box)]
