"""What the call before starts for a call: tickets of those copies, their functions, and one that starts them all."""

from __future__ import annotations

from tiler.emit.copies import TileCopy, start_line, tile_copy, write_function
from tiler.emit.ctext import Lines, comment
from tiler.emit.unit import CallUnit


def ahead_name(unit: CallUnit) -> str | None:
    """The function that starts a call's first tiles early, if some are."""
    return f"ahead_{unit.name}" if any(o.ahead for o in unit.plan.operands) else None


def ahead_text(unit: CallUnit) -> str:
    """`static void ahead_CALL(void)`, to stand before the call before; nothing where that starts nothing."""
    name = ahead_name(unit)
    if name is None:
        return ""
    copies = [tile_copy(unit, o) for o in unit.plan.operands if o.ahead and not o.joined]
    out = Lines()
    out.add(*comment([f"{unit.plan.call}: copies that start while the call before computes"]))
    out.add(f"static gf_ticket {', '.join(_declared(c) for c in copies)};")
    for copy in copies:
        if not copy.is_plain:
            write_function(out, copy)
    out.open(f"static void {name}(void)")
    for copy in copies:
        out.add(start_line(copy, {loop.axis: str(loop.last if loop.down else 0) for loop in copy.loops}, 0))
    out.close()
    return str(out)


def _declared(copy: TileCopy) -> str:
    return f"{copy.ticket}[2]" if len(copy.plan.l1) > 1 else copy.ticket
