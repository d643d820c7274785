"""The copies of a call's tiles as C: a small function per operand, or a line where the tile is always the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiler.emit.affine import Affine, number, term, times
from tiler.emit.boxes import DimBox
from tiler.emit.ctext import Lines
from tiler.emit.fetches import places_name, places_table
from tiler.emit.unit import CallUnit, size_lines
from tiler.schedule import Loop, OperandPlan, Shares


@dataclass(frozen=True, slots=True)
class TileCopy:
    """How an operand's tile is copied: its first byte `far`, the merged dims of its box, the locals that they read."""

    call: str
    plan: OperandPlan
    function: str
    far: Affine
    extents: tuple[Affine, ...]
    pitches: tuple[int, ...]
    loops: tuple[Loop, ...]  # that the box depends on
    defines: tuple[str, ...]
    may_be_empty: bool
    ticket: str  # the name of its ticket, or of the array of them
    item: int  # bytes

    @property
    def is_output(self) -> bool:
        return self.plan.operand.role == "out"

    @property
    def is_plain(self) -> bool:
        """Always the same contiguous bytes."""
        return not self.loops and not self.plan.stage and self.pitches == (self.item,)

    @property
    def home(self) -> str:
        """Where the whole operand would begin in this step, of one that passes through L2 in pieces."""
        if not self.plan.places:
            return ""
        outer = self.loops[0]
        return f"{places_name(self.call, self.plan.operand.name)}[{outer.axis} / {outer.tile}] + "

    @property
    def twice(self) -> bool:
        """Whether it has two buffers, or two halves of a stage, that take turns."""
        return takes_turns(self.plan)

    @property
    def halved(self) -> bool:
        """Whether its way between L2 and L3 runs beside other tiles."""
        return len(self.plan.stage) > 1

    @property
    def direction(self) -> str:
        return "GF_OUT" if self.is_output else "GF_IN"


def takes_turns(plan: OperandPlan) -> bool:
    """Whether it has two buffers in L1, or two halves of a stage in L2."""
    return len(plan.l1) > 1 or len(plan.stage) > 1


def tile_copy(unit: CallUnit, plan: OperandPlan) -> TileCopy:
    """The copy of one operand."""
    if plan.shares is not None:
        return _shares_copy(unit, plan, plan.shares)
    operand = plan.operand
    boxes = unit.boxes[operand.name]
    verb = "store" if operand.role == "out" else "load"
    loops = unit.loops_of(t for dim in boxes for t in (dim.start, dim.extent))
    named = [_named(operand.name, dim, box) for dim, box in zip(operand.dims, boxes, strict=True)]
    far = number(operand.far_offset)
    for (box, _), stride in zip(named, operand.far_strides, strict=True):
        far = far + box.start * stride
    extents, pitches = _merged([box.extent for box, _ in named], [s * operand.itemsize for s in operand.far_strides])
    return TileCopy(
        unit.name,
        plan,
        f"{verb}_{unit.name}_{operand.name}",
        far * operand.itemsize + (0 if plan.places else plan.far),
        extents or (number(1),),
        pitches or (operand.itemsize,),
        loops,
        tuple(line for _, lines in named for line in lines),
        any(not (dim.before.is_number and dim.after.is_number) for dim in boxes),
        _ticket_name(unit, plan),
        operand.itemsize,
    )


