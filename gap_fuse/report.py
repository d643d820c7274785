"""The report of a compilation: a JSON-able mapping (keys: docs/report.md) and a short readable summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fusion_engine.graph import Call, FusedGraph
from tiler.schedule import CallPlan, Schedule

Report = Mapping[str, Any]
FORMAT = 1
_FLOAT = ("float32", "float16", "float64")


def build_report(graph: FusedGraph, schedule: Schedule, notes: tuple[str, ...]) -> dict[str, Any]:
    """Everything docs/report.md documents, as plain JSON values."""
    plans = {p.call: p for p in schedule.calls}
    return {
        "format": FORMAT,
        "network": graph.name,
        "target": schedule.target,
        "inputs": [_port(graph, name) for name in graph.inputs],
        "outputs": [_port(graph, name) for name in graph.outputs],
        "budgets": dict(schedule.budgets),
        "calls": [_call(graph, c, plans[c.name]) for c in graph.calls],
        "views": [_view(b) for b in graph.buffers if b.alias is not None and b.provenance is not None],
        "hops": {
            hop: {"bytes": schedule.bytes[hop], "transfers": schedule.transfer_count.get(hop, 0)}
            for hop in schedule.bytes
        },
        "peaks": dict(schedule.peaks),
        "cycles": {"compute": schedule.compute_cycles, "total": schedule.total_cycles},
        "bounds": _bounds(schedule),
        "float_islands": float_islands(graph),
        "notes": [*notes, *schedule.notes],
    }


def _port(graph: FusedGraph, name: str) -> dict[str, Any]:
    b = graph.buffer[name]
    return {"name": name, "dtype": b.dtype, "shape": list(b.shape)}


def _call(graph: FusedGraph, call: Call, plan: CallPlan) -> dict[str, Any]:
    origin = call.provenance
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
            {"axis": loop.axis, "extent": loop.extent, "tile": loop.tile, "trips": loop.trips} for loop in plan.loops
        ],
        "tiles": plan.tiles,
        "l1_bytes": plan.l1_bytes,
        "bytes": {hop: sum(o.bytes.get(hop, 0) for o in plan.operands) for hop in _hops(plan)},
        "transfers": {hop: sum(o.transfers.get(hop, 0) for o in plan.operands) for hop in _hops(plan)},
        "bound_bytes": dict(plan.bound_bytes),
        "cycles": {"compute": plan.compute_cycles, "total": plan.total_cycles},
        "float_between_integers": call.name in {i["call"] for i in float_islands(graph)},
        "notes": list(plan.notes),
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
        "compute_cycles": b.compute_cycles,
        "bandwidth_cycles": dict(b.bandwidth_cycles),
    }


def float_islands(graph: FusedGraph) -> list[dict[str, str]]:
    """Calls that compute in float between a dequantisation and a quantisation, other than those two themselves, with
    the reason known."""
    made_by = {buffer: call for call in graph.calls for _, buffer in call.results}
    read_by: dict[str, list[Call]] = {}
    for call in graph.calls:
        for _, buffer in call.operands:
            read_by.setdefault(_owner(graph, buffer), []).append(call)
    islands = [
        c
        for c in graph.calls
        if _is_float(graph, c) and _after_dequantise(graph, made_by, c) and _before_quantise(graph, read_by, c)
    ]
    return [
        {"call": c.name, "kernel": c.kernel, "rule": c.provenance.rule, "nodes": ", ".join(c.provenance.nodes)}
        for c in islands
    ]


def _owner(graph: FusedGraph, name: str) -> str:
    buffer = graph.buffer[name]
    while buffer.alias is not None:
        buffer = graph.buffer[buffer.alias.of]
    return buffer.name


def _is_float(graph: FusedGraph, call: Call) -> bool:
    if call.kernel in ("quantize_linear", "dequantize_linear", "copy"):
        return False
    return all(graph.buffer[b].dtype in _FLOAT for _, b in call.results)


def _after_dequantise(graph: FusedGraph, made_by: Mapping[str, Call], call: Call) -> bool:
    return any(_reaches(graph, made_by, buffer, "dequantize_linear") for _, buffer in call.operands)


def _reaches(graph: FusedGraph, made_by: Mapping[str, Call], buffer: str, kernel: str) -> bool:
    frontier, seen = [buffer], set()
    while frontier:
        owner = _owner(graph, frontier.pop())
        if owner in seen or owner not in made_by:
            continue
        seen.add(owner)
        maker = made_by[owner]
        if maker.kernel == kernel:
            return True
        if _is_float(graph, maker) or maker.kernel == "copy":
            frontier.extend(b for _, b in maker.operands)
    return False


def _before_quantise(graph: FusedGraph, read_by: Mapping[str, list[Call]], call: Call) -> bool:
    frontier, seen = [b for _, b in call.results], set()
    while frontier:
        owner = _owner(graph, frontier.pop())
        if owner in seen:
            continue
        seen.add(owner)
        for reader in read_by.get(owner, []):
            if reader.kernel == "quantize_linear":
                return True
            if _is_float(graph, reader) or reader.kernel == "copy":
                frontier.extend(b for _, b in reader.results)
    return False


def summary(report: Report) -> str:
    """A dozen lines for a terminal."""
    calls = report["calls"]
    kernels = Counter(c["kernel"] for c in calls)
    bounds, hops, cycles = report["bounds"], report["hops"], report["cycles"]
    l1_hop = hops.get("l2_l1", {"bytes": 0, "transfers": 0})
    lines = [
        f"{report['network']} for {report['target']}: {len(calls)} kernel calls, "
        f"{sum(c['tiles'] for c in calls)} tiles",
        "  kernels   " + ", ".join(f"{k} x{n}" if n > 1 else k for k, n in sorted(kernels.items())),
        *[_level(level, report) for level in report["peaks"]],
        f"  L2<->L1   {l1_hop['bytes']:,} B in {l1_hop['transfers']:,} transfers, "
        f"{_ratio(l1_hop['bytes'], bounds['bytes_per_call'])} of every tensor once per call, "
        f"{_ratio(l1_hop['bytes'], bounds['fused_bytes'])} of fully fused",
        *[
            f"  L3<->L2   {h['bytes']:,} B in {h['transfers']:,} transfers"
            for name, h in hops.items()
            if name == "l3_l2" and h["bytes"]
        ],
        f"  cycles    {cycles['compute']:,} computing, {cycles['total']:,} with data movement (modelled)",
        *[
            f"  float     {i['call']} ({i['nodes']}) computes in float between integers: rule {i['rule']}"
            for i in report["float_islands"]
        ],
        *[f"  note      {note}" for note in report["notes"]],
    ]
    return "\n".join(lines)


def _level(level: str, report: Report) -> str:
    return f"  {level.upper():9} {report['peaks'][level]:,} of {report['budgets'].get(level, 0):,} B at peak"


def _ratio(value: int, bound: int) -> str:
    return f"{value / bound:.2f}x" if bound else "-"
