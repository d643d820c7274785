"""The schedule: what runs when, from where, in which tiles. The value between the tiler and the emitter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fusion_engine.expr import Expr
from tiler.tables import Tables


@dataclass(frozen=True, slots=True)
class BoundOperand:
    """An operand of one call under one implementation, its dims already in L1 storage order (outermost first).

    `index[d]` gives the coordinate along dim d from the axes (numbers substituted); None is the whole extent. The
    far element at coordinates c lies `far_offset + sum(c * far_strides)` elements into `root`. For constants `root`
    is the packed constant, dense in these dims. The dims of a group of any rank are named after its folded axes (i0,
    i1, ...); one that is broadcast has extent 1, index 0 and stride 0. `near` tells along which dims a tile may lie
    inside a larger tensor in L1: by what the call is given, a `stride`, the `pitch` of rows or the distance of a `line`
    of rows, or only `dense`; `whole`: only the whole tensor may.
    """

    name: str
    buffer: str
    root: str
    role: str  # "in", "const", "out"
    dtype: str
    itemsize: int
    dims: tuple[str, ...]
    index: tuple[Expr | None, ...]
    extent: tuple[int, ...]
    far_offset: int
    far_strides: tuple[int, ...]
    outside: str = "never"  # border | skip | never
    gather: bool = False
    near: tuple[str, ...] = ()  # per dim, how the kernel steps along it in L1: stride | line | pitch | dense | whole


@dataclass(frozen=True, slots=True)
class Loop:
    """One split axis: `for (axis = 0; axis < extent; axis += tile)`, or the same tiles from the last to the first."""

    axis: str
    extent: int
    tile: int
    down: bool = False

    @property
    def trips(self) -> int:
        return -(-self.extent // self.tile)

    @property
    def last(self) -> int:
        """Where the last tile begins."""
        return (self.trips - 1) * self.tile


@dataclass(frozen=True, slots=True)
class Shares:
    """What each tile reads of several constants lies together in L2, one share per tile of the loops `axes`, outermost
    first, `pitch` bytes from share to share. `operands` begin `offsets` bytes into a share, there and in L1; the last
    ends it, shorter where its tile is."""

    operands: tuple[str, ...]
    offsets: tuple[int, ...]
    axes: tuple[str, ...]
    pitch: int


@dataclass(frozen=True, slots=True)
class L2Tile:
    """What the stage in L2 of an operand in L3 holds at once: what `block` tiles in a row of loops[depth - 1] touch,
    loops outside that standing still, those inside whole; depth 0: all of the operand. At most `bytes`."""

    depth: int
    block: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """How one operand's tiles travel; or that it stays: `level` "l1" has its home at byte `far` of L1, no buffers;
    "ring" the same for rows of it, in a rolled group.

    `depth` is the number of loops around its copy: 0 = once before all loops, d = in the body of loops[d-1]. Inputs
    are copied when entering the body, outputs when leaving it. `l1` holds one L1 byte offset, or two when
    double-buffered. `level` is the home of the far side: "l2" at byte offset `far`, or "l3", where every tile passes
    through `stage`: one L2 byte offset, or two that take turns, so that the way to or from L3 runs beside other
    tiles; what it holds at once is `l2_tile`.
    `span`: its greatest copy has so many bytes and brings the tiles of others too, whose `lead` names it and which are
    not copied themselves; where they lie tile by tile, `shares` says how. `ahead`: the copy of its first
    tile is started by the call before, and belongs to this one's counts. `bytes` and `transfers` count per hop, over
    the whole call, key "l2_l1" / "l3_l2". `places`: a constant that passes through L2 in pieces lies elsewhere in each
    iteration of loops[0]; they stand in for `far`, the byte offset at which it would begin were it whole.
    """

    operand: BoundOperand
    depth: int
    l1: tuple[int, ...]
    tile_bytes: int
    level: str
    far: int
    stage: tuple[int, ...]
    bytes: Mapping[str, int]
    transfers: Mapping[str, int]
    ahead: bool = False
    span: int = 0
    lead: str = ""
    shares: Shares | None = None
    places: tuple[int, ...] = ()
    l2_tile: L2Tile | None = None

    @property
    def joined(self) -> bool:
        """Whether the copy of another operand brings it."""
        return bool(self.lead)


@dataclass(frozen=True, slots=True)
class Trailing:
    """A result that lies over an input in L1, in `bytes` bytes (operand names): tiles overwrite what none still
    reads."""

    input: str
    result: str
    bytes: int


@dataclass(frozen=True, slots=True)
class CallPlan:
    """One kernel call, tiled. `axes` gives every axis' full extent; an axis without loop is whole in each tile."""

    call: str
    kernel: str
    implementation: str
    axes: Mapping[str, int]
    loops: tuple[Loop, ...]
    operands: tuple[OperandPlan, ...]
    attrs: Mapping[str, object]
    scratch: Mapping[str, tuple[int, int]]  # name -> (L1 offset, bytes per core)
    accumulator: tuple[int, int] | None  # (L1 offset, bytes)
    tiles: int
    l1_bytes: int
    compute_cycles: int
    moved_cycles: int  # of all data movement, hidden or not
    total_cycles: int  # compute and exposed data movement
    bound_bytes: Mapping[str, int]  # elements read and written once, per hop
    notes: tuple[str, ...] = ()  # e.g. why a better implementation was not taken, what binds
    trailing: Trailing | None = None


