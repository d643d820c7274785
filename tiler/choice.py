"""What a search answers: the chosen tiling, or what the least would need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tiler.schedule import L2Tile
from tiler.trailing import Trail


@dataclass(frozen=True, slots=True)
class Bundle:
    """Constants of a call that one command a tile brings (tiler/bundles.py): operands by position, in the order in
    which they lie `offsets` bytes into a share; the first leads: counts and buffers of all are its own.

    `axes` are the loops (axis, tile) that cut them, outermost first; each of the `count` shares begins `pitch` bytes
    behind the one before. `bytes` of all in L2. Copying each share once takes `moved` bytes and so many `commands`.
    """

    operands: tuple[int, ...]
    offsets: tuple[int, ...]
    axes: tuple[tuple[str, int], ...]
    pitch: int
    count: int
    bytes: int
    moved: int
    commands: int

    @property
    def lead(self) -> int:
        return self.operands[0]


@dataclass(frozen=True, slots=True)
class Choice:
    """One tiling. `loops` outermost first as (axis, tile); `depth`, `double` (two buffers in L1), `halved` (two halves
    of its stage in L2) and counts per operand, in the call's order.

    `bytes` and `transfers` per hop over the whole call. `scratch` is bytes of one piece per buffer; `l1_bytes` of all
    buffers.
    """

    loops: tuple[tuple[str, int], ...]
    depth: tuple[int, ...]
    double: tuple[bool, ...]
    halved: tuple[bool, ...]
    tile_bytes: tuple[int, ...]
    bytes: tuple[Mapping[str, int], ...]
    transfers: tuple[Mapping[str, int], ...]
    scratch: Mapping[str, int]
    accumulator: int
    tiles: int
    l1_bytes: int
    stage_bytes: int
    compute_cycles: int
    moved_cycles: int  # of all data movement, hidden or not
    total_cycles: int
    first: tuple[float, ...] = ()  # cycles of waiting for one copy of each operand, its commands' issue aside
    beside: float = 0.0  # cycles of the copies that run beside computing
    trail: Trail | None = None  # how its result overlaps an input
    bundles: tuple[Bundle, ...] = ()  # constants that come together
    l2_tiles: tuple[L2Tile | None, ...] = ()  # of the operands in L3, what their stages hold at once

    def bundle(self, operand: int) -> Bundle | None:
        """That which an operand, by position, belongs to."""
        return next((b for b in self.bundles if operand in b.operands), None)

    @property
    def deep_bytes(self) -> int:
        """Bytes between L3 and L2."""
        return sum(b.get("l3_l2", 0) for b in self.bytes)

    @property
    def key(self) -> tuple[int, int, int, int]:
        """What is minimised: cycles, then bytes, then transfers, then L1."""
        moved = sum(sum(b.values()) for b in self.bytes)
        return self.total_cycles, moved, sum(sum(t.values()) for t in self.transfers), self.l1_bytes


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No tiling fits: the least L1 bytes of any (its loops), and the least L2 stage bytes of any that fits L1."""

    l1_bytes: int
    stage_bytes: int
    smallest: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best tiling or why there is none."""

    best: Choice | Infeasible | None
    thinned: bool


@dataclass(frozen=True, slots=True)
class CallLayout:
    """L1 offsets of one call: operands' buffers, scratch (offset, bytes of one piece), the accumulator (offset,
    bytes)."""

    buffers: tuple[tuple[int, ...], ...]
    scratch: Mapping[str, tuple[int, int]]
    accumulator: tuple[int, int] | None
