"""Weights in L3: networks whose L2 holds the activations and a ring, beside the same networks with all of it in L2.

The machine and kernels of bench_model.py, with L3 behind a hop of 1 or 0.5 bytes a cycle and 50 cycles a transfer. L2
is the activations' peak and the ring; constants that stay in it and those that pass share what activations leave.
`bandwidth` is the time of the hop for all constants' bytes, or for the bytes that a run fetches. A second row has the
bare ring: the same tilings, but no constant stays.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

from rich.console import Console
from rich.progress import track
from rich.table import Table

import fusion_engine as fe
from benchmarks.bench_model import bench_kernels, bench_target
from benchmarks.networks import Network, selected
from gap_fuse.compiling import find_target
from gap_fuse.library import load_library
from tiler import Schedule, schedule
from tiler.cost import align16
from tiler.fetching import FetchPlan, NoPlaceError
from tiler.homes import taken_by
from tiler.liveness import activation_lives
from tiler.memory import decide_memory
from tiler.pieces import pieces_of
from tiler.placement import Block
from tiler.planner import Question, planned, question
from tiler.residents import POLICIES, Passage
from tiler.stays import widened
from tiler.target import Hop, Target

CASES = ((1.0, 65536), (0.5, 98304))  # bytes a cycle, bytes of the ring
VAST = 1 << 24
START, IN_FLIGHT = 50, 2


@dataclass(frozen=True, slots=True)
class Streamed:
    """One network at one speed of L3: with all constants in L2, through a ring beside some that stay, and through
    nothing but a ring."""

    rate: float
    ring: int
    resident: Schedule
    planned: Schedule
    bare: FetchPlan | None  # None: some constant finds no place

    @property
    def constants(self) -> int:
        return sum(c.bytes for c in self.resident.constants)


def streamed(network: Network, l1: int) -> Iterator[Streamed]:
    library = load_library()
    target = bench_target(find_target("host"))
    found = fe.plan(fe.read_model(network.path, {}), library.rules, library.kernels, target.cores)
    calls = fe.apply(found.view, found.plan, library.kernels)
    graph, kernels = fe.order_layouts(calls, library.kernels, target.cores), bench_kernels(library.kernels)
    resident = schedule(graph, kernels, target, l1=l1, l2=VAST)
    activations = resident.peaks["l2"] - sum(-(-c.bytes // 16) * 16 for c in resident.constants)
    for rate, ring in CASES:
        asked = question(graph, kernels, behind(target, rate).with_budgets(l1, activations + ring))
        yield Streamed(rate, ring, resident, planned(graph, asked), bare_ring(graph, asked))


def bare_ring(graph: fe.FusedGraph, asked: Question) -> FetchPlan | None:
    """Every constant passes, at the best policy, with the tilings and activations' places of the plan."""
    lives = activation_lives(graph)
    options = [asked.options[c.name] for c in graph.calls]
    memory = decide_memory(graph, options, lives, asked.target, asked.objective)
    homes, hop = memory.homes, asked.target.hops["l3_l2"]
    if not homes.passing.pieces:
        return None
    base = sum(align16(homes.constants[r].bytes) for r in homes.resident)
    blocks = [Block(v.root, v.bytes, v.first, v.last) for v in (widened(v, memory.stays.spans) for v in lives)]
    taken = [
        taken_by(b, homes.activations[b.name] - base, homes.stretches) for b in blocks if b.name in homes.activations
    ]
    sizes = {r: align16(pack.bytes) for r, pack in homes.constants.items()}
    pieces = pieces_of(homes.picked, homes.stretches, sizes, list(sizes))
    passage = Passage(
        tuple(pieces), homes.stretches, tuple(sizes.items()), tuple(taken), asked.target.budget("l2"), hop
    )
    return min(_ways(passage), key=lambda plan: plan.cycles, default=None)


def _ways(passage: Passage) -> Iterator[FetchPlan]:
    for policy in POLICIES:
        with suppress(NoPlaceError):
            plan = passage.plan(frozenset(), policy, inf)
            if plan is not None:
                yield plan


def behind(target: Target, rate: float) -> Target:
    """The target with L3 at `rate` bytes a cycle."""
    hop = Hop("l3_l2", rate, START, 0, 0, max_bytes=65532, max_stride=65535, in_flight=IN_FLIGHT)
    return replace(target, hops={**target.hops, "l3_l2": hop})


def row(network: Network, s: Streamed) -> list[str]:
    total, fetched = s.planned.total_cycles, s.planned.bytes["l3_l2"]
    return [
        network.title,
        f"{s.rate:g}",
        f"{s.ring:,}",
        f"{s.resident.total_cycles:,}",
        f"{total:,}",
        f"{total / s.resident.total_cycles:.3f}x",
        f"{s.constants:,}",
        f"{fetched:,}",
        f"{total * s.rate / s.constants:.3f}x",
        f"{total * s.rate / fetched:.3f}x" if fetched else "",
        f"{s.planned.transfer_count['l3_l2']:,}",
    ]


def bare_row(s: Streamed) -> list[str]:
    if s.bare is None:
        return ["  bare ring", "", "", "", "no place" if s.planned.bytes["l3_l2"] else "all stays"]
    fetched = sum(x.fetch.bytes for x in s.bare.loads)
    return [
        "  bare ring",
        "",
        "",
        "",
        f"{round(s.bare.cycles):,}",
        f"{s.bare.cycles / s.resident.total_cycles:.3f}x",
        "",
        f"{fetched:,}",
        f"{s.bare.cycles * s.rate / s.constants:.3f}x",
        f"{s.bare.cycles * s.rate / fetched:.3f}x",
        f"{len(s.bare.loads):,}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--l1", type=int, default=65536, metavar="BYTES")
    parser.add_argument("--only", default="int8", metavar="TEXT", help="networks whose name contains TEXT (int8)")
    options = parser.parse_args()
    console = Console(width=200)
    heads = ("network", "B/cycle", "ring", "all in L2", "cycles", "of that", "constants B", "fetched B",
             "/ bandwidth of all", "/ of the fetched", "copies")  # fmt: skip
    table = Table(*heads, title=f"weights in L3, L1 {options.l1:,} B")
    for network in track(selected(options.only), description="networks", console=Console(stderr=True)):
        for s in streamed(network, options.l1):
            table.add_row(*row(network, s))
            table.add_row(*bare_row(s))
    console.print(table)


if __name__ == "__main__":
    main()
