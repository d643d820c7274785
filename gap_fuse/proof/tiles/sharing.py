"""Which core of the team writes what: each core run alone on one tile, from the same start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np

from gap_fuse.proof.tiles.l1 import L1, StrayAccess

Written = Mapping[str, list[np.ndarray]]  # per writable buffer, per core: which of its elements the core wrote


def written_alone(
    l1: L1, before: Mapping[str, bytes], results: set[str], run_alone: Callable[[int], None], cores: int
) -> Written:
    """What each core writes of the tile that the team has just computed; L1 is left as it is.

    `before` is L1 as the team found it. Results begin as the complement of what they became, so that whoever writes one
    changes it; in sums and scratch a write shows where it changes a byte.
    """
    after = l1.contents()
    start = dict(before) | {n: (~np.frombuffer(after[n], np.uint8)).tobytes() for n in results}
    written: dict[str, list[np.ndarray]] = {n: [] for n in start}
    for core in range(cores):
        l1.fill(start)
        run_alone(core)
        for name, made in l1.contents().items():
            written[name].append(_changed(start[name], made, l1.itemsize(name)))
    l1.fill(after)
    return written


def _changed(start: bytes, made: bytes, itemsize: int) -> np.ndarray:
    changed = np.frombuffer(start, np.uint8) != np.frombuffer(made, np.uint8)
    return np.asarray(changed.reshape(-1, itemsize).any(axis=1))


def busy_cores(written: Written, pitch: Mapping[str, int]) -> int:
    """How many cores wrote a result or sums; scratch of their own does not count."""
    cores = len(next(iter(written.values())))
    return sum(any(m[core].any() for n, m in written.items() if not pitch.get(n)) for core in range(cores))


def check_sharing(written: Written, pitch: Mapping[str, int], what: str) -> None:
    """Raise StrayAccess where two cores wrote one element, or a core the scratch of another (`pitch` bytes each)."""
    for name, masks in written.items():
        for core, mask in enumerate(masks if pitch.get(name) else ()):
            _check_own(name, core, np.flatnonzero(mask) // pitch[name], what)
        for a, b in combinations(range(len(masks)), 2):
            _check_apart(name, a, b, masks, what)


def _check_own(name: str, core: int, owners: np.ndarray, what: str) -> None:
    for other in owners[owners != core][:1]:
        raise StrayAccess(f"{what}: core {core} wrote into the `{name}` of core {other}; its own is {name}_pitch apart")


def _check_apart(name: str, a: int, b: int, masks: list[np.ndarray], what: str) -> None:
    both = int((masks[a] & masks[b]).sum())
    if both:
        raise StrayAccess(
            f"{what}: cores {a} and {b} both wrote {both} of the {masks[a].size} elements of `{name}`; "
            "each core computes its own part of the axis `team` (gf_share)"
        )
