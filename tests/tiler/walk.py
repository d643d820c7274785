"""An independent walk over a tiling: every tile, every copy, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import ceil, prod

from fusion_engine.expr import evaluate
from tiler.bound import BoundCall
from tiler.boxes import tile_box
from tiler.moves import HopLimits, count_box, merge_box
from tiler.schedule import BoundOperand
from tiler.target import Hop, Target

Loops = Sequence[tuple[str, int]]
Range = tuple[dict[str, int], dict[str, int]]


def ranges(call: BoundCall, loops: Loops, depth: int | None = None) -> Iterator[Range]:
    """(start, length) per axis for each iteration of the outer `depth` loops; the loops inside are not split."""
    outer = loops if depth is None else loops[:depth]
    extents = call.extents
    for starts in product(*(range(0, extents[a], t) for a, t in outer)):
        start = dict.fromkeys(extents, 0) | {a: s for (a, _), s in zip(outer, starts, strict=True)}
        length = extents | {a: min(t, extents[a] - start[a]) for a, t in outer}
        yield start, length


def depth_of(operand: BoundOperand, loops: Loops) -> int:
    """The number of loops around the operand's copy: the deepest loop that its box depends on."""
    from fusion_engine.expr import names

    read = {n for i in operand.index if i is not None for n in names(i)}
    return max((i + 1 for i, (axis, _) in enumerate(loops) if axis in read), default=0)


def copies(call: BoundCall, operand: BoundOperand, loops: Loops) -> Iterator[tuple[int, ...]]:
    """The extents of every box that is copied, in order."""
    for start, length in ranges(call, loops, depth_of(operand, loops)):
        yield tuple(r.count for r in tile_box(operand, start, length))


def traffic(call: BoundCall, operand: BoundOperand, loops: Loops, hop: Hop) -> tuple[int, int, int, int]:
    """(bytes, commands, lines, copies) of an operand that lies strided in the far level."""
    limits = HopLimits(max_bytes=hop.max_bytes, max_pitch=hop.max_stride)
    pitch = [s * operand.itemsize for s in operand.far_strides]
    total = [0, 0, 0, 0]
    for box in copies(call, operand, loops):
        size, commands = count_box(box, pitch, operand.itemsize, limits)
        total[0] += size
        total[1] += commands
        total[2] += _lines(box, pitch, operand.itemsize, limits)
        total[3] += size > 0
    return total[0], total[1], total[2], total[3]


def _lines(box: Sequence[int], pitch: Sequence[int], item: int, limits: HopLimits) -> int:
    merged = merge_box(box, pitch, item)
    if merged is None or merged.pitch > limits.max_pitch or merged.run > limits.max_bytes:
        return 0
    together = min(limits.max_bytes // merged.run, merged.runs)
    return 0 if together == 1 else merged.outer * merged.runs


def tile_bytes(call: BoundCall, operand: BoundOperand, loops: Loops) -> int:
    """The greatest box of an operand."""
    return max(prod(box) for box in copies(call, operand, loops)) * operand.itemsize


def compute(call: BoundCall, loops: Loops, target: Target) -> float:
    """Cycles of computing every tile, forks included."""
    cycles = 0.0
    for _, length in ranges(call, loops):
        cycles += evaluate(call.cycles, {**length, "cores": target.cores}) + target.fork
    return cycles


def total_cycles(
    call: BoundCall, loops: Loops, double: Sequence[bool], target: Target, halved: Mapping[int, bool] | None = None
) -> int:
    """The model of tiler/cost.py, from the walk; operands `halved` by position are in L3, the others in L2."""
    hop = target.hops["l2_l1"]
    waited = hidden = deep = 0.0
    for i, (operand, twice) in enumerate(zip(call.operands, double, strict=True)):
        if halved and i in halved:
            exposed, beside = _through_stage(call, operand, loops, halved[i], target)
            waited, deep = waited + exposed, deep + beside
            continue
        size, commands, lines, count = traffic(call, operand, loops, hop)
        moved = count * hop.latency + lines * hop.per_run + size / hop.bytes_per_cycle
        waited += commands * hop.start + (moved / max(count, 1) if twice else moved)
        hidden += moved - moved / max(count, 1) if twice else 0
    return ceil(round(waited + max(compute(call, loops, target), hidden, deep), 6))


def _through_stage(
    call: BoundCall, operand: BoundOperand, loops: Loops, halved: bool, target: Target
) -> tuple[float, float]:
    """Cycles of an operand in L3: waited for, and beside computing, which is all but the first tile's way between L3
    and one half, as far as the engine holds its commands."""
    near, deep = target.hops["l2_l1"], target.hops["l3_l2"]
    size, commands, lines, count = traffic(call, operand, loops, deep)
    dense = sum(-(-prod(box) * operand.itemsize // near.max_bytes) for box in copies(call, operand, loops))
    moved = count * deep.latency + lines * deep.per_run + size / deep.bytes_per_cycle
    held = moved * min(1.0, deep.in_flight * count / max(commands, 1))
    beside = held - held / max(count, 1) if halved else 0.0
    short = dense * near.start + count * near.latency + size / near.bytes_per_cycle
    return commands * deep.start + short + moved - beside, beside


def align(value: int) -> int:
    return -(-value // 16) * 16


def l1_bytes(call: BoundCall, loops: Loops, double: Sequence[bool]) -> int:
    """L1 bytes of the buffers and the partial sums."""
    buffers = sum(
        align(tile_bytes(call, o, loops)) * (2 if d else 1) for o, d in zip(call.operands, double, strict=True)
    )
    return buffers + align(_accumulator(call, dict(loops)))


def _accumulator(call: BoundCall, tile: Mapping[str, int]) -> int:
    if call.accumulate is None:
        return 0
    length = call.extents | dict(tile)
    sizes = [evaluate(i, {a: n - 1 for a, n in length.items()}) + 1 for i in call.accumulate.index]
    return prod(sizes) * call.accumulate.itemsize