def _shares_copy(unit: CallUnit, plan: OperandPlan, shares: Shares) -> TileCopy:
    """The copy of a tile's share of several constants: contiguous bytes, the last operand's as many as its tile has."""
    last = next(o.operand for o in unit.plan.operands if o.operand.name == shares.operands[-1])
    size = number(last.itemsize)
    for box in unit.boxes[last.name]:
        size = times(size, box.extent)
    size, far, pitch = size + shares.offsets[-1], number(0 if plan.places else plan.far), shares.pitch
    for loop in reversed([loop for loop in unit.plan.loops if loop.axis in shares.axes]):
        even = pitch % loop.tile == 0
        far = far + (term(loop.axis) * (pitch // loop.tile) if even else term(f"({loop.axis} / {loop.tile})") * pitch)
        pitch *= loop.trips
    name = f"load_{unit.name}_{plan.operand.name}"
    loops, ticket_name = unit.loops_of((far, size)), _ticket_name(unit, plan)
    return TileCopy(unit.name, plan, name, far, (size,), (1,), loops, (), False, ticket_name, 1)


def _ticket_name(unit: CallUnit, plan: OperandPlan) -> str:
    return f"{unit.name}_{plan.operand.name}_ticket" if plan.ahead else f"{plan.operand.name}_ticket"


def _named(operand: str, dim: str, box: DimBox) -> tuple[DimBox, list[str]]:
    """A clipped range gets names for its start and its size."""
    if "(" not in f"{box.start}{box.extent}":
        return box, []
    name = f"{operand}_{dim.split('/')[0]}"
    start, lines = box.start, []
    if "(" in str(start):
        lines.append(f"const int32_t {name} = {start};")
        start = term(name)
    stop = box.extent + box.start  # the clipped end: what remains reads the name
    lines.append(f"const int32_t {name}_n = {stop - start};")
    return DimBox(start, term(f"{name}_n"), box.before, box.after), lines


def _merged(extents: Sequence[Affine], pitches: Sequence[int]) -> tuple[tuple[Affine, ...], tuple[int, ...]]:
    """Without dims of extent 1; dims that are whole within the next outer one become part of it, as in gf_copy_box."""
    dims: list[tuple[Affine, int]] = []
    for extent, pitch in zip(extents, pitches, strict=True):
        if extent == number(1):
            continue
        if dims and extent.is_number and dims[-1][1] == extent.const * pitch:
            dims[-1] = (dims[-1][0] * extent.const, pitch)
        else:
            dims.append((extent, pitch))
    return tuple(e for e, _ in dims), tuple(p for _, p in dims)


def write_function(out: Lines, copy: TileCopy) -> None:
    """`static void load_CALL_OPERAND(axes..., void *l1, gf_ticket *ticket)`; through two halves of a stage the address
    of one of them too, and for an input only that: the copy ends there, and the bytes of the tile are returned."""
    if copy.plan.places:
        out.add(*places_table(copy.call, copy.plan.operand.name, copy.plan.places))
    to = {(True, True): ["uint32_t half", "void *l1"], (True, False): ["uint32_t half"]}
    near_side = to.get((copy.halved, copy.is_output), ["void *l1"])
    parameters = [*(f"int32_t {loop.axis}" for loop in copy.loops), *near_side, "gf_ticket *ticket"]
    result = "int32_t" if copy.halved and not copy.is_output else "void"
    out.open(f"static {result} {copy.function}({', '.join(parameters)})")
    out.add(*size_lines(copy.loops, [copy.far, *copy.extents, *copy.defines]), *copy.defines)
    stage, item = copy.plan.stage, copy.item
    far = f"GF_L3({copy.far})" if stage else f"GF_L2({copy.home}{copy.far})"
    if copy.plan.shares is not None:
        out.add(f"gf_copy_bytes(GF_L2_L1, {copy.direction}, {far}, l1, {copy.extents[0]}, ticket);")
        out.close()
        out.add("")
        return
    near = f"GF_L2_NEAR({_half(copy)})" if stage else "l1"
    _box(out, far, near, item, copy.extents, copy.pitches)
    if stage:
        _staged(out, copy)
    else:
        out.add(f"gf_copy_box(GF_L2_L1, {copy.direction}, &box, ticket);")
    out.close()
    out.add("")


def _box(out: Lines, far: str, near: str, item: int, extents: Sequence[Affine], pitches: Sequence[int]) -> None:
    sides = f".far = {far}, .near = {near}, .item = {item}, .rank = {len(extents)},"
    shape = f".extent = {{{', '.join(map(str, extents))}}}, .pitch = {{{', '.join(map(str, pitches))}}}"
    out.add(f"const gf_box box = {{{sides}", f"                    {shape}}};")


def _half(copy: TileCopy) -> str:
    return "half" if copy.halved else str(copy.plan.stage[0])


def _staged(out: Lines, copy: TileCopy) -> None:
    """Through L2: the stage is dense and holds one tile, so each leg ends before the next begins; only a half's way to
    or from L3 need not end here."""
    size = " * ".join(
        [*(_factor(e) for e in copy.extents), *([str(i)] if (i := copy.plan.operand.itemsize) > 1 else [])]
    )
    tile = f"gf_copy_bytes(GF_L2_L1, {copy.direction}, GF_L2({_half(copy)}), l1, {size}, ticket);"
    deep = f"gf_copy_box(GF_L3_L2, {copy.direction}, &box, ticket);"
    if copy.halved:
        settle = "gf_copy_settle(ticket);"
        out.add(*([settle, tile, settle, deep] if copy.is_output else [deep, f"return {size};"]))
        return
    first, second = (tile, deep) if copy.is_output else (deep, tile)
    out.add(first, "gf_copy_settle(ticket);", second, "gf_copy_settle(ticket);")


def _factor(extent: Affine) -> str:
    simple = not extent.const if extent.terms else True
    return str(extent) if simple and len(extent.terms) <= 1 else f"({extent})"


def ticket(copy: TileCopy, buffer: str | int = 0) -> str:
    """The ticket of one of the operand's L1 buffers."""
    return f"{copy.ticket}[{buffer}]" if copy.twice else copy.ticket


def current(plan: OperandPlan) -> str | int:
    """The number of the L1 buffer, or of the half of the stage, in use: a local that alternates, or 0."""
    return f"{plan.lead or plan.operand.name}_now" if takes_turns(plan) else 0


def near(plan: OperandPlan, buffer: str | int = 0) -> str:
    """The L1 address of one of the operand's buffers."""
    if len(plan.l1) == 1:
        return f"GF_L1({plan.l1[0]})"
    if isinstance(buffer, int):
        return f"GF_L1({plan.l1[buffer]})"
    return f"GF_L1({plan.operand.name}_l1[{buffer}])"


def start_line(copy: TileCopy, at: Mapping[str, str], buffer: str | int, on: str = "") -> str:
    """Start the copy of the current tile, or of the tile where some axes stand `at` other places; on the buffer's
    ticket, or another."""
    plan = copy.plan
    on = on or ticket(copy, buffer)
    if copy.is_plain:
        size = plan.span or copy.extents[0] * plan.operand.itemsize
        where = f"GF_L2({copy.far}), {near(plan, buffer)}, {size}"
        return f"gf_copy_bytes(GF_L2_L1, {copy.direction}, {where}, &{on});"
    axes = [at.get(loop.axis, loop.axis) for loop in copy.loops]
    if not copy.halved:
        return f"{copy.function}({', '.join([*axes, near(plan, buffer), f'&{on}'])});"
    name, half = plan.operand.name, f"{plan.operand.name}_halves[{buffer}]"
    if copy.is_output:
        return f"{copy.function}({', '.join([*axes, half, near(plan, buffer), f'&{on}'])});"
    return f"{name}_bytes[{buffer}] = {copy.function}({', '.join([*axes, half, f'&{on}'])});"


def bring_lines(copy: TileCopy) -> list[str]:
    """The current half's way into L1, once it is there."""
    name, now = copy.plan.operand.name, current(copy.plan)
    where = f"GF_L2({name}_halves[{now}]), {near(copy.plan)}, {name}_bytes[{now}]"
    on = ticket(copy, now)
    return [f"gf_copy_settle(&{on});", f"gf_copy_bytes(GF_L2_L1, GF_IN, {where}, &{on});"]


def wait_line(copy: TileCopy, buffer: str | int) -> str:
    """Wait for a copy that has certainly started, or, where its box may be empty or was waited for, that may have."""
    certain = not copy.may_be_empty and not copy.plan.stage and not copy.is_output
    return f"gf_copy_{'wait' if certain else 'settle'}(&{ticket(copy, buffer)});"