@dataclass(frozen=True, slots=True)
class PackedTiles:
    """A constant that lies tile by tile between others: `at[i]` bytes from their beginning its elements `boxes[i]`,
    first and count per dim of `extent`, packed."""

    buffer: str
    order: tuple[str, ...]
    dims: tuple[str, ...]
    extent: tuple[int, ...]
    at: tuple[int, ...]
    boxes: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class PackedConstant:
    """A constant in the storage order its call wants. `order` holds dims such as "k", "k/4", "k%4". Or several that
    come together: `parts`, `buffer` the largest of them."""

    name: str  # the root name that operands refer to
    buffer: str
    order: tuple[str, ...]
    dims: tuple[str, ...]  # dim names of the logical shape
    bytes: int
    cold: int  # byte offset in the L3 image
    l2: int | None  # byte offset while in L2, of its first piece where it passes through; None: tile by tile
    parts: tuple[PackedTiles, ...] = ()


@dataclass(frozen=True, slots=True)
class Residency:
    """A root buffer, or a piece of a constant, in one memory over calls first..last (inclusive), at a byte offset: from
    step `first_step` of the first call to step `last_step` of the last (-1: to its end). The steps of a call are the
    iterations of loops[0], those of a rolled group's first call the group's."""

    root: str
    offset: int
    bytes: int
    first: int
    last: int
    first_step: int = 0
    last_step: int = -1


@dataclass(frozen=True, slots=True)
class Transfer:
    """Constants, or a piece of one, from L3 to L2: started before step `start_step` of call `start` (-1 = when
    opening), complete before step `wait_step` of call `wait`. Steps: see Residency; before step 0 is before the call.
    Transfers are started, and waited for, in their order."""

    roots: tuple[str, ...]
    l2: int
    l3: int
    bytes: int
    start: int
    wait: int
    commands: int
    start_step: int = 0
    wait_step: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """A fused group: calls first..last (inclusive) and the roots that `stay` in L1 between them.

    `bound_bytes` is what the group must move between L2 and L1: its weights, inputs and outputs, each element once.
    """

    first: int
    last: int
    stay: tuple[str, ...]
    bound_bytes: int


@dataclass(frozen=True, slots=True)
class Ring:
    """A tensor of which only rows are ever in L1: `rows` of `row_bytes` at byte `offset`, of `height` in all; those
    still read move to its start before every `every`-th step, or, `again`, each step makes all that it reads."""

    root: str
    offset: int
    rows: int
    row_bytes: int
    height: int
    every: int
    again: bool = False


@dataclass(frozen=True, slots=True)
class Roll:
    """Calls first..last (inclusive) go down the image together, `step` rows of the last one's result in each of
    `steps` steps.

    `axes` per call: the axis that walks the rows of its result, values of it a row, rows. `rings[i]` is the result of
    call first + i.
    """

    first: int
    last: int
    step: int
    steps: int
    axes: tuple[tuple[str, int, int], ...]
    rings: tuple[Ring, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds beside the schedule's figures (ARCHITECTURE.md, "Lower bounds")."""

    bytes_per_call: int  # every element actually read and written once per call, L2<->L1
    fused_bytes: int  # weights + inputs + outputs of the network
    live_bytes: int  # greatest sum of live activations at any call
    kept_bytes: int  # the least of them that must lie in L2 at once: inputs and outputs, or what was proven
    compute_cycles: int
    bandwidth_cycles: Mapping[str, int]  # bytes / bandwidth per hop


@dataclass(frozen=True)
class Schedule:
    """A complete plan for one network on one target. Offsets and sizes in bytes.

    `bytes`, `transfer_count` and the cycles are those of one run; transfers when opening (start -1) are not in them.
    """

    network: str
    target: str
    budgets: Mapping[str, int]  # level -> bytes for plan data
    calls: tuple[CallPlan, ...]
    constants: tuple[PackedConstant, ...]
    residencies: tuple[Residency, ...]  # in L2
    stays: tuple[Residency, ...]  # in L1, across calls
    l3_homes: Mapping[str, int]  # roots homed in L3 -> byte offset
    transfers: tuple[Transfer, ...]
    peaks: Mapping[str, int]
    activations: int  # greatest bytes of activations in L2 at once
    tables: Tables  # of the emitted C, in L2 beside its peak
    bytes: Mapping[str, int]  # per hop, total
    transfer_count: Mapping[str, int]
    compute_cycles: int
    total_cycles: int
    bounds: Bounds
    groups: tuple[Group, ...]
    rolls: tuple[Roll, ...]
    gap: float | None  # proven: the objective is at most this fraction above the least; None where nothing is proven
    notes: tuple[str, ...] = field(default=())

    def fetched_inside(self, call: int) -> tuple[int, int]:
        """Bytes and commands of what is fetched from L3 while a call runs (or the rolled group that it begins)."""
        inside = [t for t in self.transfers if t.start == call and t.start_step > 0]
        return sum(t.bytes for t in inside), sum(t.commands for t in inside)
