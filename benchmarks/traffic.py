"""Data movement as planned, per network and size of L1: bytes, transfers, tiles and modelled cycles, beside the bounds.

"once per call" is the bytes moved over those that move if every call reads and writes each element once; "fused" over
the bytes of weights, inputs and outputs of the network alone. Nothing is run: in the tests the host port's counters
equal the planned figures.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import yaml
from rich.console import Console
from rich.progress import track
from rich.table import Table

import gap_fuse
from benchmarks.networks import ROOT, Network, selected
from fusion_engine.diagnostics import GapFuseError

SIZES = (16384, 32768, 38400, 65536)


def target_with(l1: int, folder: Path) -> Path:
    """The host target with all of `l1` bytes for plan data: its own budget leaves the stacks out."""
    text = yaml.safe_load((ROOT / "targets" / "host" / "target.yaml").read_text())
    text["levels"]["l1"] = {"bytes": l1}
    folder.mkdir()
    (folder / "target.yaml").write_text(yaml.safe_dump(text))
    return folder


def row(network: Network, l1: int) -> list[str]:
    try:
        with tempfile.TemporaryDirectory(prefix="gap-fuse-bench-") as folder:
            report = gap_fuse.compile(network.path, target_with(l1, Path(folder) / "host")).report
    except GapFuseError as e:  # an L1 too small for the network is a result too
        return [network.title, f"{l1 / 1000:.1f}", e.diagnostics[0].message]
    hop, bounds, cycles = report["hops"]["l2_l1"], report["bounds"], report["cycles"]
    return [
        network.title,
        f"{l1 / 1000:.1f}",
        f"{hop['bytes'] / bounds['bytes_per_call']:.2f}x",
        f"{hop['bytes'] / bounds['fused_bytes']:.2f}x",
        f"{cycles['total'] / cycles['compute']:.3f}x",
        f"{hop['bytes']:,}",
        f"{hop['transfers']:,}",
        f"{sum(c['tiles'] for c in report['calls']):,}",
        f"{cycles['compute']:,}",
        f"{cycles['total']:,}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--l1",
        type=int,
        nargs="*",
        default=SIZES,
        metavar="BYTES",
        help=f"L1 sizes (default {' '.join(map(str, SIZES))})",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only networks whose name contains TEXT")
    options = parser.parse_args()
    work = [(network, l1) for network in selected(options.only) for l1 in options.l1]
    heads = (
        "network",
        "L1 kB",
        "once per call",
        "fused",
        "total / compute",
        "bytes",
        "transfers",
        "tiles",
        "compute cycles",
        "total cycles",
    )
    table = Table(*heads, title="L2 <-> L1 on the host target")
    for network, l1 in track(work, description="plans", console=Console(stderr=True)):
        table.add_row(*row(network, l1))
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
