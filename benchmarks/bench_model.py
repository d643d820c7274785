"""A machine and kernels to compare plans by, whatever today's kernels take: 16 multiply-accumulates a cycle, 4 in
depthwise convolutions, 8 elements or window taps a cycle in every other kernel; 8 bytes a cycle between L2 and L1, 50
cycles a transfer, 100 a kernel call. The implementations' storage orders, steps and scratch stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fusion_engine.expr import parse_expr
from fusion_engine.kernels.descriptor import Implementation, Kernel
from tiler.target import Hop, Target

MACS, DEPTHWISE_MACS, ELEMENTS = 16, 4, 8  # a cycle, all cores together
MULTIPLYING = ("conv2d", "pointwise", "linear", "matmul")


def bench_kernels(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """The same kernels at the model's cycles."""
    return {name: _modelled(kernel) for name, kernel in kernels.items()}


def bench_target(target: Target) -> Target:
    """The same memories behind the model's hop and team."""
    hop = Hop("l2_l1", 8, 50, 0, 0, max_bytes=1 << 20, max_stride=1 << 20, in_flight=16)
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
