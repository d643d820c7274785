"""What `gap-fuse tile` prints: a network's plan beside its lower bounds, what binds it, and what more memory buys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fusion_engine.diagnostics import Diagnostic, GapFuseError, did_you_mean
from gap_fuse.compiling import Result
from gap_fuse.progress import Said, nothing_said
from tiler import Schedule, order_and_schedule, pareto, smallest_memories, timeline_of
from tiler.options import CallOptions

MORE = 1024  # bytes of L1 whose worth is told
VAST = 1 << 24  # bytes of L1 that stand for no limit
STAGES = 3  # more plans, or as long
SLACK = 50  # a call is bound by computing where at most 1/SLACK of its cycles are not

Document = dict[str, Any]


def tiling(
    result: Result,
    l1: int | None,
    l2: int | None,
    minimise: str,
    show: str | None = None,
    fused: bool = True,
    say: Said = nothing_said,
) -> Document:
    """The report with `tiling` added: `binds` per call, `more_l1`, `unlimited_l1`, `smallest`, `timeline`, and `shown`:
    for every call that `show` names (a call, a kernel, a node, or a buffer it makes) its Pareto set, with its operands
    where the plan has them (`places`), and the tiling `chosen`. `say` is told each of the `STAGES` that take long.
    Raises GapFuseError for an unknown name."""
    shown = () if show is None else _shown(result, show)
    budget = result.schedule.budgets["l1"]
    known: dict[object, CallOptions] = {}
    say("planning as if L1 had no end")
    vast = _with(result, VAST, l2, "cycles" if minimise == "l1" else minimise, fused, known)
    say("planning with 1 kB of L1 more")
    more = _with(result, budget + MORE, l2, minimise, fused, known)
    say("looking for the smallest memories")
    smallest = smallest_memories(result.graph, result.kernels, result.target, budget, minimise, fused, known)
    times = timeline_of(result.schedule, result.target)
    return {
        **result.report,
        "tiling": {
            "minimise": minimise,
            "ratios": _ratios(result.report),
            "moved_cycles": _moved(result.schedule),
            "l3_bytes": _l3_bytes(result.schedule),
            "binds": {
                c.call: _binds(result.schedule, i, vast, times.waited[i]) for i, c in enumerate(result.schedule.calls)
            },
            "more_l1": _difference(result.schedule, more),
            "unlimited_l1": _difference(result.schedule, vast),
            "smallest": smallest,
            "timeline": {
                "calls": [[round(a), round(b)] for a, b in times.calls],
                "copies": [[root, round(a), round(b)] for root, a, b in times.copies],
            },
            "shown": [_pareto(result, call, l1, minimise, known) for call in shown],
        },
    }


def _shown(result: Result, name: str) -> tuple[str, ...]:
    """All calls of the first kind of name that fits: one node may have become several calls, a kernel has many."""
    calls = result.graph.calls
    names = [(c.name, ((c.name,), c.provenance.nodes, tuple(b for _, b in c.results), (c.kernel,))) for c in calls]
    for kind in range(4):
        if found := tuple(call for call, kinds in names if name in kinds[kind]):
            return found
    known = list(dict.fromkeys(n for _, kinds in names for kind in kinds for n in kind))
    hint = (
        did_you_mean(name, known)
        or "the table of `gap-fuse tile MODEL` lists the calls, `gap-fuse explain MODEL` their nodes"
    )
    raise GapFuseError(Diagnostic(f"--show {name}: no call, node, result or kernel has this name", help=hint))


def _with(
    result: Result, l1: int, l2: int | None, minimise: str, fused: bool, known: dict[object, CallOptions]
) -> Schedule | GapFuseError:
    """The plan with other sizes, or why there is none."""
    try:
        return order_and_schedule(
            result.graph, result.kernels, result.target, l1=l1, l2=l2, minimise=minimise, fused=fused, known=known
        )[1]
    except GapFuseError as e:
        return e


def _ratios(report: Mapping[str, Any]) -> Document:
    bounds, moved = report["bounds"], report["hops"]["l2_l1"]["bytes"]
    return {
        "once_per_call": moved / max(bounds["bytes_per_call"], 1),
        "fused": moved / max(bounds["fused_bytes"], 1),
        "compute": report["cycles"]["total"] / max(bounds["compute_cycles"], 1),
        "live": report["activations"] / max(bounds["live_bytes"], 1),
    }


def _moved(timetable: Schedule) -> Document:
    """Cycles of data movement between L2 and L1, per call: hidden behind computing and not."""
    exposed = {c.call: c.total_cycles - c.compute_cycles for c in timetable.calls}
    return {
        c.call: {"hidden": max(0, c.moved_cycles - exposed[c.call]), "exposed": exposed[c.call]}
        for c in timetable.calls
    }


def _l3_bytes(timetable: Schedule) -> Document:
    """Per call what moves between L3 and L2 for its operands, and what it or the moment before it starts to fetch."""
    fetched = [0] * len(timetable.calls)
    for t in timetable.transfers:
        if t.start >= 0:
            fetched[t.start] += t.bytes
    return {
        c.call: n + sum(o.bytes.get("l3_l2", 0) for o in c.operands)
        for c, n in zip(timetable.calls, fetched, strict=True)
    }


def _binds(timetable: Schedule, number: int, vast: Schedule | GapFuseError, waited: float) -> str:
    """`computing`, `l1` where more of it would make the call quicker, `l3` where it waits for that, else `moving`."""
    call = timetable.calls[number]
    exposed = call.total_cycles - call.compute_cycles
    if any(o.level == "l3" for o in call.operands) or waited * SLACK > call.total_cycles:
        return "l3"
    if exposed * SLACK <= call.total_cycles:
        return "computing"
    best = call.total_cycles if isinstance(vast, GapFuseError) else _cycles_in(vast, call.call)
    return "l1" if (call.total_cycles - best) * SLACK > call.total_cycles else "moving"


def _cycles_in(plan: Schedule, call: str) -> int:
    """0 where a plan does without the call: a pad that is made in place there."""
    return next((c.total_cycles for c in plan.calls if c.call == call), 0)


def _difference(now: Schedule, other: Schedule | GapFuseError) -> Document:
    if isinstance(other, GapFuseError):
        return {"refused": other.diagnostics[0].message}
    return {
        "l1": other.budgets["l1"],
        "cycles": other.total_cycles - now.total_cycles,
        "bytes": other.bytes["l2_l1"] - now.bytes["l2_l1"],
        "stay": len(other.stays) - len(now.stays),
    }


def _pareto(result: Result, call: str, l1: int | None, minimise: str, known: dict[object, CallOptions]) -> Document:
    plan = next(c for c in result.schedule.calls if c.call == call)
    points, chosen = pareto(result.graph, result.kernels, result.target, result.schedule, call, l1, minimise, known)
    return {
        "call": call,
        "pareto": [asdict(t) for t in points],
        "chosen": asdict(chosen),
        "places": {o.operand.name: "rows in L1" if o.level == "ring" else o.level.upper() for o in plan.operands},
        "early": [o.operand.name for o in plan.operands if o.ahead],
    }
