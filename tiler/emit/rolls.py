"""A rolled group as C: each call a function of the rows [from, to) of its result that it makes, and one function that
goes down the image, a few rows of the last result at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiler.emit.affine import Affine, greatest, least, number, term
from tiler.emit.arguments import write_assignments, write_initialiser
from tiler.emit.boxes import AxisRange, DimBox, operand_box
from tiler.emit.calls import headline
from tiler.emit.copies import near, start_line, ticket, tile_copy, wait_line, write_function
from tiler.emit.ctext import Lines, comment
from tiler.emit.unit import CallUnit
from tiler.schedule import OperandPlan, Ring, Roll


def roll_text(roll: Roll, units: Sequence[CallUnit], shadows: dict[str, int]) -> str:
    """The functions of a rolled group. `shadows`: where a trace keeps each ring's whole tensor in L3."""
    out = Lines()
    for i, unit in enumerate(units):
        ring = roll.rings[i] if i < len(roll.rings) else None
        _write_call(out, unit, ring, shadows)
        out.add("")
    _write_roll(out, roll, units)
    return str(out)


def roll_name(units: Sequence[CallUnit]) -> str:
    """The group's function."""
    return f"roll_{units[0].name}"


# ---- a call ----


def _write_call(out: Lines, unit: CallUnit, ring: Ring | None, shadows: dict[str, int]) -> None:
    copies = [tile_copy(unit, o) for o in unit.plan.operands if o.level == "l2" and o.operand.role != "const"]
    out.add(*comment(headline(unit)))
    for copy in copies:
        if not copy.is_plain:
            write_function(out, copy)
    bases = "".join(f", int32_t {o.operand.name}_base" for o in _in_rings(unit))
    out.open(f"static void run_{unit.name}(int32_t from, int32_t to{bases})")
    write_initialiser(out, unit)
    for copy in copies:
        out.add(f"gf_ticket {ticket(copy)} = {{0}};")
    for copy in (c for c in copies if not c.is_output):
        out.add(start_line(copy, {}, 0), wait_line(copy, 0))
    write_assignments(out, unit)
    out.add(f"gf_team_run({unit.symbol}, &args);")
    for copy in (c for c in copies if c.is_output):
        out.add(start_line(copy, {}, 0), wait_line(copy, 0))
    if ring is not None:
        result = next(
            o.operand.name for o in unit.plan.operands if o.operand.root == ring.root and o.operand.role == "out"
        )
        out.add(f"GF_SHADOW({shadows[ring.root]}, args.{result}, from, to, {ring.row_bytes});")
    out.close()


def _in_rings(unit: CallUnit) -> list[OperandPlan]:
    return [o for o in unit.plan.operands if o.level == "ring"]


# ---- the group ----


def _write_roll(out: Lines, roll: Roll, units: Sequence[CallUnit]) -> None:
    last = len(units) - 1
    ends = f"{units[0].plan.call} to {units[-1].plan.call}"
    title = f"{ends} go down the image together, {roll.step} rows of the last result a step"
    rings = [f"{r.root}: {r.rows} of {r.height} rows of {r.row_bytes} B at L1 + {r.offset}" for r in roll.rings]
    out.add(*comment([title, *rings]))
    out.open(f"static void {roll_name(units)}(void)")
    numbers = range(len(units))
    out.add(f"int32_t {', '.join(f'done_{i} = 0' for i in numbers)}; /* rows of each call's result */")
    out.add(f"int32_t {', '.join(f'base_{i} = 0' for i in range(last))}; /* the first row in its ring */")
    _write_constants(out, roll, units)
    out.open(f"for (int32_t step = 0; step < {roll.steps}; step++)")
    heights = [a[2] for a in roll.axes]
    out.add(f"const int32_t end = step == {roll.steps - 1};")
    out.add(f"const int32_t to_{last} = GF_MIN({roll.step} * (step + 1), {heights[last]});")
    for i in reversed(range(last)):
        out.add(f"const int32_t to_{i} = end ? {heights[i]} : {_rows_read(roll, units, i)};")
    for i, unit in enumerate(units):
        bases = "".join(f", base_{_number(roll, o)}" for o in _in_rings(unit))
        out.open(f"if (to_{i} > done_{i})")
        out.add(f"gf_call_begin({roll.first + i});", f"run_{unit.name}(done_{i}, to_{i}{bases});")
        out.close()
    out.add(" ".join(f"done_{i} = to_{i};" for i in numbers))
    for i, r in enumerate(roll.rings):
        keep = _rows_kept(roll, units, i)
        out.add(f"base_{i} = gf_slide(GF_L1({r.offset}), {r.row_bytes}, base_{i}, {keep}, done_{i});")
    out.close()
    out.close()


def _write_constants(out: Lines, roll: Roll, units: Sequence[CallUnit]) -> None:
    out.add("gf_ticket constants = {0};")
    for i, unit in enumerate(units):
        constants = [o for o in unit.plan.operands if o.operand.role == "const"]
        if constants:
            out.add(f"gf_call_begin({roll.first + i});")
        for o in constants:
            out.add(f"gf_copy_bytes(GF_L2_L1, GF_IN, GF_L2({o.far}), {near(o)}, {o.tile_bytes}, &constants);")
    out.add("gf_copy_settle(&constants);")


def _number(roll: Roll, o: OperandPlan) -> int:
    return next(i for i, r in enumerate(roll.rings) if r.root == o.operand.root)


def _readers(roll: Roll, units: Sequence[CallUnit], ring: int) -> list[tuple[int, OperandPlan]]:
    root = roll.rings[ring].root
    return [
        (j, o)
        for j, unit in enumerate(units)
        for o in unit.plan.operands
        if o.operand.root == root and o.operand.role == "in"
    ]


def _box(roll: Roll, units: Sequence[CallUnit], reader: int, o: OperandPlan, at: Affine, n: Affine) -> DimBox:
    """What rows [at, at + n) of a reader's result read, along the rows of the operand; n is not 0."""
    axis, unit, _ = roll.axes[reader]
    plan = units[reader].plan
    whole = {a: AxisRange(number(0), number(e)) for a, e in plan.axes.items()}
    boxes = operand_box(o.operand, whole | {axis: AxisRange(at * unit, n * unit)}, plan.axes)
    return boxes[next(d for d, e in enumerate(o.operand.extent) if e > 1)]


def _rows_read(roll: Roll, units: Sequence[CallUnit], ring: int) -> Affine:
    """How many rows from the first the readers need for what they make in this step."""
    needs = []
    for j, o in _readers(roll, units, ring):
        to = term(f"to_{j}")
        if roll.axes[j][1] > 1:
            needs.append(to)
        else:
            box = _box(roll, units, j, o, number(0), to)
            needs.append(box.start + box.extent)
    return _fold_most(needs)


def _rows_kept(roll: Roll, units: Sequence[CallUnit], ring: int) -> Affine:
    """The first row that a reader still needs."""
    kept = term(f"done_{ring}")
    for j, o in _readers(roll, units, ring):
        done = term(f"done_{j}")
        start = done if roll.axes[j][1] > 1 else _box(roll, units, j, o, done, number(1)).start
        kept = least(kept, start)
    return kept


def _fold_most(values: Sequence[Affine]) -> Affine:
    result = values[0]
    for v in values[1:]:
        result = greatest(result, v)
    return result
