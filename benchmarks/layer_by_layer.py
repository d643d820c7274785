"""The layers of ../shared/baselines/tiling.json under the cost formulas that the baselines were planned with: int8, 8
bytes a channel for requantisation, an im2col buffer beside the tiles, no alignment of channels; minimising bytes +
200 x tiles. `ref` is a brute force, `dory` and `deeploy` are those tools' own choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.progress import track

from benchmarks.networks import ROOT
from fusion_engine.expr import parse_access, parse_expr
from tiler.bound import BoundAxis, BoundCall, BoundScratch
from tiler.choice import Choice
from tiler.objective import Objective, objective_of
from tiler.schedule import BoundOperand
from tiler.search import search
from tiler.space import Space
from tiler.target import load_target

GOAL = objective_of("bytes+200*tiles")
TARGET = load_target(ROOT / "targets" / "host")

Layer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Total:
    """Bytes and tiles of a network, layer by layer; None where a layer does not fit."""

    bytes: int
    tiles: int


def layer_call(layer: Layer) -> BoundCall:
    """A convolution, depthwise convolution or fully connected layer as the baselines see it."""
    depthwise, k = layer["kind"] == "dw", layer["co"]
    c = 1 if depthwise else layer["ci"]
    s, (top, left, bottom, _) = layer["s"], layer["p"]
    at = f"p*{s[0]} + r - {top}, q*{s[1]} + s - {left}"
    x = f"x[{at}, k]" if depthwise else f"x[{at}, c]"
    operands = (
        _operand(x, (layer["h"], layer["w"], layer["ci"]), "in"),
        _operand("weight[k, r, s, c]", (k, layer["kh"], layer["kw"], c), "const"),
        _operand("requant[k]", (k,), "const", 8),
        _operand("y[p, q, k]", (layer["oh"], layer["ow"], k), "out"),
    )
    scratch = {
        "conv": 16 * layer["ci"] * layer["kh"] * layer["kw"],
        "dw": 8 * (layer["kh"] * (layer["h"] + top + bottom) + layer["kh"]),
        "fc": 0,
    }[layer["kind"]]
    axes = (
        BoundAxis("k", k),
        BoundAxis("p", layer["oh"]),
        BoundAxis("q", layer["ow"]),
        BoundAxis("c", c, whole=True),
        BoundAxis("r", layer["kh"], whole=True),
        BoundAxis("s", layer["kw"], whole=True),
    )
    buffers = (BoundScratch("im2col", parse_expr(str(scratch)), "call"),)
    return BoundCall("layer", layer["kind"], "bench", axes, {}, operands, (), {}, parse_expr("k*p*q"), buffers, None)


def _operand(access: str, extent: tuple[int, ...], role: str, itemsize: int = 1) -> BoundOperand:
    name, index = parse_access(access)
    strides = [1]
    for e in reversed(extent[1:]):
        strides.insert(0, strides[0] * e)
    dims = tuple(f"d{i}" for i in range(len(extent)))
    return BoundOperand(
        name, name, name, role, "int8", itemsize, dims, tuple(index), extent, 0, tuple(strides), "border"
    )


def layer_by_layer(layers: list[Layer], l1: int, double: bool) -> Total | None:
    """The sums over the layers' best tilings."""
    goal: Objective = replace(GOAL, double=double)
    found = [search(Space(layer_call(x), TARGET), l1, ("l2",) * 4, objective=goal).best for x in layers]
    chosen = [c for c in found if isinstance(c, Choice)]
    if len(chosen) < len(layers):
        return None
    return Total(sum(b["l2_l1"] for c in chosen for b in c.bytes), sum(c.tiles for c in chosen))


def baseline_rows(baselines: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, row in track(list(baselines["results"].items()), description="layers", console=Console(stderr=True)):
        network, l1, buffering = name.split("/")
        total = layer_by_layer(baselines["layers"][network], int(l1), buffering == "DB")
        yield [
            name,
            "does not fit" if total is None else f"{total.bytes:,}",
            "" if total is None else f"{total.tiles:,}",
            *([""] * 2 if total is None or not row.get("ref") else _against(total, row)),
            *(_other(row, tool) for tool in ("ref", "dory", "deeploy")),
        ]


def _against(total: Total, row: Mapping[str, Any]) -> list[str]:
    return [f"{total.bytes / row['ref']:.3f}x", f"{total.tiles / row['ref_tiles']:.2f}x"]


def _other(row: Mapping[str, Any], tool: str) -> str:
    if tool not in row:
        return ""
    return "none found" if row[tool] is None else f"{row[tool]:,} ({row[tool + '_tiles']:,})"
