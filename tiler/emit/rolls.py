"""A rolled group as C: each call a function of the rows [from, to) of its result that it makes, and one function that
goes down the image, a few rows of the last result at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiler.emit.affine import Affine, greatest, least, number, term
from tiler.emit.arguments import write_assignments, write_initialiser
from tiler.emit.boxes import AxisRange, DimBox, operand_box
from tiler.emit.calls import headline, statement
from tiler.emit.copies import TileCopy, near, start_line, tile_copy, write_function
from tiler.emit.ctext import Lines, comment
from tiler.emit.fetches import steps_table, table_name
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
    out.add(*comment(headline(unit)))
    for copy in _travelling(unit):
        if not copy.is_plain:
            write_function(out, copy)
    bases = "".join(f", int32_t {o.operand.name}_base" for o in _in_rings(unit))
    out.open(f"static void run_{unit.name}(int32_t from, int32_t to{bases})")
    write_initialiser(out, unit)
    write_assignments(out, unit)
    out.add(f"gf_team_run({unit.symbol}, &args);")
    if ring is not None:
        result = next(
            o.operand.name for o in unit.plan.operands if o.operand.root == ring.root and o.operand.role == "out"
        )
        out.add(f"GF_SHADOW({shadows[ring.root]}, args.{result}, from, to, {ring.row_bytes});")
    out.close()


def _travelling(unit: CallUnit) -> list[TileCopy]:
    """The copies of rows that come and go."""
    return [tile_copy(unit, o) for o in unit.plan.operands if o.level == "l2" and o.operand.role != "const"]


def _in_rings(unit: CallUnit) -> list[OperandPlan]:
    return [o for o in unit.plan.operands if o.level == "ring"]


# ---- the group ----


def _write_rows(out: Lines, roll: Roll, units: Sequence[CallUnit]) -> None:
    """How far each call is behind a step, the last call's rows first."""
    last = len(units) - 1
    heights = [a[2] for a in roll.axes]
    out.add(*comment(["Rows of each call's result that are done after a step."]))
    out.open(f"static void rows_{units[0].name}(int32_t step, int32_t *to)")
    out.add(f"const int32_t end = step >= {roll.steps - 1};")
    out.add(f"to[{last}] = end ? {heights[last]} : {roll.step} * (step + 1);")
    for i in reversed(range(last)):
        out.add(f"to[{i}] = end ? {heights[i]} : {_rows_read(roll, units, i)};")
    out.close()
    out.add("")


def _write_roll(out: Lines, roll: Roll, units: Sequence[CallUnit]) -> None:
    _write_rows(out, roll, units)
    _write_again(out, roll, units)
    out.add(*comment(_described(roll, units)))
    out.add(*steps_table(units[0].name, units[0].fetches))
    out.open(f"static void {roll_name(units)}(void)")
    _write_state(out, roll, units)
    out.add(f"rows_{units[0].name}(0, next);")
    for i, unit in enumerate(units):
        _write_first(out, roll, i, unit)
    out.open(f"for (int32_t step = 0; step < {roll.steps}; step++)")
    _write_step(out, roll, units)
    out.close()
    out.add(*(f"gf_copy_settle(&out_{i});" for i, unit in enumerate(units) if _copied(unit, "out")))
    out.close()


def _described(roll: Roll, units: Sequence[CallUnit]) -> list[str]:
    ends = f"{units[0].plan.call} to {units[-1].plan.call}"
    title = f"{ends} go down the image together, {roll.step} rows of the last result a step"
    if roll.steps == 1:
        title = f"{ends} follow one another in L1: what a call reads from L2 arrives while those before it compute"
    return [
        title,
        *(f"{r.root}: {r.rows} of {r.height} rows of {r.row_bytes} B at L1 + {r.offset}{_how(r)}" for r in roll.rings),
    ]


def _write_state(out: Lines, roll: Roll, units: Sequence[CallUnit]) -> None:
    """Rows and tickets that last from step to step."""
    count = len(units)
    out.add(f"int32_t done[{count}] = {{0}}, to[{count}], next[{count}]; /* rows of each call's result */")
    if any(r.again for r in roll.rings):
        out.add(f"int32_t from[{count - 1}], then[{count - 1}]; /* first rows of what is made again, now and next */")
    if not all(r.again for r in roll.rings):
        out.add(f"int32_t base[{count - 1}] = {{0}}; /* the first row in each ring */")
    tickets = [f"{side}_{i} = {{0}}" for i, u in enumerate(units) for side in ("in", "out") if _copied(u, side)]
    if tickets:
        out.add(*statement("gf_ticket", tickets))


def _write_step(out: Lines, roll: Roll, units: Sequence[CallUnit]) -> None:
    """What is in the loop over the steps."""
    if len(set(units[0].fetches)) > 1:
        table = table_name(units[0].name)
        out.add(f"gf_call_begin({roll.first});", f"fetch({table}[step][0], {table}[step][1]);")
    out.add("memcpy(to, next, sizeof to);", f"rows_{units[0].name}(step + 1, next);")
    if any(r.again for r in roll.rings):
        again = f"again_{units[0].name}"
        out.add(f"{again}(done, from);", f"{again}(to, then);")
    for i, ring in enumerate(roll.rings):
        _write_slide(out, roll, units, i, ring)
    for i in range(len(units)):
        _write_turn(out, roll, units, i)
    out.add("memcpy(done, to, sizeof done);")


def _copied(unit: CallUnit, side: str) -> bool:
    """Whether copies come into a call's buffers, or leave them."""
    roles = ("out",) if side == "out" else ("in", "const")
    return any(o.level == "l2" and o.operand.role in roles for o in unit.plan.operands)


