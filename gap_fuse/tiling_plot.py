"""A picture of a schedule: the engines over time, and what lies where in L1 and L2. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from tiler import Schedule

Span = tuple[float, float]


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
    _memory(middle, "L2", [(r.root, r.offset, r.bytes, r.first, r.last, "C2") for r in timetable.residencies], calls,
            timetable.peaks["l2"])  # fmt: skip
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


def _near_blocks(timetable: Schedule) -> list[tuple[str, int, int, int, int, str]]:
    """(name, offset, bytes, first and last call, colour) of all in L1."""
    blocks = [(s.root, s.offset, s.bytes, s.first, s.last, "C2") for s in timetable.stays]
    for i, c in enumerate(timetable.calls):
        blocks += [("", at, o.tile_bytes, i, i, "C1") for o in c.operands for at in o.l1]
    return blocks


def _memory(
    axes: Any, title: str, blocks: Sequence[tuple[str, int, int, int, int, str]], calls: Sequence[Span], top: int
) -> None:
    from matplotlib.patches import Rectangle

    for _, offset, size, first, last, colour in blocks:
        start, end = calls[first][0], calls[last][1]
        axes.add_patch(
            Rectangle((start, offset), end - start, size, facecolor=colour, edgecolor="black", linewidth=0.3)
        )
    axes.set_ylim(0, max(top, 1))
    axes.set_xlim(0, calls[-1][1] if calls else 1)
    axes.set_ylabel("bytes")
    axes.set_title(title, loc="left")
