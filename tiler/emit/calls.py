"""One kernel call as C: a function of plain nested loops over the split axes, and one small function per operand that copies its tile.

Inputs are copied when entering the loop body at their depth, outputs when leaving it. A double-buffered input is started one
iteration of its own loop ahead; an output's buffer is waited for before it is written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fusion_engine.graph import Call
from fusion_engine.kernels.descriptor import Implementation, Kernel
from tiler.emit.affine import Affine, number, term
from tiler.emit.args import ArgMember, args_members
from tiler.emit.boxes import AxisRange, DimBox, far_elements, operand_box
from tiler.emit.ctext import Lines, c_value, comment
from tiler.emit.fill import Tile, Value, member_value
from tiler.schedule import BoundOperand, CallPlan, Loop, OperandPlan


@dataclass(frozen=True)
class CallUnit:
    """Everything the text of one call is made from. `number` is its place in the schedule."""

    number: int
    call: Call
    plan: CallPlan
    kernel: Kernel
    implementation: Implementation
    symbol: str
    variadic: int

    @cached_property
    def ranges(self) -> Mapping[str, AxisRange]:
        """Where each axis stands in the current tile; unsplit axes are whole."""
        whole = {a: AxisRange(number(0), number(n)) for a, n in self.plan.axes.items()}
        return whole | {loop.axis: AxisRange(term(loop.axis), _size(loop)) for loop in self.plan.loops}

    @cached_property
    def boxes(self) -> Mapping[str, tuple[DimBox, ...]]:
        return {o.operand.name: operand_box(o.operand, self.ranges, self.plan.axes) for o in self.plan.operands}

    @property
    def inputs(self) -> tuple[OperandPlan, ...]:
        return tuple(o for o in self.plan.operands if o.operand.role != "out")

    @property
    def outputs(self) -> tuple[OperandPlan, ...]:
        return tuple(o for o in self.plan.operands if o.operand.role == "out")

    def copy_name(self, o: OperandPlan) -> str:
        return f"gf_{'store' if o.operand.role == 'out' else 'load'}_{self.number}_{o.operand.name}"

    def axes_of(self, o: OperandPlan) -> tuple[Loop, ...]:
        """The loops around the operand's copy that its box depends on, outermost first."""
        text = " ".join(str(v) for dim in self.boxes[o.operand.name] for v in (dim.start, dim.extent))
        words = set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())
        return tuple(loop for loop in self.plan.loops if loop.axis in words or f"{loop.axis}_n" in words)


def _size(loop: Loop) -> Affine:
    return number(loop.tile) if loop.extent % loop.tile == 0 else term(f"{loop.axis}_n")


def call_text(unit: CallUnit) -> str:
    """The copies' functions and the call's function."""
    out = Lines()
    out.add(*comment(_headline(unit)))
    for o in unit.plan.operands:
        _copy_function(out, unit, o)
    out.open(f"static void gf_call_{unit.number}(void)")
    _declarations(out, unit)
    _body(out, unit, 0)
    for o in unit.outputs:
        out.add(*(f"gf_copy_settle(&{_ticket(o, b)});" for b in range(len(o.l1))))
    out.close()
    return str(out)


def _headline(unit: CallUnit) -> list[str]:
    plan, origin = unit.plan, unit.call.provenance
    tiles = " x ".join(f"{loop.axis} {loop.tile} of {loop.extent}" for loop in plan.loops) or "everything at once"
    return [
        f"{unit.call.name}: {plan.kernel} ({plan.implementation}) by rule {origin.rule}, {origin.variant} ({origin.evidence})",
        f"nodes {', '.join(origin.nodes)}",
        f"tiles {tiles}: {plan.tiles}; L1 {plan.l1_bytes} B; cycles {plan.compute_cycles} computing, {plan.total_cycles} in all",
        *(f"{o.operand.name}: {_journey(o)}" for o in plan.operands),
    ]


def _journey(o: OperandPlan) -> str:
    stage = f" through L2 at {o.stage}" if o.stage is not None else ""
    buffers = ", double-buffered" if len(o.l1) > 1 else ""
    moved = sum(o.bytes.values())
    return f"{o.operand.buffer} in {o.level.upper()}{stage}, tiles of {o.tile_bytes} B{buffers}, {moved} B moved"


# ---- copies ----


def _copy_function(out: Lines, unit: CallUnit, o: OperandPlan) -> None:
    operand, box = o.operand, unit.boxes[o.operand.name]
    loops = unit.axes_of(o)
    parameters = ", ".join([*(f"int32_t {loop.axis}" for loop in loops), "void *l1", "gf_ticket *ticket"])
    out.open(f"static void {unit.copy_name(o)}({parameters})")
    out.add(*_sizes(loops))
    far = far_elements(operand, box) * operand.itemsize + o.far
    extents, pitches = _geometry(operand, box)
    level = "GF_L2" if o.stage is None else "GF_L3"
    near = "l1" if o.stage is None else f"GF_L2_NEAR({o.stage})"
    out.add(f"const gf_box box = {{{level}({far}), {near}, {operand.itemsize}, {len(extents)}, {_list(extents)}, {_list(pitches)}}};")
    if o.stage is None:
        out.add(f"gf_copy_box(GF_L2_L1, {_direction(o)}, &box, ticket);")
    else:
        _staged(out, o, extents)
    out.close()


