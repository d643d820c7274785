"""Which int8 grid each activation has: from statistics, from ranges that the model states, shared where values move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from quantizer.statistics import KnownRange, TensorStatistics

KEEPS_GRID = ("MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Identity")


@dataclass(frozen=True, slots=True)
class Grid:
    """int8 q stands for (q - zero) * scale."""

    scale: float
    zero: int


FIXED = {"Softmax": Grid(1 / 256, -128), "Sigmoid": Grid(1 / 256, -128), "Tanh": Grid(1 / 128, 0)}


def grids(
    graph: onnx.GraphProto, tensors: Sequence[str], statistics: Mapping[str, TensorStatistics]
) -> dict[str, Grid]:
    """One grid per tensor; operators that only move or join values read and make one grid.

    Raises GapFuseError for tensors whose range neither statistics, a stated range nor a shared grid tells.
    """
    shared = _Shared({t: t for t in tensors})
    for node in graph.node:
        if node.op_type in KEEPS_GRID:
            shared.join([node.input[0], node.output[0]])
    fixed = {
        shared.of(n.output[0]): FIXED[n.op_type] for n in graph.node if n.op_type in FIXED and n.output[0] in shared
    }
    for node in graph.node:
        if node.op_type == "Concat" and node.output[0] in shared:
            _join_parts(node, shared, fixed)
    members: dict[str, list[TensorStatistics]] = {}
    for t in tensors:
        known = statistics.get(t)
        members.setdefault(shared.of(t), []).extend([known] if known is not None and _tells(known) else [])
    settled = {root: fixed.get(root) or _grid(known) for root, known in members.items()}
    found = {t: grid for t in tensors if (grid := settled[shared.of(t)]) is not None}
    if missing := [t for t in tensors if t not in found]:
        raise GapFuseError([_unknown(t, statistics.get(t)) for t in missing])
    return found


def _unknown(tensor: str, statistics: TensorStatistics | None) -> Diagnostic:
    message = f"the range of tensor '{tensor}' is not known: "
    if statistics is None:
        return Diagnostic(message + "it has no statistics", help="collect them over quantizer.activations(model)")
    help = "give samples that the model takes to finite numbers; `gap-fuse stats` shows where others begin"
    return Diagnostic(message + str(statistics), help=help)


def grid_of(statistics: TensorStatistics) -> Grid:
    """The range that the model states; else the asymmetric int8 grid over the range seen, widened to hold zero."""
    return _grid([statistics]) or Grid(1.0, 0)


@dataclass(slots=True)
class _Shared:
    """Tensors that must have one grid, as a forest."""

    parent: dict[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.parent

    def of(self, name: str) -> str:
        while self.parent[name] != name:
            name = self.parent[name]
        return name

    def join(self, names: Sequence[str]) -> None:
        roots = [self.of(n) for n in names if n in self]
        for root in roots[1:]:
            self.parent[self.of(root)] = self.of(roots[0])


def _join_parts(node: onnx.NodeProto, shared: _Shared, fixed: dict[str, Grid]) -> None:
    """A Concat's parts and result; a part with a fixed grid keeps it, unless all parts have the same."""
    parts = [shared.of(i) for i in node.input if i in shared]
    grids = {fixed.get(p) for p in parts}
    if grids and None not in grids and len(grids) == 1 and len(parts) == len(node.input):
        fixed[shared.of(node.output[0])] = fixed[parts[0]]
        return
    shared.join([node.output[0], *(p for p in parts if p not in fixed)])


def _tells(statistics: TensorStatistics) -> bool:
    return bool(statistics.count) or _stated(statistics) is not None


def _stated(statistics: TensorStatistics) -> KnownRange | None:
    """What the model itself says of the whole tensor's range."""
    stated = statistics.known_range
    return stated if stated is not None and len(stated.low) == 1 else None


def _grid(known: Sequence[TensorStatistics]) -> Grid | None:
    """The one grid that is stated, where the rest fits it; else the grid over the range of all."""
    stated = [s for k in known if (s := _stated(k)) is not None]
    seen = [(k.min or 0.0, k.max or 0.0) for k in known if _stated(k) is None]
    exact = {_as_int8(s) for s in stated}
    if len(exact) == 1 and (only := exact.pop()) is not None and all(_fits(only, *r) for r in seen):
        return only
    ranges = [*seen, *((s.low[0], s.high[0]) for s in stated)]
    return _over(min(r[0] for r in ranges), max(r[1] for r in ranges)) if ranges else None


def _fits(grid: Grid, low: float, high: float) -> bool:
    """Whether the range lies on the grid, to a step."""
    return (-129 - grid.zero) * grid.scale <= low and high <= (128 - grid.zero) * grid.scale


def _as_int8(stated: KnownRange) -> Grid | None:
    if stated.dtype not in ("int8", "uint8") or not stated.scale or not stated.zero_point:
        return None
    return Grid(stated.scale[0], int(stated.zero_point[0]) - (128 if stated.dtype == "uint8" else 0))


def _over(low: float, high: float) -> Grid:
    low, high = min(0.0, low), max(0.0, high)
    scale = float(np.float32((high - low) / 255)) or 1.0
    return Grid(scale, int(np.clip(round(-128 - low / scale), -128, 127)))
