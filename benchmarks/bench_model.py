"""A machine and kernels to compare plans by, whatever today's kernels take: 16 multiply-accumulates a cycle, 4 in
depthwise convolutions, 8 elements or window taps a cycle in every other kernel; 8 bytes a cycle between L2 and L1, 50
cycles a transfer, 100 a kernel call. The implementations' storage orders, steps and scratch stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

import fusion_engine as fe
from fusion_engine.expr import parse_expr
from fusion_engine.kernels.descriptor import Implementation, Kernel
from gap_fuse.compiling import find_target
from gap_fuse.library import load_library
from tiler import Schedule, order_and_schedule
from tiler.planner import planned as plan_in_order
from tiler.planner import question
from tiler.target import Hop, Target

MACS, DEPTHWISE_MACS, ELEMENTS = 16, 4, 8  # a cycle, all cores together
BYTES = 8  # a cycle between L2 and L1
GOALS = ("cycles", "cycles+0.4*bytes", "bytes")
MULTIPLYING = ("conv2d", "pointwise", "linear", "matmul")


@dataclass(frozen=True, slots=True)
class Planned:
    """One network in `l1` bytes: `fused`; layer by layer as well as this tiler can (`apart`); and layer by layer as
    others have it (`plain`): one command per operand and tile, no constants together."""

    l1: int
    minimise: str
    fused: Schedule
    apart: Schedule
    plain: Schedule

    @property
    def roofline(self) -> float:
        """The longer of computing, each call begun once, and of the fully fused bytes over the bandwidth."""
        return max(self.fused.bounds.compute_cycles, self.fused.bounds.fused_bytes / BYTES)


def planned(model: Path, sizes: Sequence[int]) -> Iterator[Planned]:
    """The network's plans, for cycles, for cycles with bytes at a price, and bytes, at each size of L1 in bytes."""
    graph, kernels, target = problem(model)
    for l1 in sizes:
        for goal in GOALS:
            fused, apart = (
                order_and_schedule(graph, kernels, target, l1, minimise=goal, fused=f)[1] for f in (True, False)
            )
            alone = question(graph, kernels, target.with_budgets(l1), goal, fused=False, together=False)
            yield Planned(l1, goal, fused, apart, plan_in_order(graph, alone))


def problem(model: Path | onnx.ModelProto) -> tuple[fe.FusedGraph, dict[str, Kernel], Target]:
    """What there is to plan: a model's calls, and the model's kernels and machine."""
    library, target = load_library(), bench_target(find_target("host"))
    found = fe.plan(fe.read_model(model, {}), library.rules, library.kernels, target.cores)
    calls = fe.apply(found.view, found.plan, library.kernels)
    return fe.order_layouts(calls, library.kernels, target.cores), bench_kernels(library.kernels), target


def bench_kernels(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """The same kernels at the model's cycles."""
    return {name: _modelled(kernel) for name, kernel in kernels.items()}


def bench_target(target: Target) -> Target:
    """The same memories behind the model's hop and team."""
    hop = Hop("l2_l1", BYTES, 50, 0, 0, max_bytes=1 << 20, max_stride=1 << 20, in_flight=16)
    return replace(target, hops={**target.hops, "l2_l1": hop}, fork=100)


def _modelled(kernel: Kernel) -> Kernel:
    implementations = tuple(replace(i, cycles=parse_expr(_cycles(kernel, i))) for i in kernel.implementations)
    return replace(kernel, implementations=implementations)


def _cycles(kernel: Kernel, implementation: Implementation) -> str:
    axes = [n for name, size in kernel.axes for n in _numbered(name, size, implementation.rank)]
    return f"{'*'.join(axes)} / {_rate(kernel.name)}"


def _numbered(name: str, size: str, rank: int | None) -> list[str]:
    """An axis, or the axes that a group of any rank is folded to."""
    return [f"{name}{i}" for i in range(rank or 1)] if size.startswith("*") else [name]


def _rate(kernel: str) -> int:
    room = kernel.rpartition("_")[0]
    if room == "depthwise":
        return DEPTHWISE_MACS
    return MACS if room in MULTIPLYING else ELEMENTS
