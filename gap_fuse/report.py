"""The report of a compilation: a JSON-able mapping (keys: docs/report.md) and a short readable summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fusion_engine.diagnostics import counted
from fusion_engine.graph import Call, FusedGraph
from tiler.l2_tiles import l2_sizes
from tiler.schedule import CallPlan, Group, OperandPlan, Roll, Schedule

Report = Mapping[str, Any]
FORMAT = 1


def build_report(
    graph: FusedGraph,
    schedule: Schedule,
    notes: tuple[str, ...],
    islands: Sequence[Mapping[str, str]],
    clock: float | None = None,
) -> dict[str, Any]:
    """Everything docs/report.md documents, as plain JSON values. `islands`: see islands.float_islands; `clock` in
    cycles per second."""
    between = {i["call"] for i in islands}
    return {
        "format": FORMAT,
        "network": graph.name,
        "target": schedule.target,
        "inputs": [_port(graph, name) for name in graph.inputs],
        "outputs": [_port(graph, name) for name in graph.outputs],
        "budgets": dict(schedule.budgets),
        "calls": [_call(schedule, i, c, c.name in between) for i, c in enumerate(graph.calls)],
        "groups": [_group(schedule, g) for g in schedule.groups],
        "gap": schedule.gap,
        "views": [_view(b) for b in graph.buffers if b.alias is not None and b.provenance is not None],
        "hops": {
            hop: {"bytes": schedule.bytes[hop], "transfers": schedule.transfer_count.get(hop, 0)}
            for hop in schedule.bytes
        },
        "peaks": dict(schedule.peaks),
        "activations": schedule.activations,
        "tables": schedule.tables.bytes,
        "cycles": {
            "compute": schedule.compute_cycles,
            "total": schedule.total_cycles,
            "milliseconds": None if clock is None else schedule.total_cycles / clock * 1e3,
        },
        "bounds": _bounds(schedule),
        "float_islands": [dict(i) for i in islands],
        "notes": [*notes, *schedule.notes],
    }


def _port(graph: FusedGraph, name: str) -> dict[str, Any]:
    b = graph.buffer[name]
    return {"name": name, "dtype": b.dtype, "shape": list(b.shape)}


def _call(schedule: Schedule, number: int, call: Call, between_integers: bool) -> dict[str, Any]:
    origin, plan = call.provenance, schedule.calls[number]
    fetched = schedule.fetched_inside(number)
    return {
        "name": call.name,
        "kernel": call.kernel,
        "implementation": plan.implementation,
        "rule": origin.rule,
        "variant": origin.variant,
        "evidence": origin.evidence,
        "nodes": list(origin.nodes),
        "operands": dict(call.operands),
        "results": dict(call.results),
        "axes": dict(plan.axes),
        "loops": [
            {"axis": loop.axis, "extent": loop.extent, "tile": loop.tile, "trips": loop.trips, "down": loop.down}
            for loop in plan.loops
        ],
        "trailing": None if plan.trailing is None else asdict(plan.trailing),
        "together": _together(plan),
        "stages": [_stage(plan, o) for o in plan.operands if o.l2_tile is not None],
        "tiles": plan.tiles,
        "l1_bytes": plan.l1_bytes,
        "bytes": _with(fetched[0], {h: sum(o.bytes.get(h, 0) for o in plan.operands) for h in _hops(plan)}),
        "transfers": _with(fetched[1], {h: sum(o.transfers.get(h, 0) for o in plan.operands) for h in _hops(plan)}),
        "bound_bytes": dict(plan.bound_bytes),
        "cycles": {"compute": plan.compute_cycles, "total": plan.total_cycles},
        "float_between_integers": between_integers,
        "notes": list(plan.notes),
    }


def _group(schedule: Schedule, group: Group) -> dict[str, Any]:
    plans = schedule.calls[group.first : group.last + 1]
    rolls = [r for r in schedule.rolls if group.first <= r.first <= group.last]
    rings = [ring for r in rolls for ring in r.rings]
    fetched = [schedule.fetched_inside(i) for i in range(group.first, group.last + 1)]
    return {
        "calls": [p.call for p in plans],
        "rolls": [_roll(schedule, r) for r in rolls],
        "stay": [
            *({"buffer": s.root, "l1": s.offset, "bytes": s.bytes} for s in schedule.stays if s.root in group.stay),
            *({"buffer": r.root, "l1": r.offset, "bytes": r.rows * r.row_bytes} for r in rings if r.rows == r.height),
        ],
        "bytes": _with(
            sum(n for n, _ in fetched),
            {hop: sum(o.bytes.get(hop, 0) for p in plans for o in p.operands) for hop in schedule.bytes},
        ),
        "transfers": _with(
            sum(n for _, n in fetched),
            {hop: sum(o.transfers.get(hop, 0) for p in plans for o in p.operands) for hop in schedule.bytes},
        ),
        "tiles": sum(p.tiles for p in plans),
        "bound_bytes": {"l2_l1": group.bound_bytes},
        "cycles": {"compute": sum(p.compute_cycles for p in plans), "total": sum(p.total_cycles for p in plans)},
        "l1_bytes": max(p.l1_bytes for p in plans),
    }


def _roll(schedule: Schedule, roll: Roll) -> dict[str, Any]:
    return {
        "calls": [p.call for p in schedule.calls[roll.first : roll.last + 1]],
        "step": roll.step,
        "steps": roll.steps,
        "rings": [
            {
                "buffer": r.root,
                "l1": r.offset,
                "rows": r.rows,
                "row_bytes": r.row_bytes,
                "height": r.height,
                "every": r.every,
                "again": r.again,
            }
            for r in roll.rings
        ],
    }


def _with(fetched: int, counts: dict[str, int]) -> dict[str, int]:
    """With what is fetched from L3 while the call runs."""
    return counts | {"l3_l2": counts.get("l3_l2", 0) + fetched} if fetched else counts


def _together(plan: CallPlan) -> list[list[str]]:
    """Operands that come with the same commands, in the order in which they lie."""
    leads = [o for o in plan.operands if o.span]
    return [
        [o.operand.name, *(x.operand.name for x in plan.operands if x.lead == o.operand.name)]
        if o.shares is None
        else list(o.shares.operands)
        for o in leads
    ]


def _stage(plan: CallPlan, o: OperandPlan) -> dict[str, Any]:
    """The tile in L2 of an operand that lies in L3."""
    assert o.l2_tile is not None
    loops = [(loop.axis, loop.tile) for loop in plan.loops]
    return {
        "operand": o.operand.name,
        "tiles": l2_sizes(o.operand, plan.axes, loops, o.l2_tile),
        "l2_bytes": o.l2_tile.bytes,
        "l1_bytes": o.tile_bytes,
        "halves": len(o.stage),
        "bytes": dict(o.bytes),
        "transfers": dict(o.transfers),
    }


def _hops(plan: CallPlan) -> list[str]:
    return sorted({hop for o in plan.operands for hop in o.bytes})


def _view(buffer: Any) -> dict[str, Any]:
    origin = buffer.provenance
    return {
        "buffer": buffer.name,
        "of": buffer.alias.of,
        "rule": origin.rule,
        "variant": origin.variant,
        "nodes": list(origin.nodes),
    }


def _bounds(schedule: Schedule) -> dict[str, Any]:
    b = schedule.bounds
    return {
        "bytes_per_call": b.bytes_per_call,
        "fused_bytes": b.fused_bytes,
        "live_bytes": b.live_bytes,
        "kept_bytes": b.kept_bytes,
        "compute_cycles": b.compute_cycles,
        "bandwidth_cycles": dict(b.bandwidth_cycles),
    }


def summary(report: Report) -> str:
    """A dozen lines for a terminal."""
    calls = report["calls"]
    kernels = Counter(c["kernel"] for c in calls)
    bounds, hops = report["bounds"], report["hops"]
    l1_hop = hops.get("l2_l1", {"bytes": 0, "transfers": 0})
    lines = [
        f"{report['network']} for {report['target']}: {counted(len(calls), 'kernel call')}, "
        f"{counted(sum(c['tiles'] for c in calls), 'tile')}",
        "  kernels   " + ", ".join(f"{k} x{n}" if n > 1 else k for k, n in sorted(kernels.items())),
        *[_level(level, report) for level in report["peaks"]],
        f"  L2<->L1   {l1_hop['bytes']:,} B in {counted(l1_hop['transfers'], 'transfer')}, "
        f"{_ratio(l1_hop['bytes'], bounds['bytes_per_call'])} of every tensor once per call, "
        f"{_ratio(l1_hop['bytes'], bounds['fused_bytes'])} of fully fused",
        *[
            f"  L3<->L2   {h['bytes']:,} B in {counted(h['transfers'], 'transfer')}"
            for name, h in hops.items()
            if name == "l3_l2" and h["bytes"]
        ],
        *_groups(report),
        _cycles(report),
        *_islands(report["float_islands"]),
        *[f"  note      {note}" for note in report["notes"]],
    ]
    return "\n".join(lines)


def _cycles(report: Report) -> str:
    """The parts, which add up to the whole: in the calls, what is not hidden behind computing; beside them, L3."""
    cycles = report["cycles"]
    inside = sum(c["cycles"]["total"] for c in report["calls"])
    parts = [f"{cycles['compute']:,} computing", f"{inside - cycles['compute']:,} moving data in the calls"]
    parts += [f"{cycles['total'] - inside:,} for L3 beside them"] if cycles["total"] != inside else []
    return f"  cycles    {cycles['total']:,} = {' + '.join(parts)} (modelled){_time(cycles)}"


def _groups(report: Report) -> list[str]:
    fused = [g for g in report["groups"] if g["stay"] or g["rolls"]]
    if not fused:
        return []
    gap = (
        ""
        if report["gap"] is None
        else f"; at most {100 * report['gap']:.1f} % above the least (addresses and L3 aside)"
    )
    stay = sum(len(g["stay"]) for g in fused)
    calls = sum(len(g["calls"]) for g in fused)
    rings = [ring for g in fused for r in g["rolls"] for ring in r["rings"]]
    rows, again = sum(r["rows"] < r["height"] for r in rings), sum(r["again"] for r in rings)
    rolled = f", {counted(rows, 'tensor')} {'passes' if rows == 1 else 'pass'} by rows" if rows else ""
    rolled += f" ({again} made again where steps share rows)" if again else ""
    over = sum(c["trailing"] is not None for c in report["calls"])
    rolled += f", {counted(over, 'result')} over {'its input' if over == 1 else 'their inputs'}" if over else ""
    staying = f"{counted(stay, 'tensor')} {'stays' if stay == 1 else 'stay'} in L1"
    return [f"  fused     {staying}{rolled}, {counted(calls, 'call')} in {counted(len(fused), 'group')}{gap}"]


def _islands(islands: Sequence[Mapping[str, str]]) -> list[str]:
    """A line for each reason, naming its calls."""
    calls: dict[str, list[str]] = {}
    for island in islands:
        calls.setdefault(island["why"], []).append(island["call"])
    return [
        f"  float     {', '.join(names)} compute{'s' if len(names) == 1 else ''} in float between integers: {why}"
        for why, names in calls.items()
    ]


def _level(level: str, report: Report) -> str:
    peak, budget = report["peaks"][level], report["budgets"].get(level, 0)
    activations = f", {report['activations']:,} B of them activations" if level == "l2" else ""
    tables = f"; {report['tables']:,} B of tables beside it" if level == "l2" and report["tables"] else ""
    return f"  {level.upper():9} {peak:,} of {budget:,} B at peak{activations}{tables}"


def _time(cycles: Mapping[str, Any]) -> str:
    milliseconds = cycles["milliseconds"]
    if milliseconds is None:
        return ""
    return f": {milliseconds:,.2f} ms" if milliseconds >= 1 else f": {milliseconds:.2g} ms"


def _ratio(value: int, bound: int) -> str:
    return f"{value / bound:.2f}x" if bound else "-"
