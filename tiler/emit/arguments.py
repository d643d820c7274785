"""The argument struct of a call as C: what is the same in every tile in its initialiser, the rest before each run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tiler.emit.affine import Affine, number, term
from tiler.emit.args import ArgMember
from tiler.emit.boxes import far_elements
from tiler.emit.copies import current, near
from tiler.emit.ctext import Lines, c_value
from tiler.emit.fill import Value, member_value
from tiler.emit.unit import CallUnit
from tiler.schedule import OperandPlan

WIDTH = 112
_OF_OPERAND = ("extent", "before", "after", "dim_at", "rows", "lines", "strides")
_ADDRESSES = ("pointer", "first", "last", "accumulator", "scratch", "pitch")


def write_initialiser(out: Lines, unit: CallUnit) -> None:
    """`SYMBOL_args args = {...};` one operand a line, then axes, attributes and the rest."""
    lines: list[str] = []
    for _, group in groupby(unit.members, key=_line_of):
        items = [f".{m.name} = {text}" for m in group if (text := _fixed(unit, m)) is not None]
        lines.extend(_wrapped(items))
    out.add(f"{unit.symbol}_args args = {{")
    out.depth += 2
    out.add(*(lines or ["0"]))
    out.depth -= 2
    out.add("};")


def write_assignments(out: Lines, unit: CallUnit) -> None:
    """What changes from tile to tile."""
    for o in unit.plan.operands:
        if len(o.l1) > 1:
            out.add(f"args.{o.operand.name} = {near(o, current(o))};")
        elif o.level in ("l1", "ring") and not (place := _place(unit, o)).is_number:
            out.add(f"args.{o.operand.name} = GF_L1({place});")
    for m in unit.members:
        if m.kind not in _ADDRESSES:
            out.add(*_assignments(m.name, member_value(m, unit.tile)))
    if loops := unit.reductions:
        out.add(f"args.first = {' && '.join(f'{loop.axis} == 0' for loop in loops)};")
        out.add(f"args.last = {' && '.join(f'{loop.axis} + {loop.tile} >= {loop.extent}' for loop in loops)};")


def varying(unit: CallUnit) -> list[Affine]:
    """The values that change from tile to tile."""
    values = [member_value(m, unit.tile) for m in unit.members if m.kind not in _ADDRESSES]
    parts = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
    parts += [_place(unit, o) for o in unit.plan.operands if o.level in ("l1", "ring")]
    return [v for v in parts if isinstance(v, Affine) and not v.is_number]


def _line_of(m: ArgMember) -> str:
    by_name = ("pointer", "extent", "before", "after", "rows", "lines", "strides", "scratch", "pitch")
    if m.kind in by_name:
        return m.of
    return "accumulator" if m.kind in ("first", "last") else m.kind


def _fixed(unit: CallUnit, m: ArgMember) -> str | None:
    """The member's initialiser, None where it changes; in an array that changes in part, 0 for those elements."""
    match m.kind:
        case "first" | "last":
            return None if unit.reductions else "1"
        case "accumulator":
            assert unit.plan.accumulator is not None
            return f"GF_L1({unit.plan.accumulator[0]})"
        case "scratch":
            return f"GF_L1({unit.plan.scratch[m.of][0]})"
        case "pitch":
            return str(unit.plan.scratch[m.of][1])
        case "pointer":
            plan = _operand(unit, m.of)
            return "NULL" if plan is None else _address(unit, plan)
        case kind if kind in _OF_OPERAND and _operand(unit, m.of) is None:
            return None  # absent: 0 like all that an initialiser leaves out
    value = member_value(m, unit.tile)
    if isinstance(value, tuple):
        return _c(tuple(number(0) if _varies(v) else v for v in value))
    return None if _varies(value) else _c(value)


def _address(unit: CallUnit, plan: OperandPlan) -> str | None:
    if plan.level in ("l1", "ring"):
        place = _place(unit, plan)
        return f"GF_L1({place})" if place.is_number else None
    return near(plan) if len(plan.l1) == 1 else None


def _place(unit: CallUnit, plan: OperandPlan) -> Affine:
    """Where the tile begins in L1, of an operand that stays there or whose ring begins with row OPERAND_base: a byte
    offset."""
    o = plan.operand
    place = far_elements(o, unit.boxes[o.name]) * o.itemsize + plan.far
    return place - term(f"{o.name}_base") * unit.row_bytes[o.root] if plan.level == "ring" else place


def _operand(unit: CallUnit, name: str) -> OperandPlan | None:
    return next((o for o in unit.plan.operands if o.operand.name == name), None)


def _varies(value: object) -> bool:
    return isinstance(value, Affine) and not value.is_number


def _c(value: object) -> str:
    if isinstance(value, tuple):
        return "{" + ", ".join(_c(v) for v in value) + "}"
    return str(value) if isinstance(value, Affine) else c_value(value)


def _assignments(name: str, value: Value) -> list[str]:
    if isinstance(value, tuple):
        return [f"args.{name}[{i}] = {_c(v)};" for i, v in enumerate(value) if _varies(v)]
    return [f"args.{name} = {_c(value)};"] if _varies(value) else []


def _wrapped(items: Sequence[str]) -> list[str]:
    lines: list[str] = []
    line = ""
    for item in items:
        if line and len(line) + len(item) > WIDTH:
            lines.append(line.rstrip())
            line = ""
        line += item + ", "
    return [*lines, line.rstrip()] if line else lines
