"""The tiler beside other tilers, and its fused plans beside the fully fused bound. Two tables:

*Layer by layer*: the layers of ../shared/baselines/tiling.json under the cost formulas that the baselines were planned
with (int8, 8 bytes a channel for requantisation, an im2col buffer beside the tiles, no alignment of channels),
minimising bytes + 200 x tiles. `ref` is a brute force, `dory` and `deeploy` are those tools' own choices.

*Fused*: whole int8 networks as they are compiled, L2<->L1 bytes over weights + inputs + outputs, and cycles over the
compute bound. With `--run` the C of each is built and run, and its counters are compared with the plan.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import gap_fuse
from benchmarks.networks import ROOT, Network, selected
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import parse_access, parse_expr
from tiler.bound import BoundAxis, BoundCall, BoundScratch
from tiler.choice import Choice
from tiler.objective import Objective, objective_of
from tiler.schedule import BoundOperand
from tiler.search import search
from tiler.space import Space
from tiler.target import load_target

BASELINES = ROOT.parent / "shared" / "baselines" / "tiling.json"
SIZES = (16384, 32768, 65536)
GOAL = objective_of("bytes+200*tiles")
TARGET = load_target(ROOT / "targets" / "host")

Layer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Total:
    """Bytes and tiles of a network, layer by layer; None where a layer does not fit."""

    bytes: int
    tiles: int


# ---- layer by layer ----


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


# ---- fused ----


def fused_row(network: Network, l1: int, minimise: str, run: bool) -> list[str]:
    begun = time.process_time()
    try:
        result = gap_fuse.compile(network.path, "host", l1=l1, minimise=minimise)
    except GapFuseError as e:  # an L1 too small for the network is a result too
        return [network.title, f"{l1:,}", e.diagnostics[0].message]
    took = time.process_time() - begun
    report = result.report
    moved, bounds = report["hops"]["l2_l1"]["bytes"], report["bounds"]
    return [
        network.title,
        f"{l1:,}",
        f"{moved:,}",
        f"{moved / bounds['fused_bytes']:.3f}x",
        f"{report['hops']['l2_l1']['transfers']:,}",
        f"{report['cycles']['total']:,}",
        f"{report['cycles']['total'] / bounds['compute_cycles']:.3f}x",
        f"{len(result.schedule.stays)} of {len(report['calls'])}",
        f"{report['peaks']['l2']:,}",
        f"{took:.1f} s",
        _counted(result) if run else "",
    ]


def _counted(result: gap_fuse.Result) -> str:
    with tempfile.TemporaryDirectory(prefix="gap-fuse-bench-") as folder:
        verdict = gap_fuse.verify(result.write(Path(folder)), samples=1)
    return "counters equal" if not verdict.counters else "; ".join(verdict.counters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--l1", type=int, nargs="*", default=SIZES, metavar="BYTES")
    parser.add_argument("--only", default="int8", metavar="TEXT", help="networks whose name contains TEXT (int8)")
    parser.add_argument("--minimise", default="cycles", metavar="WHAT", help="for the fused plans (cycles)")
    parser.add_argument("--run", action="store_true", help="build and run the C: counters against the plan")
    options = parser.parse_args()
    console = Console(width=200)
    if BASELINES.is_file():
        table = Table("layers / L1 / buffers", "bytes", "tiles", "bytes / ref", "tiles / ref", "ref", "dory", "deeploy",
                      title="layer by layer, minimising bytes + 200 x tiles")  # fmt: skip
        for row in baseline_rows(json.loads(BASELINES.read_text())):
            table.add_row(*row)
        console.print(table)
    else:
        print(f"skipped, not there: {BASELINES}", file=sys.stderr)
    fused = Table("network", "L1", "bytes", "fused", "transfers", "cycles", "compute", "stay", "L2 peak", "time", "run",
                  title=f"fused, minimising {options.minimise}")  # fmt: skip
    work = [(n, l1) for n in selected(options.only) for l1 in options.l1]
    for network, l1 in track(work, description="networks", console=Console(stderr=True)):
        fused.add_row(*fused_row(network, l1, options.minimise, options.run))
    console.print(fused)


if __name__ == "__main__":
    main()