def _write_first(out: Lines, roll: Roll, number: int, unit: CallUnit) -> None:
    """The rows of the first step, and the constants."""
    if not _copied(unit, "in"):
        return
    on = f"in_{number}"
    out.add(f"gf_call_begin({roll.first + number});")
    for copy in (c for c in _travelling(unit) if not c.is_output):
        line = start_line(copy, {"from": "0", "to": f"next[{number}]"}, 0, on)
        out.add(f"if (next[{number}] > 0) {line}")
    for o in (o for o in unit.plan.operands if o.operand.role == "const" and not o.joined):
        out.add(f"gf_copy_bytes(GF_L2_L1, GF_IN, GF_L2({o.far}), {near(o)}, {o.span or o.tile_bytes}, &{on});")


def _how(ring: Ring) -> str:
    return ", made again where steps share them" if ring.again else ""


def _write_again(out: Lines, roll: Roll, units: Sequence[CallUnit]) -> None:
    """From where on what is made again is read."""
    if not any(r.again for r in roll.rings):
        return
    out.add(*comment(["First rows of what is made again, in a step before which so many rows were done."]))
    out.open(f"static void again_{units[0].name}(const int32_t *done, int32_t *from)")
    for i in (i for i in reversed(range(len(roll.rings))) if roll.rings[i].again):
        out.add(f"from[{i}] = {_rows_kept(roll, units, i)};")
    out.close()
    out.add("")


def _write_slide(out: Lines, roll: Roll, units: Sequence[CallUnit], number: int, ring: Ring) -> None:
    if ring.every >= roll.steps or ring.again:
        return
    keep = _rows_kept(roll, units, number)
    line = f"base[{number}] = gf_slide(GF_L1({ring.offset}), {ring.row_bytes}, base[{number}], {keep}, done[{number}]);"
    out.add(line if ring.every == 1 else f"if (step % {ring.every} == 0) {line}")


def _write_turn(out: Lines, roll: Roll, units: Sequence[CallUnit], number: int) -> None:
    """One call in one step: its rows must be there and its last results have left; the next rows are asked for as soon
    as these are used."""
    unit = units[number]
    bases = "".join(f", {_base(roll, _number(roll, o))}" for o in _in_rings(unit))
    copies = _travelling(unit)
    out.add(f"gf_call_begin({roll.first + number});")
    out.open(f"if ({_runs(roll, units, number, _NOW)})")
    out.add(*(f"gf_copy_settle(&{side}_{number});" for side in ("in", "out") if _copied(unit, side)))
    out.add(f"run_{unit.name}({_first(roll, number)}, to[{number}]{bases});")
    for copy in (c for c in copies if c.is_output):
        out.add(start_line(copy, {"from": f"done[{number}]", "to": f"to[{number}]"}, 0, f"out_{number}"))
    out.close()
    for copy in (c for c in copies if not c.is_output):
        at = {"from": _first(roll, number, _NEXT), "to": f"next[{number}]"}
        out.add(f"if ({_runs(roll, units, number, _NEXT)}) {start_line(copy, at, 0, f'in_{number}')}")


@dataclass(frozen=True, slots=True)
class _Step:
    """The C arrays that say of a step, per call, how many rows were done before it, the first row of what it makes
    again, and how many rows are done behind it."""

    done: str
    again: str
    to: str


_NOW, _NEXT = _Step("done", "from", "to"), _Step("to", "then", "next")


def _first(roll: Roll, number: int, step: _Step = _NOW) -> str:
    """The first row that a call makes in a step."""
    return f"{step.again if _again(roll, number) else step.done}[{number}]"


def _base(roll: Roll, number: int) -> str:
    """The first row in a ring."""
    return f"{'from' if _again(roll, number) else 'base'}[{number}]"


def _again(roll: Roll, number: int) -> bool:
    return number < len(roll.rings) and roll.rings[number].again


def _runs(roll: Roll, units: Sequence[CallUnit], number: int, step: _Step) -> str:
    """Whether a call makes rows in a step: new ones, or those made again that some call reads."""
    new = f"{step.to}[{number}] > {_first(roll, number, step)}"
    if not _again(roll, number):
        return new
    behind = dict.fromkeys([number, *_behind(roll, units, number)])
    if step == _NOW and len(units) - 1 in behind:  # which runs in every step that there is
        return new
    read = " || ".join(f"{step.to}[{j}] > {step.done}[{j}]" for j in behind)
    return f"{f'({read})' if len(behind) > 1 else read} && {new}"


def _behind(roll: Roll, units: Sequence[CallUnit], number: int) -> list[int]:
    """The calls behind one whose result is made again that read it, themselves or through more that is made again."""
    readers = [j for j, _ in _readers(roll, units, number)]
    return [k for j in readers for k in (j, *(_behind(roll, units, j) if _again(roll, j) else ()))]


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
        to = term(f"to[{j}]")
        if roll.axes[j][1] > 1:
            needs.append(to)
        else:
            box = _box(roll, units, j, o, number(0), to)
            needs.append(box.start + box.extent)
    return _fold_most(needs)


def _rows_kept(roll: Roll, units: Sequence[CallUnit], ring: int) -> Affine:
    """The first row that a reader needs, now or later."""
    kept = term(f"done[{ring}]")
    for j, o in _readers(roll, units, ring):
        done = term(_first(roll, j))
        start = done if roll.axes[j][1] > 1 else _box(roll, units, j, o, done, number(1)).start
        kept = least(kept, start)
    return kept


def _fold_most(values: Sequence[Affine]) -> Affine:
    result = values[0]
    for v in values[1:]:
        result = greatest(result, v)
    return result
