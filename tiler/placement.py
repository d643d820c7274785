"""Addresses: buffers with lifetimes into one memory without overlap, at the max-live bound where a placement exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

ALIGNMENT = 16
DETERMINISTIC_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Block:
    """`bytes` needed over the calls first..last (inclusive)."""

    name: str
    bytes: int
    first: int
    last: int

    @property
    def size(self) -> int:
        """Bytes up to the next aligned address."""
        return -(-self.bytes // ALIGNMENT) * ALIGNMENT

    def meets(self, other: Block) -> bool:
        """Whether both are live during some call."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Placement:
    """Byte offset per block, in the order of the blocks; `peak` is the end of the highest, `bound` the most live
    bytes."""

    offsets: tuple[int, ...]
    peak: int
    bound: int


def live_bytes(blocks: Sequence[Block], calls: int) -> list[int]:
    """Aligned bytes live during each call."""
    change = [0] * (calls + 1)
    for b in blocks:
        change[b.first] += b.size
        change[b.last + 1] -= b.size
    result, level = [], 0
    for c in change[:calls]:
        level += c
        result.append(level)
    return result


def place(blocks: Sequence[Block], calls: int, enough: int | None = None) -> Placement:
    """Offsets for all blocks at the least peak found: first fit in several sequences, then CP-SAT if the bound is
    not reached.

    A peak up to `enough` is good enough. Deterministic: one worker, a fixed seed, a limit in deterministic time.
    """
    bound = max(live_bytes(blocks, calls), default=0)
    best: tuple[int, list[int]] | None = None
    for key in _SEQUENCES:
        offsets = _first_fit(blocks, sorted(range(len(blocks)), key=lambda i: (key(blocks[i]), blocks[i].name, i)))
        peak = _peak(blocks, offsets)
        if best is None or peak < best[0]:
            best = peak, offsets
        if peak <= max(bound, enough or 0):
            break
    assert best is not None
    peak, offsets = best
    if peak > max(bound, enough or 0):
        offsets = _solve(blocks, bound, peak, offsets) or offsets
    return Placement(tuple(offsets), _peak(blocks, offsets), bound)


_SEQUENCES: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda b: (-(b.last - b.first), -b.size),
    lambda b: (-b.size, b.first),
    lambda b: (-b.size * (b.last - b.first + 1), b.first),
    lambda b: (b.first, -b.size),
    lambda b: (-b.last, -b.size),
)


def _peak(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    return max((o + b.size for o, b in zip(offsets, blocks, strict=True)), default=0)


def _first_fit(blocks: Sequence[Block], sequence: Sequence[int]) -> list[int]:
    """Each block in turn at the lowest address free during its life."""
    offsets = [0] * len(blocks)
    done: list[int] = []
    for i in sequence:
        taken = sorted((offsets[j], offsets[j] + blocks[j].size) for j in done if blocks[i].meets(blocks[j]))
        at = 0
        for low, high in taken:
            if low - at >= blocks[i].size:
                break
            at = max(at, high)
        offsets[i] = at
        done.append(i)
    return offsets


def _solve(blocks: Sequence[Block], bound: int, peak: int, hint: Sequence[int]) -> list[int] | None:
    """The least peak between `bound` and `peak`, by CP-SAT; None where it finds nothing better."""
    from ortools.sat.python import cp_model  # heavy, and rarely needed

    model = cp_model.CpModel()
    height = model.new_int_var(bound // ALIGNMENT, peak // ALIGNMENT, "height")
    lives, spans, starts = [], [], []
    for i, b in enumerate(blocks):
        size = b.size // ALIGNMENT
        start = model.new_int_var(0, peak // ALIGNMENT - size, f"start{i}")
        model.add(start + size <= height)
        model.add_hint(start, hint[i] // ALIGNMENT)
        starts.append(start)
        spans.append(model.new_fixed_size_interval_var(start, size, f"span{i}"))
        lives.append(model.new_fixed_size_interval_var(b.first, b.last - b.first + 1, f"life{i}"))
    model.add_no_overlap_2d(lives, spans)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = DETERMINISTIC_SECONDS
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    offsets = [solver.value(s) * ALIGNMENT for s in starts]
    return _first_fit_from(blocks, offsets)


def _first_fit_from(blocks: Sequence[Block], offsets: Sequence[int]) -> list[int]:
    """Every block let down as far as it goes, lowest first: a canonical form of the solver's answer, never higher."""
    return _first_fit(blocks, sorted(range(len(blocks)), key=lambda i: (offsets[i], i)))
