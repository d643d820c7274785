"""Latency of the emitted C (make FAST=1, one core) beside onnxruntime on one thread, fully optimised and not at all.

Rounds are interleaved (C, optimised, plain, C, ...), so that whatever else the machine does falls on all three alike;
the least time of all rounds counts. The ratios are what to read: below 1x the emitted C is the faster.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import gap_fuse
from benchmarks.networks import Network, selected
from fusion_engine import FusedGraph
from gap_fuse.arrays import Samples
from gap_fuse.compiling import read_compiled
from gap_fuse.oracle import session
from gap_fuse.running import Build, execute


@dataclass(frozen=True, slots=True)
class Latency:
    """Microseconds per inference."""

    c: float
    optimised: float
    plain: float


def measure(network: Network, rounds: int, repeat: int, l1: int | None, tick: Callable[[], None]) -> Latency:
    with tempfile.TemporaryDirectory(prefix="gap-fuse-bench-") as folder:
        compiled = read_compiled(gap_fuse.compile(network.path, l1=l1).write(folder))
        model = onnx.load(network.path)
        samples = random_samples(compiled.graph)
        sessions = session(model, optimised=True), session(model)
        best = [math.inf] * 3
        for _ in range(rounds):
            ran = execute(compiled, samples, Build(fast=True), repeat=repeat)
            assert ran.nanoseconds is not None
            best = [
                min(b, t)
                for b, t in zip(
                    best, (ran.nanoseconds / 1e3, *(onnxruntime(s, samples, repeat) for s in sessions)), strict=True
                )
            ]
            tick()
        return Latency(*best)


def random_samples(graph: FusedGraph) -> Samples:
    """One seeded sample."""
    rng = np.random.default_rng(0)
    drawn = {n: rng.standard_normal((1, *graph.buffer[n].shape)) * 32 for n in graph.inputs}
    return Samples(1, {n: v.astype(graph.buffer[n].dtype) for n, v in drawn.items()})


def onnxruntime(live: object, samples: Samples, repeat: int) -> float:
    """The least microseconds of one `run`, with inputs and outputs bound by name as its Python interface does."""
    feed, best = samples.sample(0), math.inf
    for _ in range(repeat):
        start = time.perf_counter_ns()
        live.run(None, feed)  # type: ignore[attr-defined]
        best = min(best, time.perf_counter_ns() - start)
    return best / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--repeat", type=int, default=200, help="inferences per round (default 200)")
    parser.add_argument(
        "--l1", type=int, default=None, metavar="BYTES", help="L1 for plan data; the host target's otherwise"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only networks whose name contains TEXT")
    options = parser.parse_args()
    chosen = selected(options.only)
    table = Table(
        "network",
        "C / optimised",
        "C / plain",
        "C us",
        "optimised us",
        "plain us",
        title="emitted C beside onnxruntime, one thread",
    )
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("rounds", total=options.rounds * len(chosen))
        for network in chosen:
            took = measure(network, options.rounds, options.repeat, options.l1, lambda: progress.advance(task))
            ratios = f"{took.c / took.optimised:.2f}x", f"{took.c / took.plain:.2f}x"
            table.add_row(network.title, *ratios, f"{took.c:.1f}", f"{took.optimised:.1f}", f"{took.plain:.1f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
