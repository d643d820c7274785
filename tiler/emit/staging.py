"""An operand's way through its stage in L2 as C: two small functions, one for the way between L3 and the stage, one for
that between the stage and L1; and when the stage begins to hold the next block of tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tiler.emit.affine import Affine, number, term, times
from tiler.emit.boxes import AxisRange, DimBox, box_lines, merged, named_box, operand_box
from tiler.emit.ctext import Lines
from tiler.emit.unit import CallUnit, size_lines, words
from tiler.schedule import L2Tile, Loop, OperandPlan


@dataclass(frozen=True, slots=True)
class Leg:
    """A function that copies one way: its name, the loops and addresses that it is given, and what it does."""

    name: str
    loops: tuple[Loop, ...]
    sides: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Staged:
    """An operand of a call that passes through L2, and what its stage holds at once."""

    unit: CallUnit
    plan: OperandPlan
    tile: L2Tile

    @property
    def is_output(self) -> bool:
        return self.plan.operand.role == "out"

    @property
    def halved(self) -> bool:
        """Whether two halves take turns: the way between one and L3 runs beside tiles of the other."""
        return len(self.plan.stage) > 1

    @property
    def direction(self) -> str:
        return "GF_OUT" if self.is_output else "GF_IN"

    @property
    def loop(self) -> Loop | None:
        """The loop in which blocks follow each other."""
        return self.unit.plan.loops[self.tile.depth - 1] if self.tile.depth else None

    @property
    def step(self) -> int:
        """How much of its axis a block holds."""
        return 0 if self.loop is None else self.loop.tile * self.tile.block

    @property
    def ticket(self) -> str:
        """Of the half in use."""
        name = f"{self.plan.operand.name}_ticket"
        return f"{name}[{self.now}]" if self.halved else name

    @property
    def now(self) -> str:
        return f"{self.plan.operand.name}_now"

    @property
    def stage(self) -> str:
        """The address of the half in use."""
        return f"{self.plan.operand.name}_halves[{self.now}]" if self.halved else str(self.plan.stage[0])

    @cached_property
    def deep(self) -> Leg:
        """Between L3 and the stage."""
        return _deep(self)

    @cached_property
    def near(self) -> Leg:
        """Between the stage and L1."""
        return _near(self)

    @property
    def first(self) -> str:
        """True in C where a block begins, empty where one begins in each iteration."""
        if self.loop is None or self.tile.block == 1:
            return ""
        step = self.step
        return _at_end(self.loop, step) if self.loop.down else f"{self.loop.axis} % {step} == 0"

    @property
    def last(self) -> str:
        """True in C where a block ends, likewise."""
        if self.loop is None or self.tile.block == 1:
            return ""
        step = self.step
        return f"{self.loop.axis} % {step} == 0" if self.loop.down else _at_end(self.loop, step)


def _at_end(loop: Loop, step: int) -> str:
    """At the last tile of a block, in the order of the axis."""
    whole = f"({loop.axis} + {loop.tile}) % {step} == 0"
    return whole if loop.extent % step == 0 else f"{loop.axis} == {loop.last} || {whole}"


def staged(unit: CallUnit, plan: OperandPlan) -> Staged:
    """An operand of level "l3"."""
    assert plan.l2_tile is not None
    return Staged(unit, plan, plan.l2_tile)


# ---- the functions ----


def write_functions(out: Lines, s: Staged) -> None:
    """`fetch_CALL_OPERAND(axes..., uint32_t stage, gf_ticket *ticket)` starts the copy of a block from L3, for a result
    `drain_` that to L3; `load_`, for a result `store_`, copies a tile between stage and L1 and ends with it."""
    for leg in (s.deep, s.near):
        given = [*(f"int32_t {loop.axis}" for loop in leg.loops), *leg.sides, "gf_ticket *ticket"]
        out.open(f"static void {leg.name}({', '.join(given)})")
        out.add(*leg.lines)
        out.close()
        out.add("")


def _deep(s: Staged) -> Leg:
    operand = s.plan.operand
    named = [named_box(operand.name, d, b) for d, b in zip(operand.dims, _block(s), strict=True)]
    far = number(operand.far_offset)
    for (box, _), stride in zip(named, operand.far_strides, strict=True):
        far = far + box.start * stride
    shape = merged([box.extent for box, _ in named], [number(t * operand.itemsize) for t in operand.far_strides])
    sides = f".far = GF_L3({far * operand.itemsize + s.plan.far}), .near = GF_L2_NEAR(stage)"
    lines = [line for _, more in named for line in more]
    copy = f"gf_copy_box(GF_L3_L2, {s.direction}, &box, ticket);"
    name = f"{'drain' if s.is_output else 'fetch'}_{s.unit.name}_{operand.name}"
    return _leg(s, name, ("uint32_t stage",), [*lines, *box_lines(sides, *shape, operand.itemsize), copy])


def _near(s: Staged) -> Leg:
    """Each copy ends here; an output's half may still be on its way to L3."""
    operand = s.plan.operand
    tile = [named_box(operand.name, d, b) for d, b in zip(operand.dims, s.unit.boxes[operand.name], strict=True)]
    alone = s.tile.depth == s.plan.depth and s.tile.block == 1
    lines = [line for _, more in tile for line in more]
    lines += _alone(s, [box.extent for box, _ in tile]) if alone else _within(s, [box for box, _ in tile])
    settle = "gf_copy_settle(ticket);"
    before = [settle] if s.is_output and s.halved else []
    name = f"{'store' if s.is_output else 'load'}_{s.unit.name}_{operand.name}"
    return _leg(s, name, ("uint32_t stage", "void *l1"), [*before, *lines, settle])


