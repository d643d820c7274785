"""One kernel call as C: a function of plain nested loops over the split axes, and small functions that copy tiles.

Inputs are copied when entering the loop body at their depth, outputs when leaving it. A double-buffered input is
started one iteration of its own loop ahead; an output's buffer is waited for before it is written again. What the next
call wants early is started when this one's own first tiles have arrived.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiler.emit.ahead import ahead_name
from tiler.emit.arguments import varying, write_assignments, write_initialiser
from tiler.emit.copies import (
    TileCopy,
    current,
    near,
    start_line,
    ticket,
    tile_copy,
    wait_line,
    write_function,
)
from tiler.emit.ctext import Lines, comment
from tiler.emit.fetches import steps_table, table_name
from tiler.emit.staging import (
    Staged,
    declarations,
    near_line,
    staged,
    write_enter,
    write_first,
    write_functions,
    write_leave,
)
from tiler.emit.unit import CallUnit, size_lines
from tiler.schedule import Loop, OperandPlan, Trailing


def call_text(unit: CallUnit, following: CallUnit | None = None) -> str:
    """The copies' functions and `static void run_CALL(void)`; it starts what the call `following` it wants early."""
    copies = [tile_copy(unit, o) for o in unit.plan.operands if o.level == "l2" and not o.joined]
    stages = [staged(unit, o) for o in unit.plan.operands if o.level == "l3"]
    out = Lines()
    out.add(*comment(headline(unit)))
    for copy in copies:
        if not copy.is_plain and not copy.plan.ahead:
            write_function(out, copy)
    for s in stages:
        write_functions(out, s)
    out.add(*steps_table(unit.name, unit.fetches))
    out.open(f"static void run_{unit.name}(void)")
    _declarations(out, unit, copies, stages)
    _body(out, unit, copies, stages, 0, ahead_name(following) if following is not None else None)
    for copy in copies:
        if copy.is_output and copy.plan.depth:
            out.add(*(wait_line(copy, b) for b in range(1 + copy.twice)))
    for s in (s for s in stages if s.is_output and s.halved):
        out.add(*(f"gf_copy_settle(&{s.plan.operand.name}_ticket[{half}]);" for half in (0, 1)))
    out.close()
    return str(out)


# ---- the comment ----


def headline(unit: CallUnit) -> list[str]:
    plan, origin = unit.plan, unit.call.provenance
    evidence = f" ({origin.evidence})" if origin.evidence else ""
    tiles = _tiles(unit)
    width = max((len(o.operand.name) for o in plan.operands), default=0)
    return [
        f"{plan.call}: {plan.kernel}, {plan.implementation}; rule {origin.rule}, {origin.variant}{evidence}",
        f"nodes {', '.join(origin.nodes) or 'none'}",
        f"{tiles}; L1 {plan.l1_bytes} B; {plan.compute_cycles} cycles computing, {plan.total_cycles} with copies",
        *(f"  {o.operand.name:{width}} {_journey(o)}" for o in plan.operands),
        *([] if plan.trailing is None else [trailing_words(plan.trailing)]),
    ]


def _tiles(unit: CallUnit) -> str:
    plan = unit.plan
    if plan.loops:
        loops = ", ".join(f"{x.axis} {x.tile} of {x.extent}{', downwards' if x.down else ''}" for x in plan.loops)
        return f"{plan.tiles} tiles: {loops}"
    return "one tile" if plan.tiles == 1 else f"{plan.tiles} tiles of rows"


def trailing_words(t: Trailing) -> str:
    return f"{t.result} lies over {t.bytes} B of {t.input}, which no tile still reads when they are written"


def _journey(o: OperandPlan) -> str:
    arrow = "->" if o.operand.role == "out" else "<-"
    if o.level == "ring":
        return f"{arrow} L1 + {o.far}, rows: {o.operand.buffer}"
    if o.level == "l1":
        return f"{arrow} L1 + {o.far}, stays: {o.operand.buffer}"
    if o.joined:
        return f"{arrow} {o.level.upper()} + {o.far}, with {o.lead}: {o.operand.buffer}"
    stage = _stage(o)
    moved = o.bytes["l2_l1"]
    size = o.span or o.tile_bytes
    tiles = f"{moved} B" if moved == size else f"{moved} B in tiles of {size}"
    double = ", double-buffered" if len(o.l1) > 1 else ""
    early = ", started by the call before" if o.ahead else ""
    if o.shares is not None and o.depth:
        tiles += f" with {', '.join(o.shares.operands[1:])}, side by side"
    home = f"{o.level.upper()}, in pieces" if o.places else f"{o.level.upper()} + {o.far}"
    return f"{arrow} {home}{stage}, {tiles}{double}{early}: {o.operand.buffer}"


def _stage(o: OperandPlan) -> str:
    if o.l2_tile is None:
        return ""
    moved, size = o.bytes["l3_l2"], o.l2_tile.bytes
    at = " and ".join(map(str, o.stage))
    return f", {f'{moved} B' if moved == size else f'{moved} B in tiles of {size}'}, through L2 + {at}"


# ---- the function ----


