"""A picture of a schedule: the engines over time, and what lies where in L1 and L2. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from tiler import Schedule
from tiler.schedule import Residency

Span = tuple[float, float]
Block = tuple[str, int, int, float, float, str]  # name, offset, bytes, calls done when it begins and ends, colour


def draw(document: Mapping[str, Any], timetable: Schedule, path: Path) -> None:
    """Write the picture to `path`. Raises GapFuseError where matplotlib is absent or the file cannot be written."""
    try:
        from matplotlib.figure import Figure
    except ImportError as e:
        raise GapFuseError(Diagnostic("--plot needs matplotlib", help='pip install "gap-fuse[plot]"')) from e
    figure = Figure(figsize=(14, 9), layout="constrained")
    engines, near, middle = figure.subplots(3, 1, sharex=True, height_ratios=[1, 2, 2])
    calls = [(float(a), float(b)) for a, b in document["tiling"]["timeline"]["calls"]]
    _engines(engines, document, timetable, calls)
    _memory(near, "L1", _near_blocks(timetable), calls, timetable.budgets["l1"])
    _memory(middle, "L2", [_far_block(timetable, r) for r in timetable.residencies], calls, timetable.peaks["l2"])
    middle.set_xlabel("cycles (modelled)")
    figure.suptitle(f"{timetable.network} for {timetable.target}")
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as e:
        raise GapFuseError(f"cannot draw {path}: {e}") from e


def _engines(axes: Any, document: Mapping[str, Any], timetable: Schedule, calls: Sequence[Span]) -> None:
    """Computing, moving between L2 and L1 (the whole of it, hidden or not, from the call's start), L3."""
    rows = {"cores": 2, "L2<->L1": 1, "L3<->L2": 0}
    for plan, (start, end) in zip(timetable.calls, calls, strict=True):
        axes.broken_barh(
            [(end - plan.compute_cycles, plan.compute_cycles)], (rows["cores"] - 0.4, 0.8), facecolors="C0"
        )
        width = min(plan.moved_cycles, end - start)
        axes.broken_barh([(start, width)], (rows["L2<->L1"] - 0.4, 0.8), facecolors="C1")
    for _, start, end in document["tiling"]["timeline"]["copies"]:
        axes.broken_barh([(start, end - start)], (rows["L3<->L2"] - 0.4, 0.8), facecolors="C3")
    axes.set_yticks(list(rows.values()), list(rows))
    axes.set_title("engines", loc="left")


def _near_blocks(timetable: Schedule) -> list[Block]:
    """All in L1."""
    blocks: list[Block] = [(s.root, s.offset, s.bytes, s.first, s.last + 1, "C2") for s in timetable.stays]
    for i, c in enumerate(timetable.calls):
        blocks += [("", at, o.tile_bytes, i, i + 1, "C1") for o in c.operands for at in o.l1]
    return blocks


def _far_block(timetable: Schedule, r: Residency) -> Block:
    """Something in L2; what passes through it, in another colour, from one step of a call to a step of another."""
    passes = {root for t in timetable.transfers if t.start >= 0 for root in t.roots}
    first = r.first + r.first_step / _steps(timetable, r.first)
    last = r.last + (1.0 if r.last_step < 0 else (r.last_step + 1) / _steps(timetable, r.last))
    return r.root, r.offset, r.bytes, first, last, "C3" if r.root in passes else "C2"


def _steps(timetable: Schedule, call: int) -> int:
    roll = next((r for r in timetable.rolls if r.first == call), None)
    loops = timetable.calls[call].loops
    return roll.steps if roll is not None else loops[0].trips if loops else 1


def _time(calls: Sequence[Span], at: float, end: bool) -> float:
    """When so many calls, and a part of the next, are done."""
    number = min(int(at), len(calls) - 1)
    if end and at == number and number:
        number -= 1
    start, stop = calls[number]
    return start + (stop - start) * min(at - number, 1.0)


def _memory(axes: Any, title: str, blocks: Sequence[Block], calls: Sequence[Span], top: int) -> None:
    from matplotlib.patches import Rectangle

    for _, offset, size, first, last, colour in blocks:
        start, end = _time(calls, first, end=False), _time(calls, last, end=True)
        axes.add_patch(
            Rectangle((start, offset), end - start, size, facecolor=colour, edgecolor="black", linewidth=0.3)
        )
    axes.set_ylim(0, max(top, 1))
    axes.set_xlim(0, calls[-1][1] if calls else 1)
    axes.set_ylabel("bytes")
    axes.set_title(title, loc="left")
