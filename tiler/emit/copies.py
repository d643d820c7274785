"""The copies of a call's tiles as C: a small function per operand, or a line where the tile is always the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tiler.emit.affine import Affine, number, term, times
from tiler.emit.boxes import box_lines, merged, named_box
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
    pitches: tuple[Affine, ...]
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
        return not self.loops and self.pitches == (number(self.item),)

    @property
    def home(self) -> str:
        """Where the whole operand would begin in this step, of one that passes through L2 in pieces."""
        if not self.plan.places:
            return ""
        outer = self.loops[0]
        return f"{places_name(self.call, self.plan.operand.name)}[{outer.axis} / {outer.tile}] + "

    @property
    def twice(self) -> bool:
        """Whether it has two buffers that take turns."""
        return len(self.plan.l1) > 1

    @property
    def direction(self) -> str:
        return "GF_OUT" if self.is_output else "GF_IN"


def tile_copy(unit: CallUnit, plan: OperandPlan) -> TileCopy:
    """The copy of one operand."""
    if plan.shares is not None:
        return _shares_copy(unit, plan, plan.shares)
    operand = plan.operand
    boxes = unit.boxes[operand.name]
    verb = "store" if operand.role == "out" else "load"
    loops = unit.loops_of(t for dim in boxes for t in (dim.start, dim.extent))
    named = [named_box(operand.name, dim, box) for dim, box in zip(operand.dims, boxes, strict=True)]
    far = number(operand.far_offset)
    for (box, _), stride in zip(named, operand.far_strides, strict=True):
        far = far + box.start * stride
    far_pitches = [number(s * operand.itemsize) for s in operand.far_strides]
    extents, pitches = merged([box.extent for box, _ in named], far_pitches)
    return TileCopy(
        unit.name,
        plan,
        f"{verb}_{unit.name}_{operand.name}",
        far * operand.itemsize + (0 if plan.places else plan.far),
        extents or (number(1),),
        pitches or (number(operand.itemsize),),
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
    return TileCopy(unit.name, plan, name, far, (size,), (number(1),), loops, (), False, ticket_name, 1)


def _ticket_name(unit: CallUnit, plan: OperandPlan) -> str:
    return f"{unit.name}_{plan.operand.name}_ticket" if plan.ahead else f"{plan.operand.name}_ticket"


def write_function(out: Lines, copy: TileCopy) -> None:
    """`static void load_CALL_OPERAND(axes..., void *l1, gf_ticket *ticket)`, for a result `store_`."""
    if copy.plan.places:
        out.add(*places_table(copy.call, copy.plan.operand.name, copy.plan.places))
    parameters = [*(f"int32_t {loop.axis}" for loop in copy.loops), "void *l1", "gf_ticket *ticket"]
    out.open(f"static void {copy.function}({', '.join(parameters)})")
    out.add(*size_lines(copy.loops, [copy.far, *copy.extents, *copy.defines]), *copy.defines)
    far = f"GF_L2({copy.home}{copy.far})"
    if copy.plan.shares is not None:
        out.add(f"gf_copy_bytes(GF_L2_L1, {copy.direction}, {far}, l1, {copy.extents[0]}, ticket);")
    else:
        out.add(*box_lines(f".far = {far}, .near = l1", copy.extents, copy.pitches, copy.item))
        out.add(f"gf_copy_box(GF_L2_L1, {copy.direction}, &box, ticket);")
    out.close()
    out.add("")


def ticket(copy: TileCopy, buffer: str | int = 0) -> str:
    """The ticket of one of the operand's L1 buffers."""
    return f"{copy.ticket}[{buffer}]" if copy.twice else copy.ticket


def current(plan: OperandPlan) -> str | int:
    """The number of the L1 buffer in use: a local that alternates, or 0."""
    return f"{plan.lead or plan.operand.name}_now" if len(plan.l1) > 1 else 0


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
    return f"{copy.function}({', '.join([*axes, near(plan, buffer), f'&{on}'])});"


def wait_line(copy: TileCopy, buffer: str | int) -> str:
    """Wait for a copy that has certainly started, or, where its box may be empty, that may have."""
    certain = not copy.may_be_empty and not copy.is_output
    return f"gf_copy_{'wait' if certain else 'settle'}(&{ticket(copy, buffer)});"
