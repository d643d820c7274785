"""The tiler beside other tilers, and its fused plans beside their bounds. Four tables:

*Layer by layer*: see layer_by_layer.py.

*Fused*: whole int8 networks as they are compiled, L2<->L1 bytes over weights + inputs + outputs, and cycles over the
compute bound. With `--run` the C of each is built and run, and its counters are compared with the plan.

*Bench model*: the same networks under the machine and kernels of bench_model.py, and beside it the same network
planned layer by layer, nothing staying in L1 from call to call: as well as this tiler can, and at one command per
operand and tile (no constants together, nothing started early), which is what other tilers' layer by layer means.

*L2 peak*: see l2_peak.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

import gap_fuse
from benchmarks.bench_model import Planned, planned
from benchmarks.l2_peak import l2_peak_row
from benchmarks.layer_by_layer import baseline_rows
from benchmarks.networks import ROOT, Network, selected
from fusion_engine.diagnostics import GapFuseError

BASELINES = ROOT.parent / "shared" / "baselines" / "tiling.json"
SIZES = (16384, 32768, 65536)


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


def model_rows(network: Network, sizes: Sequence[int]) -> list[list[str]]:
    return [_model_row(network, p) for p in planned(network.path, sizes)]


def _model_row(network: Network, p: Planned) -> list[str]:
    s, apart, plain = p.fused, p.apart, p.plain
    return [
        network.title,
        f"{p.l1:,}",
        p.minimise,
        f"{s.bytes['l2_l1']:,}",
        f"{s.bytes['l2_l1'] / s.bounds.fused_bytes:.3f}x",
        f"{s.total_cycles:,}",
        f"{s.total_cycles / p.roofline:.3f}x",
        f"{apart.total_cycles:,}",
        f"{100 * (s.total_cycles / apart.total_cycles - 1):+.1f} %",
        f"{plain.total_cycles:,}",
        f"{100 * (s.total_cycles / plain.total_cycles - 1):+.1f} %",
        f"{s.peaks['l2']:,}",
    ]


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
    names = selected(options.only)
    fused = Table("network", "L1", "bytes", "fused", "transfers", "cycles", "compute", "stay", "L2 peak", "time", "run",
                  title=f"fused, minimising {options.minimise}")  # fmt: skip
    work = [(n, l1) for n in names for l1 in options.l1]
    for network, l1 in track(work, description="networks", console=Console(stderr=True)):
        fused.add_row(*fused_row(network, l1, options.minimise, options.run))
    console.print(fused)
    model = Table("network", "L1", "minimising", "bytes", "fused", "cycles", "roofline", "layer by layer",
                  "fused less", "one command an operand", "fused less", "L2 peak", title="bench model")  # fmt: skip
    for network in track(names, description="bench model", console=Console(stderr=True)):
        for row in model_rows(network, options.l1):
            model.add_row(*row)
    console.print(model)
    peak = Table("network", "L1", "image", "layer by layer", "addresses", "fused", "", "addresses", "cycles",
                 title="L2 peak of activations (in integers from end to end), minimising l2")  # fmt: skip
    for network, l1 in track(work, description="L2 peak", console=Console(stderr=True)):
        peak.add_row(*l2_peak_row(network, l1))
    console.print(peak)


if __name__ == "__main__":
    main()