def _declarations(out: Lines, unit: CallUnit, copies: Sequence[TileCopy], stages: Sequence[Staged]) -> None:
    write_initialiser(out, unit)
    own = [(c.ticket, c.twice) for c in copies if not c.plan.ahead]
    own += [(f"{s.plan.operand.name}_ticket", s.halved) for s in stages]
    tickets = [f"{ticket}{'[2] = {{0}}' if twice else ' = {0}'}" for ticket, twice in own]
    if tickets:
        out.add(*statement("gf_ticket", tickets))
    for o in (o for o in unit.plan.operands if len(o.l1) > 1):
        out.add(f"const uint32_t {o.operand.name}_l1[2] = {{{o.l1[0]}, {o.l1[1]}}};")
    out.add(*(line for s in stages for line in declarations(s)))
    alternating = [f"{c.plan.operand.name}_now = 0" for c in copies if c.twice]
    alternating += [f"{s.now} = 0" for s in stages if s.halved]
    if alternating:
        out.add(*statement("int32_t", alternating))
    out.add("")


def statement(ctype: str, declarators: Sequence[str]) -> list[str]:
    """A declaration, broken into lines."""
    lines, line = [], ctype
    for i, d in enumerate(declarators):
        end = ";" if i == len(declarators) - 1 else ","
        if len(line) + len(d) > 110:
            lines.append(line)
            line = "   "
        line += f" {d}{end}"
    return [*lines, line]


def _body(
    out: Lines,
    unit: CallUnit,
    copies: Sequence[TileCopy],
    stages: Sequence[Staged],
    depth: int,
    early: str | None = None,
) -> None:
    """The loop body at one depth; depth 0 is the function's, where `early` starts the next call's first tiles."""
    here = [c for c in copies if c.plan.depth == depth]
    loops = unit.plan.loops
    inner = loops[depth] if depth < len(loops) else None
    _start_inputs(out, here, loops[depth - 1] if depth else None)
    if inner is not None:
        for copy in (c for c in copies if c.plan.depth == depth + 1 and _is_ahead(c) and not c.plan.ahead):
            out.add(start_line(copy, {inner.axis: str(inner.last if inner.down else 0)}, current(copy.plan)))
    _enter_stages(out, stages, depth)
    _wait(out, here, depth)
    if early is not None:
        out.add(f"{early}();")
    if inner is None:
        write_assignments(out, unit)
        out.add(f"gf_team_run({unit.symbol}, &args);")
    else:
        out.open(_for(inner))
        out.add(*size_lines((inner,), varying(unit)))
        if not depth and len(set(unit.fetches)) > 1:
            step = f"{table_name(unit.name)}[{_step(inner)}]"
            out.add(f"fetch({step}[0], {step}[1]);")
        _body(out, unit, copies, stages, depth + 1)
        out.close()
    _leave(out, here, depth)
    for s in stages:
        if s.is_output and s.plan.depth == depth:
            out.add(near_line(s, near(s.plan)))
        if s.tile.depth == depth:
            write_leave(out, s)


def _enter_stages(out: Lines, stages: Sequence[Staged], depth: int) -> None:
    """Blocks of this body's inputs come, the first ones of the next body's start, and tiles pass on to L1."""
    for s in stages:
        if s.tile.depth == depth + 1:
            write_first(out, s)
    for s in (s for s in stages if not s.is_output):
        if s.tile.depth == depth:
            write_enter(out, s)
        if s.plan.depth == depth:
            out.add(near_line(s, near(s.plan)))


def _for(loop: Loop) -> str:
    axis = loop.axis
    if loop.down:
        return f"for (int32_t {axis} = {loop.last}; {axis} >= 0; {axis} -= {loop.tile})"
    return f"for (int32_t {axis} = 0; {axis} < {loop.extent}; {axis} += {loop.tile})"


def _step(loop: Loop) -> str:
    """The number of an iteration, in the order in which they run."""
    return f"({loop.last} - {loop.axis}) / {loop.tile}" if loop.down else f"{loop.axis} / {loop.tile}"


def _is_ahead(copy: TileCopy) -> bool:
    """An input inside a loop that has two buffers."""
    return not copy.is_output and copy.twice and copy.plan.depth > 0


def _start_inputs(out: Lines, here: Sequence[TileCopy], loop: Loop | None) -> None:
    """The copies of this body's inputs: of this iteration, or of the next where they are started ahead."""
    for copy in (c for c in here if not c.is_output):
        if not _is_ahead(copy) and not copy.plan.ahead:
            out.add(start_line(copy, {}, current(copy.plan)))
        if not _is_ahead(copy):
            continue
        assert loop is not None
        following = f"{loop.axis} {'-' if loop.down else '+'} {loop.tile}"
        line = start_line(copy, {loop.axis: following}, f"{current(copy.plan)} ^ 1")
        out.add(f"if ({following} {'>= 0' if loop.down else f'< {loop.extent}'}) {line}")


def _wait(out: Lines, here: Sequence[TileCopy], depth: int) -> None:
    """Inputs must have arrived; an output's last store from this buffer must have left."""
    for copy in here:
        if not copy.is_output or depth:
            out.add(wait_line(copy, current(copy.plan)))


def _leave(out: Lines, here: Sequence[TileCopy], depth: int) -> None:
    for copy in (c for c in here if c.is_output):
        out.add(start_line(copy, {}, current(copy.plan)))
        if not depth:
            out.add(f"gf_copy_settle(&{ticket(copy, current(copy.plan))});")
    for copy in here:
        if copy.twice:
            out.add(f"{copy.plan.operand.name}_now ^= 1;")
