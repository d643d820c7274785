"""A picture of a schedule to pin up: the engines over time, and what lies where in L1 and L2. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fusion_engine.diagnostics import Diagnostic, GapFuseError, counted
from gap_fuse import tiling_blocks as blocks
from gap_fuse.compiling import Result
from gap_fuse.tiling_blocks import Block, Time

SIZE, DPI = (20.0, 13.0), 120  # inches; A3 in landscape, nearly
COLOURS = {
    blocks.COMPUTING: "#4c78a8",
    blocks.WAITED: "#d9483b",
    blocks.HIDDEN: "#f2b06e",
    blocks.FETCHED: "#8c6bb1",
    blocks.STAYS: "#59a14f",
    blocks.RING: "#a5d296",
    blocks.TILE: "#f2b06e",
    blocks.WORK: "#bab0ac",
    blocks.ACTIVATION: "#59a14f",
    blocks.CONSTANT: "#9ecae1",
    blocks.PASSING: "#8c6bb1",
    blocks.STAGE: "#c5b0d5",
}
FONTS = (10, 9, 8, 7, 6)  # points, the largest that fits
WIDE, HIGH = 0.62, 1.25  # of a letter, in font sizes


def draw(document: Mapping[str, Any], result: Result, path: Path) -> None:
    """Write the picture to `path`. Raises GapFuseError where matplotlib is absent or the file cannot be written."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as e:
        raise GapFuseError(Diagnostic("--plot needs matplotlib", help='pip install "gap-fuse[plot]"')) from e
    figure = Figure(figsize=SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(3, 1, sharex=True, height_ratios=[1.1, 2, 2])
    named = _panels(axes, document, result)
    figure.suptitle(_title(document), fontsize=16, fontweight="bold", parse_math=False)
    figure.draw_without_rendering()  # names go where there is room: the sizes are known from here on
    for axis, rectangle, name in named:
        _name(axis, rectangle, name)
    try:
        figure.savefig(path, dpi=DPI)
    except (OSError, ValueError) as e:
        raise GapFuseError(f"cannot draw {path}: {e}") from e


Named = tuple[Any, tuple[float, float, float, float], str]  # axes; x, y, width, height in their units; text


def _panels(axes: Sequence[Any], document: Mapping[str, Any], result: Result) -> list[Named]:
    plan = result.schedule
    calls, copies = blocks.spans(document)
    near = list(blocks.near_blocks(plan, result.kernels, result.target.cores, calls))
    far = list(blocks.far_blocks(plan, calls))
    named = _engines(axes[0], blocks.engine_bars(plan, calls, copies), bool(plan.rolls))
    named += _memory(axes[1], "L1", near, plan.peaks["l1"], plan.budgets["l1"])
    named += _memory(axes[2], "L2", far, plan.peaks["l2"], plan.budgets["l2"])
    for axis in axes:
        _times(axis, calls)
    axes[2].set_xlabel("cycles (modelled)", fontsize=12)
    return named


def _title(document: Mapping[str, Any]) -> str:
    cycles, calls = document["cycles"], document["calls"]
    tiles = counted(sum(c["tiles"] for c in calls), "tile")
    time = "" if cycles["milliseconds"] is None else f" ({cycles['milliseconds']:,.3g} ms)"
    whole = f"{counted(len(calls), 'kernel call')}, {tiles}, {cycles['total']:,} cycles{time}"
    return f"{document['network']} for {document['target']}: {whole}"


def _engines(axis: Any, bars: Sequence[blocks.Bar], rolled: bool) -> list[Named]:
    for b in bars:
        axis.broken_barh([(b.start, b.cycles)], (b.row - 0.42, 0.84), facecolors=COLOURS[b.kind], edgecolor="white")
    rows = {2: "cores", 1: "L2<->L1", 0: "L3<->L2"}
    axis.set_yticks(list(rows), list(rows.values()), fontsize=12)
    axis.set_ylim(-0.6, 2.6)
    how = "within a call, what is waited for is drawn first" + (
        "; calls that pass by rows together are drawn one after the other" if rolled else ""
    )
    axis.set_title(f"engines ({how})", loc="left", fontsize=13)
    _legend(axis, (b.kind for b in bars))
    return [(axis, (b.start, b.row - 0.42, b.cycles, 0.84), b.name) for b in bars if b.name]


def _memory(axis: Any, title: str, found: Sequence[Block], peak: int, budget: int) -> list[Named]:
    """Blocks over time under the budget's line, or, where that is far above them, under an arrow to it."""
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import FuncFormatter

    for b in found:
        place = (b.start, b.offset), b.end - b.start, b.bytes
        axis.add_patch(Rectangle(*place, facecolor=COLOURS[b.kind], edgecolor="black", linewidth=0.5))
    near = budget <= 2 * peak
    top = max(budget * 1.06 if near else peak * 1.25, 1)
    axis.set_ylim(0, top)
    axis.axhline(peak, color="black", linestyle=":", linewidth=1.2, label=f"peak {peak:,} B")
    if near:
        axis.axhline(budget, color="#b00020", linewidth=2, label=f"budget {budget:,} B")
    else:
        axis.plot([], [], color="#b00020", marker="^", linestyle="", label=f"budget {budget:,} B, above the picture")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    axis.set_ylabel("bytes", fontsize=12)
    axis.set_title(f"{title}: {peak:,} of {budget:,} B at peak", loc="left", fontsize=13)
    _legend(axis, (b.kind for b in found))
    return [(axis, (b.start, b.offset, b.end - b.start, b.bytes), b.name) for b in found]


def _legend(axis: Any, kinds: Any) -> None:
    """What is there, in the order of COLOURS, then the lines."""
    from matplotlib.patches import Patch

    there = set(kinds)
    patches = [Patch(facecolor=c, edgecolor="black", label=kind) for kind, c in COLOURS.items() if kind in there]
    lines, _ = axis.get_legend_handles_labels()
    axis.legend(handles=[*patches, *lines], loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=11)


def _times(axis: Any, calls: Sequence[Time]) -> None:
    """The cycles below, a line where each call begins."""
    from matplotlib.ticker import FuncFormatter

    for start, _ in calls:
        axis.axvline(start, color="#cccccc", linewidth=0.6, zorder=0)
    axis.set_xlim(0, max(calls[-1][1] if calls else 1, 1))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    axis.tick_params(labelsize=11)


def _name(axis: Any, rectangle: tuple[float, float, float, float], name: str) -> None:
    """The name where the rectangle begins, along it or upright, in the largest font in which it fits; both ends of a
    long one; nothing where not even that fits."""
    x, y, width, height = rectangle
    (left, low), (right, high) = axis.transData.transform([(x, y), (x + width, y + height)])
    points = 72 / axis.figure.dpi
    wide, tall = (right - left) * points, (high - low) * points
    for text in (name, f"{name[:7]}..{name[-7:]}") if len(name) > 16 else (name,):
        for size in FONTS:
            long, thick = len(text) * WIDE * size + 2, HIGH * size
            upright = long > wide
            if (long > wide or thick > tall) and (long > tall or thick > wide):
                continue
            pad = 0 if upright else 2 * width / max(wide, 1)
            how = {"ha": "center" if upright else "left", "va": "center", "fontsize": size, "clip_on": True}
            at = x + (width / 2 if upright else pad)
            axis.text(at, y + height / 2, text, rotation=90 if upright else 0, parse_math=False, **how)
            return