def _alone(s: Staged, extents: Sequence[Affine]) -> list[str]:
    """The stage holds this tile, dense."""
    size = number(s.plan.operand.itemsize)
    for extent in extents:
        size = times(size, extent)
    return [f"gf_copy_bytes(GF_L2_L1, {s.direction}, GF_L2(stage), l1, {size}, ticket);"]


def _within(s: Staged, tile: Sequence[DimBox]) -> list[str]:
    """The tile is a part of what the stage holds, dense."""
    operand = s.plan.operand
    boxes = zip(operand.dims, tile, s.unit.boxes[operand.name], _block(s), strict=True)
    block = [(named, []) if own == whole else named_box("block", d, whole) for d, named, own, whole in boxes]
    at, pitch, pitches = number(0), number(operand.itemsize), list[Affine]()
    for part, (whole, _) in reversed(list(zip(tile, block, strict=True))):
        pitches.insert(0, pitch)
        at, pitch = at + times(part.start - whole.start, pitch), times(pitch, whole.extent)
    sides = f".far = GF_L2({term('stage') + at}), .near = l1"
    box = box_lines(sides, *merged([part.extent for part in tile], pitches), operand.itemsize)
    copy = f"gf_copy_box(GF_L2_L1, {s.direction}, &box, ticket);"
    return [*_needed([line for _, more in block for line in more], words(box)), *box, copy]


def _needed(definitions: Sequence[str], read: frozenset[str]) -> list[str]:
    """Of `const int32_t NAME = ...;` those that are read, or that those read."""
    kept: list[str] = []
    for line in reversed(definitions):
        if line.split(" = ")[0].split()[-1] in read:
            kept.insert(0, line)
            read |= words([line])
    return kept


def _leg(s: Staged, name: str, sides: tuple[str, ...], lines: Sequence[str]) -> Leg:
    """With the definitions of what the lines read."""
    first = list(_block_lines(s, lines))
    loops = s.unit.loops_of([*first, *lines])
    return Leg(name, loops, sides, (*size_lines(loops, lines), *first, *lines))


def _block_lines(s: Staged, lines: Sequence[str]) -> Iterator[str]:
    read = words(lines)
    name = _block_name(s)
    if s.loop is None or not read & {name, f"{name}_n"}:
        return
    yield f"const int32_t {name} = {s.loop.axis} / {s.step} * {s.step};"
    if f"{name}_n" in read:
        yield f"const int32_t {name}_n = GF_MIN({s.step}, {s.loop.extent} - {name});"


def _block_name(s: Staged) -> str:
    return "" if s.loop is None else f"{s.loop.axis}_block"


def _block(s: Staged) -> tuple[DimBox, ...]:
    """The box of what the stage holds."""
    plan = s.unit.plan
    ranges = {a: AxisRange(number(0), number(n)) for a, n in plan.axes.items()}
    ranges |= {x.axis: s.unit.ranges[x.axis] for x in plan.loops[: s.tile.depth]}
    if s.loop is not None and s.tile.block > 1:
        name, step = _block_name(s), s.step
        length = number(step) if s.loop.extent % step == 0 else term(f"{name}_n")
        ranges[s.loop.axis] = AxisRange(term(name), length)
    return operand_box(s.plan.operand, ranges, plan.axes)


# ---- what calls them ----


def declarations(s: Staged) -> list[str]:
    at = s.plan.stage
    return [f"const uint32_t {s.plan.operand.name}_halves[2] = {{{at[0]}, {at[1]}}};"] if s.halved else []


def write_first(out: Lines, s: Staged) -> None:
    """Before the loop of the blocks of an input: the first of them starts."""
    if s.loop is not None and s.halved and not s.is_output:
        out.add(_deep_line(s, {s.loop.axis: str(s.loop.last if s.loop.down else 0)}, ""))


def write_enter(out: Lines, s: Staged) -> None:
    """Where a block of an input begins it comes, or it has come and the next one starts."""
    settle = f"gf_copy_settle(&{s.ticket});"
    if not s.halved or s.loop is None:
        _write_when(out, s.first, [_deep_line(s, {}, ""), settle])
        return
    axis, step = s.loop.axis, s.step
    following, more = (f"{axis} - {step}", ">= 0") if s.loop.down else (f"{axis} + {step}", f"< {s.loop.extent}")
    start = f"if ({following} {more}) {_deep_line(s, {axis: following}, ' ^ 1')}"
    _write_when(out, s.first, [start, settle])


def near_line(s: Staged, l1: str) -> str:
    """A tile between the stage and L1."""
    return f"{s.near.name}({', '.join([*(x.axis for x in s.near.loops), s.stage, l1, f'&{s.ticket}'])});"


def write_leave(out: Lines, s: Staged) -> None:
    """Where a block ends: a result's leaves for L3, halves take turns."""
    lines = [_deep_line(s, {}, "")] if s.is_output else []
    if s.halved:
        lines.append(f"{s.now} ^= 1;")
    elif s.is_output:
        lines.append(f"gf_copy_settle(&{s.ticket});")
    _write_when(out, s.last, lines)


def _write_when(out: Lines, condition: str, lines: Sequence[str]) -> None:
    if not condition:
        out.add(*lines)
    elif len(lines) == 1:
        out.add(f"if ({condition}) {lines[0]}")
    elif lines:
        out.open(f"if ({condition})")
        out.add(*lines)
        out.close()


def _deep_line(s: Staged, at: Mapping[str, str], other: str) -> str:
    """A block, that of other places of some axes; with `other` the other half."""
    axes = [at.get(x.axis, x.axis) for x in s.deep.loops]
    stage, ticket = (side.replace("_now]", f"_now{other}]") for side in (s.stage, s.ticket))
    return f"{s.deep.name}({', '.join([*axes, stage, f'&{ticket}'])});"
