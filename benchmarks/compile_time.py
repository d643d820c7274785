"""Seconds of `gap-fuse compile` per network, the whole process: interpreter, imports, compilation, files written."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.networks import Network, selected


def seconds(network: Network) -> float:
    """Wall-clock seconds of one run in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="gap-fuse-bench-") as folder:
        start = time.perf_counter()
        command = [sys.executable, "-m", "gap_fuse", "compile", str(network.path), "-o", str(Path(folder) / "out")]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).resolve().parent.parent)
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs per network; the median counts (default 3)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only networks whose name contains TEXT")
    options = parser.parse_args()
    chosen = selected(options.only)
    taken: dict[Network, list[float]] = {n: [] for n in chosen}
    for _ in track(range(options.runs), description="runs", console=Console(stderr=True)):
        for network in chosen:
            taken[network].append(seconds(network))
    table = Table(
        "network", "median s", "least s", "most s", title=f"gap-fuse compile, whole process, {options.runs} runs"
    )
    for network, times in taken.items():
        table.add_row(network.title, f"{statistics.median(times):.2f}", f"{min(times):.2f}", f"{max(times):.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