def _sizes(loops: Sequence[Loop]) -> list[str]:
    return [f"const int32_t {loop.axis}_n = GF_MIN({loop.tile}, {loop.extent} - {loop.axis});" for loop in loops if loop.extent % loop.tile]


def _geometry(operand: BoundOperand, box: tuple[DimBox, ...]) -> tuple[list[str], list[str]]:
    extents = [str(d.extent) for d in box] or ["1"]
    pitches = [str(s * operand.itemsize) for s in operand.far_strides] or [str(operand.itemsize)]
    return extents, pitches


def _list(items: Sequence[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _direction(o: OperandPlan) -> str:
    return "GF_OUT" if o.operand.role == "out" else "GF_IN"


def _staged(out: Lines, o: OperandPlan, extents: Sequence[str]) -> None:
    """Through L2: the stage is dense, and holds one tile at a time, so each leg ends before the next begins."""
    size = " * ".join(e if e.isidentifier() or e.isdigit() else f"({e})" for e in extents)
    out.add(f"const gf_box dense = {{GF_L2({o.stage}), l1, {o.operand.itemsize}, 1, {{{size}}}, {{{o.operand.itemsize}}}}};")
    far = ("gf_copy_box(GF_L3_L2, GF_IN, &box, ticket);", "gf_copy_settle(ticket);")
    near = (f"gf_copy_box(GF_L2_L1, {_direction(o)}, &dense, ticket);", "gf_copy_settle(ticket);")
    if o.operand.role == "out":
        out.add(*near, "gf_copy_box(GF_L3_L2, GF_OUT, &box, ticket);", "gf_copy_settle(ticket);")
    else:
        out.add(*far, *near)


# ---- the call ----


def _ticket(o: OperandPlan, buffer: int | str) -> str:
    return f"{o.operand.name}_t[{buffer}]" if len(o.l1) > 1 else f"{o.operand.name}_t"


def _near(o: OperandPlan, buffer: int | str) -> str:
    if len(o.l1) == 1:
        return f"GF_L1({o.l1[0]})"
    return f"GF_L1({o.l1[buffer]})" if isinstance(buffer, int) else f"GF_L1({buffer} ? {o.l1[1]} : {o.l1[0]})"


def _current(o: OperandPlan) -> int | str:
    return f"{o.operand.name}_b" if len(o.l1) > 1 else 0


def _declarations(out: Lines, unit: CallUnit) -> None:
    fixed = [f".{m.name} = {text}" for m in _members(unit) if (text := _fixed(unit, m)) is not None]
    out.add(f"{unit.symbol}_args args = {{")
    out.depth += 1
    out.add(*_wrapped(fixed or ["0"]))
    out.close(";")
    for o in unit.plan.operands:
        out.add(f"gf_ticket {o.operand.name}_t[2] = {{{{0}}, {{0}}}};" if len(o.l1) > 1 else f"gf_ticket {o.operand.name}_t = {{0}};")
        if len(o.l1) > 1:
            out.add(f"int32_t {o.operand.name}_b = 0;")


def _wrapped(items: Sequence[str], width: int = 130) -> list[str]:
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) > width:
            lines.append(line.rstrip())
            line = ""
        line += item + ", "
    return [*lines, line.rstrip(", ")]


def _members(unit: CallUnit) -> tuple[ArgMember, ...]:
    return args_members(unit.kernel, unit.implementation, unit.variadic)


def _tile(unit: CallUnit) -> Tile:
    operands = {o.operand.name: o.operand for o in unit.plan.operands}
    return Tile(unit.kernel, operands, unit.boxes, unit.ranges, unit.plan.attrs)  # type: ignore[arg-type]


def _fixed(unit: CallUnit, m: ArgMember) -> str | None:
    """The member's initialiser where it is the same in every tile."""
    if m.kind in ("first", "last"):
        return "1" if not _over(unit) else None
    if m.kind == "accumulator":
        assert unit.plan.accumulator is not None
        return f"GF_L1({unit.plan.accumulator[0]})"
    if m.kind == "scratch":
        return f"GF_L1({unit.plan.scratch[m.of][0]})"
    if m.kind == "pitch":
        return str(unit.plan.scratch[m.of][1])
    if m.kind == "pointer":
        plan = _find(unit, m.of)
        return None if plan is None or len(plan.l1) > 1 else _near(plan, 0)
    value = member_value(m, _tile(unit))
    if isinstance(value, tuple):
        return _c(tuple(number(0) if _varies(v) else v for v in value))
    return None if _varies(value) else _c(value)


def _find(unit: CallUnit, name: str) -> OperandPlan | None:
    return next((o for o in unit.plan.operands if o.operand.name == name), None)


def _varies(value: Value) -> bool:
    if isinstance(value, tuple):
        return any(isinstance(v, Affine) and not v.is_number for v in value)
    return isinstance(value, Affine) and not value.is_number


def _c(value: Value) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(_c(v) for v in value) + "}"
    return str(value) if isinstance(value, Affine) else c_value(value)


def _over(unit: CallUnit) -> tuple[Loop, ...]:
    """Split reduction loops."""
    accumulate = unit.implementation.accumulate
    return tuple(loop for loop in unit.plan.loops if accumulate is not None and loop.axis in accumulate.over)


def _body(out: Lines, unit: CallUnit, depth: int) -> None:
    loops = unit.plan.loops
    _enter(out, unit, depth)
    if depth == len(loops):
        _kernel(out, unit)
    else:
        loop = loops[depth]
        for o in _ahead(unit, depth + 1):
            _start(out, unit, o, {loop.axis: "0"}, _current(o))
        out.open(f"for (int32_t {loop.axis} = 0; {loop.axis} < {loop.extent}; {loop.axis} += {loop.tile})")
        if loop.extent % loop.tile and _reads_size(unit, loop):
            out.add(f"const int32_t {loop.axis}_n = GF_MIN({loop.tile}, {loop.extent} - {loop.axis});")
        _body(out, unit, depth + 1)
        out.close()
    _leave(out, unit, depth)


def _reads_size(unit: CallUnit, loop: Loop) -> bool:
    """Whether the loop's ragged size is read in the call's own function (copies compute their own)."""
    word = f"{loop.axis}_n"
    texts = [_c(member_value(m, _tile(unit))) for m in _members(unit) if _plain(m)]
    return any(word in "".join(c if c.isalnum() or c == "_" else " " for c in t).split() for t in texts)


def _plain(m: ArgMember) -> bool:
    return m.kind not in ("pointer", "first", "last", "accumulator", "scratch", "pitch")


def _ahead(unit: CallUnit, depth: int) -> list[OperandPlan]:
    """Inputs whose tile is started one iteration of loop depth - 1 ahead."""
    return [o for o in unit.inputs if o.depth == depth and len(o.l1) > 1]


def _enter(out: Lines, unit: CallUnit, depth: int) -> None:
    here = [o for o in unit.inputs if o.depth == depth]
    for o in here:
        if len(o.l1) > 1 and depth:
            loop = unit.plan.loops[depth - 1]
            following = f"{loop.axis} + {loop.tile}"
            out.open(f"if ({following} < {loop.extent})")
            _start(out, unit, o, {loop.axis: following}, f"{o.operand.name}_b ^ 1")
            out.close()
        else:
            _start(out, unit, o, {}, 0)
    for o in here:
        out.add(f"gf_copy_settle(&{_ticket(o, _current(o))});")
    for o in (o for o in unit.outputs if o.depth == depth):
        out.add(f"gf_copy_settle(&{_ticket(o, _current(o))});")


def _start(out: Lines, unit: CallUnit, o: OperandPlan, at: Mapping[str, str], buffer: int | str) -> None:
    axes = [at.get(loop.axis, loop.axis) for loop in unit.axes_of(o)]
    near = _near(o, buffer if isinstance(buffer, int) or "^" not in buffer else f"({buffer})")
    out.add(f"{unit.copy_name(o)}({', '.join([*axes, near, f'&{_ticket(o, buffer)}'])});")


def _kernel(out: Lines, unit: CallUnit) -> None:
    tile = _tile(unit)
    for o in unit.plan.operands:
        if len(o.l1) > 1:
            out.add(f"args.{o.operand.name} = {_near(o, _current(o))};")
    for m in _members(unit):
        if _plain(m) and _varies(value := member_value(m, tile)):
            out.add(*_assignments(m.name, value))
    if over := _over(unit):
        out.add(f"args.first = {' && '.join(f'{loop.axis} == 0' for loop in over)};")
        out.add(f"args.last = {' && '.join(f'{loop.axis} + {loop.tile} >= {loop.extent}' for loop in over)};")
    out.add(f"gf_team_run({unit.symbol}, &args);")


def _assignments(name: str, value: Value) -> list[str]:
    if isinstance(value, tuple):
        return [f"args.{name}[{i}] = {_c(v)};" for i, v in enumerate(value) if isinstance(v, Affine) and not v.is_number]
    return [f"args.{name} = {_c(value)};"]


def _leave(out: Lines, unit: CallUnit, depth: int) -> None:
    for o in (o for o in unit.outputs if o.depth == depth):
        _start(out, unit, o, {}, _current(o))
    for o in unit.plan.operands:
        if o.depth == depth and len(o.l1) > 1:
            out.add(f"{o.operand.name}_b ^= 1;")
