"""Addresses: buffers with lifetimes into one memory without overlap, at the max-live bound where a placement exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

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


@dataclass(frozen=True, slots=True)
class Spacing:
    """Two blocks, by number, that may overlap where they meet, during the one call that is the first's last and the
    second's first: let s be where the second begins less where the first does. Right are s <= -below, s >= above
    and, with `same`, s = 0."""

    first: int
    second: int
    below: int
    above: int
    same: bool

    def shared(self, sizes: tuple[int, int]) -> int:
        """The most bytes that the two have in common at any right distance."""
        allowed = [-self.below, self.above, *([0] if self.same else [])]
        return max(0, *(min(sizes[0], s + sizes[1]) - max(s, 0) for s in allowed))


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


def place(
    blocks: Sequence[Block], calls: int, enough: int | None = None, spacings: Sequence[Spacing] = ()
) -> Placement:
    """Offsets for all blocks at the least peak found: first fit in several sequences, then CP-SAT if the bound is
    not reached. Blocks of `spacings` may overlap as those say; at most one pair meets in any call.

    A peak up to `enough` is good enough. Deterministic: one worker, a fixed seed, a limit in deterministic time.
    """
    bound = _bound(blocks, calls, spacings)
    best: tuple[int, list[int]] | None = None
    for key in _SEQUENCES:
        sequence = sorted(range(len(blocks)), key=lambda i: (key(blocks[i]), blocks[i].name, i))
        offsets = _first_fit(blocks, sequence, spacings)
        peak = _peak(blocks, offsets)
        if best is None or peak < best[0]:
            best = peak, offsets
        if peak <= max(bound, enough or 0):
            break
    assert best is not None
    peak, offsets = best
    if peak > max(bound, enough or 0):
        low = max(bound, (enough or 0) // ALIGNMENT * ALIGNMENT)
        solved = _solve(tuple(blocks), low, peak, tuple(offsets), tuple(spacings))
        offsets = offsets if solved is None else list(solved)
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


def _bound(blocks: Sequence[Block], calls: int, spacings: Sequence[Spacing]) -> int:
    """The most live bytes, what two blocks share counted once."""
    level = live_bytes(blocks, calls)
    for s in spacings:
        level[blocks[s.second].first] -= s.shared((blocks[s.first].size, blocks[s.second].size))
    return max(level, default=0)


def _first_fit(blocks: Sequence[Block], sequence: Sequence[int], spacings: Sequence[Spacing] = ()) -> list[int]:
    """Each block in turn at the lowest address free during its life."""
    offsets = [0] * len(blocks)
    partners: dict[int, list[Spacing]] = {}
    for s in spacings:
        for i in (s.first, s.second):
            partners.setdefault(i, []).append(s)
    done: list[int] = []
    for i in sequence:
        paired = {s.first + s.second - i: s for s in partners.get(i, [])}
        taken, same = [], []
        for j in done:
            if not blocks[i].meets(blocks[j]):
                continue
            below, above = blocks[i].size, blocks[j].size
            if j in paired:
                s = paired[j]
                below, above = (s.below, s.above) if i == s.second else (s.above, s.below)
                same += [j] if s.same else []
            taken.append((offsets[j] - below, offsets[j] + above, j))
        offsets[i] = _lowest(sorted(taken), [offsets[j] for j in same if _is_free(offsets[j], j, taken)])
        done.append(i)
    return offsets


def _lowest(taken: Sequence[tuple[int, int, int]], same: Sequence[int]) -> int:
    """The lowest start that lies strictly inside no open interval, or a lower one of `same`."""
    at = 0
    for low, high, _ in taken:
        if at <= low:
            break
        at = max(at, high)
    return min([at, *same])


def _is_free(at: int, partner: int, taken: Sequence[tuple[int, int, int]]) -> bool:
    """Whether a block may begin at the very address of a partner for all that the others say."""
    return not any(low < at < high and j != partner for low, high, j in taken)


@lru_cache(maxsize=256)  # plans that differ elsewhere ask the same
def _solve(
    blocks: tuple[Block, ...], low: int, peak: int, hint: tuple[int, ...], spacings: tuple[Spacing, ...]
) -> tuple[int, ...] | None:
    """A peak as near to `low` as there is one, up to `peak`, by CP-SAT; None where it finds nothing better."""
    from ortools.sat.python import cp_model  # heavy, and rarely needed

    model = cp_model.CpModel()
    height = model.new_int_var(low // ALIGNMENT, peak // ALIGNMENT, "height")
    lives, spans, starts = [], [], []
    ends, begins = {s.first for s in spacings}, {s.second for s in spacings}  # these leave each other half of a call
    for i, b in enumerate(blocks):
        size = b.size // ALIGNMENT
        start = model.new_int_var(0, peak // ALIGNMENT - size, f"start{i}")
        model.add(start + size <= height)
        model.add_hint(start, hint[i] // ALIGNMENT)
        starts.append(start)
        spans.append(model.new_fixed_size_interval_var(start, size, f"span{i}"))
        first, end = 2 * b.first + (i in begins), 2 * b.last + 2 - (i in ends)
        lives.append(model.new_fixed_size_interval_var(first, end - first, f"life{i}"))
    model.add_no_overlap_2d(lives, spans)
    for s in spacings:
        distance = starts[s.second] - starts[s.first]
        ways = [
            distance <= -s.below // ALIGNMENT,
            distance >= s.above // ALIGNMENT,
            *([distance == 0] if s.same else []),
        ]
        chosen = [model.new_bool_var(f"way {s.second} {k}") for k in range(len(ways))]
        model.add_bool_or(chosen)
        for way, literal in zip(ways, chosen, strict=True):
            model.add(way).only_enforce_if(literal)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = DETERMINISTIC_SECONDS
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    offsets = [solver.value(s) * ALIGNMENT for s in starts]
    return tuple(offsets if spacings else _first_fit_from(blocks, offsets))


def _first_fit_from(blocks: Sequence[Block], offsets: Sequence[int]) -> list[int]:
    """Every block let down as far as it goes, lowest first: a canonical form of the solver's answer, never higher."""
    return _first_fit(blocks, sorted(range(len(blocks)), key=lambda i: (offsets[i], i)))
