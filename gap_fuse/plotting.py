"""Pictures of tensor statistics (matplotlib, an optional extra)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from quantizer import TensorStatistics, bin_edges

COLUMNS = 4
GRID = 100
MOST = 64
"""Tensors in one picture."""


def plot_statistics(statistics: Mapping[str, TensorStatistics], path: Path) -> None:
    """Write a picture of each tensor's distribution with its weak and strong fences. Raises GapFuseError without
    matplotlib, or with nothing to draw."""
    drawn = [(n, s) for n, s in statistics.items() if s.count][:MOST]
    if not drawn:
        raise GapFuseError(Diagnostic("no statistics to plot: nothing was measured"))
    figure, axes = _canvas(len(drawn))
    for axis, (name, value) in zip(axes, drawn, strict=False):
        _draw(axis, name, value)
    for axis in axes[len(drawn) :]:
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _canvas(count: int) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GapFuseError(Diagnostic("plots need matplotlib", help="pip install 'gap-fuse[plot]'")) from None
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(3.6 * columns, 2.4 * rows))
    return figure, np.atleast_1d(figure.subplots(rows, columns)).ravel()


def _draw(axis: Any, name: str, value: TensorStatistics) -> None:
    grid = np.linspace(value.min or 0.0, value.max or 0.0, GRID + 1)
    axis.stairs(_counts(value, grid), grid, fill=True, color="tab:blue")
    for outliers, style in ((value.weak_outliers, ":"), (value.strong_outliers, "--")):
        if outliers:
            axis.axvline(outliers.low, color="tab:orange", linestyle=style)
            axis.axvline(outliers.high, color="tab:orange", linestyle=style)
    axis.set_xlim(grid[0] - 1e-9, grid[-1] + 1e-9)
    axis.set_yticks([])
    axis.set_title(f"{name[-36:]} ({100 * (value.zero_fraction or 0):.0f} % zero)", fontsize=8)


def _counts(value: TensorStatistics, grid: np.ndarray) -> np.ndarray:
    """The histogram spread over an even grid; zeros, which would dwarf the rest after a ReLU, are in the title."""
    bins, counts = np.array(value.histogram.bins), np.array(value.histogram.counts)
    lower, upper = bin_edges(bins[bins != 0])
    ends = np.stack([lower, upper], 1).ravel()
    total = np.cumsum(counts[bins != 0])
    reached = np.stack([total - counts[bins != 0], total], 1).ravel()
    return np.diff(np.interp(grid, ends, reached)) if len(ends) else np.zeros(len(grid) - 1)
