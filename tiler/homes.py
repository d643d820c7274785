"""One try at giving every buffer a home: tilings for the draft's decisions, constants resident or fetched, addresses
in L2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tiler.bound import Packing
from tiler.liveness import Life
from tiler.options import CallOptions, NoFit, Picked, Where
from tiler.placement import Block, live_bytes, place
from tiler.rolls import roll_picks
from tiler.stays import Stays, widened
from tiler.target import Hop
from tiler.timeline import Fetch, stall_cycles

FETCH_AHEAD = 8  # calls that a constant may be fetched before its use


@dataclass(frozen=True)
class Homes:
    """The decided memory of one network. Offsets in bytes; `stages[i]` maps operand names of call i to L2 offsets.

    `cycles` of the whole run, waiting for constants included; `moving` bytes come and go between L3 and L2 in every
    run.
    """

    picked: tuple[Picked, ...]
    constants: Mapping[str, Packing]
    resident: Mapping[str, int]
    fetched: Mapping[str, tuple[Fetch, int]]
    activations: Mapping[str, int]
    spilled: tuple[str, ...]
    stages: tuple[Mapping[str, int], ...]
    peak: int
    cycles: int
    moving: int


@dataclass
class Draft:
    """The decisions so far: names of buffers or roots staged from L3 tile by tile; whether some constants are
    fetched (`fetching`), ahead of their call (`ahead`), and whether room for that goes before constants that stay
    (`reserve`)."""

    staged: set[str] = field(default_factory=set)
    fetching: bool = False
    ahead: bool = True
    reserve: bool = True

    def copy(self) -> Draft:
        return Draft(set(self.staged), self.fetching, self.ahead, self.reserve)


class OutOfRoomError(Exception):
    """Everything that can be in L3 is there, and a call still has no room in L2."""


class StagedRollError(Exception):
    """Something that a rolled group reads or writes would lie in L3."""


def rolled_picks(near: Stays) -> dict[int, Picked]:
    """By number the calls of rolled groups."""
    return {first + i: p for first, plan in near.rolls.items() for i, p in enumerate(roll_picks(plan))}


class Attempt:
    """One try with the draft's decisions; where it fails, `draft` is moved one step on."""

    def __init__(
        self, options: Sequence[CallOptions], lives: Sequence[Life], near: Stays, l2: int, deep: Hop, draft: Draft
    ) -> None:
        self.options, self.near, self.l2, self.deep, self.draft = options, near, l2, deep, draft
        self.spans = [(first, first + len(plan.calls) - 1) for first, plan in near.rolls.items()]
        self.lives = [widened(v, self.spans) for v in lives if v.root not in near.roots | near.inner]
        self.rolled = rolled_picks(near)
        self.calls = len(options)

    def run(self, final: bool = False) -> Homes | None:
        """The homes, at the least peak if `final`, else at any that fits; None after a step on. Raises
        OutOfRoomError."""
        self.here = [Block(v.root, v.bytes, v.first, v.last) for v in self.lives if v.root not in self.draft.staged]
        level = live_bytes(self.here, self.calls)
        full = next((i for i, b in enumerate(level) if b > self.l2), None)
        if full is not None:
            self._spill(max(range(self.calls), key=lambda i: (level[i], -i)))
            return None
        picked = self._pick(level)
        if picked is None:
            return None
        self.picked = picked
        self.constants = _constants(picked)
        self.users = self._users()
        blocks = [*self.here, *self._stages()]
        resident, fetched = self._divide(blocks)
        if resident is None:
            return None
        return self._place(blocks, resident, fetched, final)

    # ---- tilings, and the constants they want ----

    def _pick(self, level: list[int]) -> tuple[Picked, ...] | None:
        result = []
        staged = frozenset(self.draft.staged)
        for i, o in enumerate(self.options):
            where = self.near.where(i, staged)
            touched = any("l3" in where.levels(b) for b in o.bound)
            if i in self.rolled:
                if touched:
                    raise StagedRollError
                result.append(self.rolled[i])
                continue
            room = self.near.room[i]
            p = self._pick_staged(o, where, room, self.l2 - level[i]) if touched else o.pick(room, where)
            if isinstance(p, NoFit):
                self._spill(i)
                return None
            result.append(p)
        return tuple(result)

    def _pick_staged(self, o: CallOptions, where: Where, room: int, free: int) -> Picked | NoFit:
        """With room left for the constants that the call reads whole, if that can be."""
        whole = sum(Block("", p.bytes, 0, 0).size for p in o.bound[0].packings if p.buffer not in where.staged)
        p = o.pick(room, where, free - whole)
        return o.pick(room, where, free) if isinstance(p, NoFit) else p

    def _users(self) -> dict[str, list[int]]:
        """Calls that read each constant whole from L2."""
        users: dict[str, list[int]] = {}
        for i, p in enumerate(self.picked):
            for pack in p.bound.packings:
                if pack.buffer not in self.draft.staged:
                    users.setdefault(pack.root, []).extend(self._together(i))
        return users

    def _together(self, call: int) -> tuple[int, ...]:
        """A call, or the first and last of the rolled group that it is in."""
        return next(((a, b) for a, b in self.spans if a <= call <= b), (call,))

    def _stages(self) -> list[Block]:
        return [
            Block(f"{i} {o.name}", size, i, i)
            for i, p in enumerate(self.picked)
            for o, size in zip(p.bound.operands, p.choice.tile_bytes, strict=True)
            if o.buffer in self.draft.staged or o.root in self.draft.staged
        ]

    # ---- constants ----

    def _divide(self, blocks: list[Block]) -> tuple[list[str] | None, dict[str, Fetch]]:
        """Which constants stay in L2 and which are fetched; (None, ...) after a step on where they do not fit."""
        size = {r: Block(r, self.constants[r].bytes, 0, 0).size for r in self.users}
        free = [self.l2 - b for b in live_bytes(blocks, self.calls)]
        if not self.draft.fetching and sum(size.values()) <= min(free, default=0):
            return list(self.users), {}
        self.draft.fetching = True
        for r, calls in self.users.items():
            _take(free, calls[0], calls[-1], size[r])
        if any(b < 0 for b in free):
            self._stream(min(range(self.calls), key=lambda i: (free[i], i)))
            return None, {}
        resident = self._keep(size, free)
        fetched = {
            r: Fetch(r, self.constants[r].bytes, c[0], c[0], c[-1]) for r, c in self.users.items() if r not in resident
        }
        return resident, self._earlier(fetched, size, free) if self.draft.ahead else fetched

    def _keep(self, size: Mapping[str, int], free: list[int]) -> list[str]:
        """Small constants first (a fetch costs its start, whatever it moves), while the others can be fetched one
        call ahead."""
        kept = []
        ahead = [0] * self.calls
        reserve = self.draft.ahead and self.draft.reserve
        for r, calls in self.users.items():
            if reserve and calls[0] > 0:
                ahead[calls[0] - 1] += size[r]
        for r in sorted(self.users, key=lambda r: (size[r], r)):
            first, last = self.users[r][0], self.users[r][-1]
            outside = [i for i in range(self.calls) if not first <= i <= last]
            own = size[r] if reserve else 0
            if all(free[i] - size[r] >= ahead[i] - (own if i == first - 1 else 0) for i in outside):
                _take(free, 0, first - 1, size[r])
                _take(free, last + 1, self.calls - 1, size[r])
                if first > 0:
                    ahead[first - 1] -= own
                kept.append(r)
        return kept

    def _earlier(self, fetched: dict[str, Fetch], size: Mapping[str, int], free: list[int]) -> dict[str, Fetch]:
        """Each fetch started so many calls earlier that L3 keeps up, where L2 has room."""
        cycles = [p.choice.total_cycles for p in self.picked]
        result = {}
        for r, f in sorted(fetched.items(), key=lambda x: (x[1].wait, x[0])):
            needed, start = self.constants[r].bytes / self.deep.bytes_per_cycle, f.start
            while start > 0 and f.wait - start < FETCH_AHEAD and needed > 0 and free[start - 1] >= size[r]:
                start -= 1
                free[start] -= size[r]
                needed -= cycles[start]
                cycles[start] = max(0, cycles[start] - int(self.constants[r].bytes / self.deep.bytes_per_cycle))
            span = self._together(start)
            if span[0] < start:  # nothing starts inside a rolled group
                start = min(f.wait, span[-1] + 1)
            result[r] = Fetch(r, f.bytes, start, f.wait, f.last)
        return result

    # ---- addresses ----

    def _place(self, blocks: list[Block], resident: list[str], fetched: dict[str, Fetch], final: bool) -> Homes | None:
        base, offsets = 0, {}
        for r in resident:
            offsets[r] = base
            base += Block(r, self.constants[r].bytes, 0, 0).size
        moving = [Block(r, self.constants[r].bytes, f.start, f.last) for r, f in fetched.items()]
        everything = [*blocks, *moving]
        placement = place(everything, self.calls, None if final else self.l2 - base)
        if base + placement.peak > self.l2:
            self._step_on(everything)
            return None
        at = {b.name: base + o for b, o in zip(everything, placement.offsets, strict=True)}
        activations = {b.name: at[b.name] for b in self.here}
        stages: list[dict[str, int]] = [{} for _ in self.options]
        for b in blocks[len(self.here) :]:
            call, operand = b.name.split(" ", 1)
            stages[int(call)][operand] = at[b.name]
        cycles = [p.choice.total_cycles for p in self.picked]
        streamed = [p.choice.deep_bytes for p in self.picked]
        return Homes(
            picked=self.picked,
            constants=self.constants,
            resident=offsets,
            fetched={r: (f, at[r]) for r, f in fetched.items()},
            activations=activations,
            spilled=tuple(v.root for v in self.lives if v.root in self.draft.staged),
            stages=tuple(stages),
            peak=base + placement.peak,
            cycles=sum(cycles) + stall_cycles(cycles, streamed, list(fetched.values()), self.deep),
            moving=sum(f.bytes for f in fetched.values()) + sum(streamed),
        )

    # ---- the steps ----

    def _step_on(self, blocks: list[Block]) -> None:
        """The sizes fit but no addresses were found: fetch, then fetch late, then free the fullest call."""
        if not self.draft.fetching:
            self.draft.fetching = True
        elif self.draft.ahead:
            self.draft.ahead = False
        else:
            level = live_bytes(blocks, self.calls)
            self._stream(max(range(self.calls), key=lambda i: (level[i], -i)))

    def _stream(self, call: int) -> None:
        """The largest constant live at a call is read tile by tile; with none left, an activation is spilled."""
        here = {r: c for r, c in self.users.items() if c[0] <= call <= c[-1]}
        if not here:
            self._spill(call)
            return
        root = max(sorted(here), key=lambda r: self.constants[r].bytes)
        self.draft.staged.add(self.constants[root].buffer)
        self.draft.ahead = True

    def _spill(self, call: int) -> None:
        """The largest activation live at a call moves to L3, first of those the call does not use; else L2 is too
        small."""
        used = {o.root for b in self.options[call].bound for o in b.operands}
        live = [v for v in self.lives if v.first <= call <= v.last and v.root not in self.draft.staged]
        if not live:
            raise OutOfRoomError
        victim = max(live, key=lambda v: (v.root not in used, v.bytes, v.root))
        self.draft.staged.add(victim.root)


def _constants(picked: Sequence[Picked]) -> dict[str, Packing]:
    """Every packed constant, in the order of its first use."""
    result: dict[str, Packing] = {}
    for p in picked:
        for pack in p.bound.packings:
            result.setdefault(pack.root, pack)
    return result


def _take(free: list[int], first: int, last: int, size: int) -> None:
    for i in range(first, last + 1):
        free[i] -= size
