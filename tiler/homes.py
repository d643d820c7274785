"""One try at giving every buffer a home: tilings for the draft's decisions, constants resident or fetched, addresses
in L2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tiler.bound import Packing
from tiler.fetching import NOTHING, FetchPlan, Taken
from tiler.liveness import Life
from tiler.options import CallOptions, NoFit, Picked
from tiler.pieces import pieces_of, stretches_of
from tiler.placement import Block, Placement, live_bytes, place
from tiler.residents import Division, NoPlace, Passage, divide
from tiler.rolls import roll_picks
from tiler.stays import Stays, widened
from tiler.tables import Tables, tables_of
from tiler.target import Hop
from tiler.timeline import Stretch, timeline
from tiler.where import Where
from tiler.widening import widened as with_l2_tiles

LEAST_PIECE = 256  # bytes of a constant's pieces that are not made smaller


@dataclass(frozen=True)
class Homes:
    """The decided memory of one network. Offsets in bytes; `stages[i]` maps operand names of call i to L2 offsets,
    one or two each.

    `resident` constants stay, `passing` is how the others come. `cycles` of the whole run, waiting for constants
    included, at least `bound` with these tilings; `moving` bytes come and go between L3 and L2 in every run. `tables`
    lie in L2 beside all that `peak` counts.
    """

    picked: tuple[Picked, ...]
    stretches: tuple[Stretch, ...]
    constants: Mapping[str, Packing]
    resident: Mapping[str, int]
    passing: FetchPlan
    activations: Mapping[str, int]
    spilled: tuple[str, ...]
    stages: tuple[Mapping[str, tuple[int, ...]], ...]
    peak: int
    cycles: int
    bound: float
    moving: int
    tables: Tables


@dataclass
class Draft:
    """The decisions so far: names of buffers or roots staged from L3 tile by tile; by number, the calls whose stages
    together, and the calls of whose constants each piece, have so many bytes at most; what stages that hold more than
    an L1 tile may have in any call."""

    staged: set[str] = field(default_factory=set)
    stages: dict[int, int] = field(default_factory=dict)
    pieces: dict[int, int] = field(default_factory=dict)
    wide: int = 0

    def copy(self) -> Draft:
        return Draft(set(self.staged), dict(self.stages), dict(self.pieces), self.wide)


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
        self.spans = near.spans
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
        return self._place([*self.here, *self._stages()], final)

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
            p = self._pick_staged(i, where, room, self.l2 - level[i]) if touched else self._pick_near(i, where, room)
            if isinstance(p, NoFit):
                self._spill(i)
                return None
            result.append(p)
        return tuple(result)

    def _pick_near(self, call: int, where: Where, room: int) -> Picked | NoFit:
        """In pieces of a limited size, if that is asked for and can be."""
        o, limit = self.options[call], self.draft.pieces.get(call, self.l2)
        if limit >= self.l2:
            return self.near.pick(call, o, where.staged)
        while limit < self.l2:
            large = frozenset(p.buffer for p in o.bound[0].packings if p.bytes > limit)
            p = o.pick(room, replace(where, streams=large), limit)
            if isinstance(p, Picked):
                return p
            limit *= 2
        return o.pick(room, where)

    def _pick_staged(self, call: int, where: Where, room: int, free: int) -> Picked | NoFit:
        """With room left for the constants that the call reads whole, and stages that are as small as is asked for, if
        that can be."""
        o = self.options[call]
        whole = sum(Block("", p.bytes, 0, 0).size for p in o.bound[0].packings if p.buffer not in where.staged)
        asked = self.draft.stages.get(call, free)
        limits = tuple(dict.fromkeys((min(free - whole, asked), min(free, asked), free - whole, free)))
        found = [o.pick(room, where, limit) for limit in limits]
        at = next((i for i, p in enumerate(found) if isinstance(p, Picked)), -1)
        return self._widened(o, found[at], limits[at])

    def _widened(self, o: CallOptions, p: Picked | NoFit, limit: int) -> Picked | NoFit:
        """With what its stages may have beyond an L1 tile each."""
        if isinstance(p, NoFit) or not self.draft.wide:
            return p
        return replace(p, choice=with_l2_tiles(p.bound, p.choice, min(limit, self.draft.wide), o.target, o.objective))

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
            Block(f"{i} {p.bound.operands[k].name} {half}", tile.bytes, i, i)
            for i, p in enumerate(self.picked)
            for k, tile in enumerate(p.choice.l2_tiles)
            if tile is not None
            for half in range(1 + p.choice.halved[k])
        ]

    # ---- constants, and addresses ----

    def _place(self, blocks: list[Block], final: bool) -> Homes | None:
        """Activations and stages at the least peak; constants below them that stay, around them that pass."""
        sizes = {r: Block(r, self.constants[r].bytes, 0, 0).size for r in self.users}
        everything = sum(sizes.values())
        placement = place(blocks, self.calls, None if final else self.l2 - everything)
        if everything + placement.peak <= self.l2:
            return self._homes(blocks, placement, Division(tuple(sizes), NOTHING, 0.0), sizes)
        if placement.peak > self.l2:
            fullest = self._fullest(blocks)
            if not self._narrow(fullest):
                self._spill(fullest)
            return None
        stretches = self._stretches()
        taken = [taken_by(b, at, stretches) for b, at in zip(blocks, placement.offsets, strict=True)]
        pieces = pieces_of(self.picked, stretches, sizes, list(sizes))
        division = divide(Passage(tuple(pieces), stretches, tuple(sizes.items()), tuple(taken), self.l2, self.deep))
        if isinstance(division, NoPlace):
            self._shrink(next(s.first for s in stretches if division.step < s.end))
            return None
        return self._homes(blocks, placement, division, sizes)

    def _stretches(self) -> tuple[Stretch, ...]:
        steps = {first: (first + len(plan.calls) - 1, plan.steps.count) for first, plan in self.near.rolls.items()}
        return stretches_of(self.picked, steps)

    def _homes(self, blocks: list[Block], placement: Placement, division: Division, sizes: Mapping[str, int]) -> Homes:
        base, resident = 0, {}
        for r in division.stay:
            resident[r] = base
            base += sizes[r]
        at = {b.name: base + o for b, o in zip(blocks, placement.offsets, strict=True)}
        stages: list[dict[str, tuple[int, ...]]] = [{} for _ in self.options]
        for b in blocks[len(self.here) :]:
            call, operand, _ = b.name.split(" ")
            stages[int(call)][operand] = (*stages[int(call)].get(operand, ()), at[b.name])
        stretches = self._stretches()
        fetches = [x.fetch for x in division.plan.loads]
        return Homes(
            picked=self.picked,
            stretches=stretches,
            constants=self.constants,
            resident=resident,
            passing=division.plan,
            activations={b.name: at[b.name] for b in self.here},
            spilled=tuple(v.root for v in self.lives if v.root in self.draft.staged),
            stages=tuple(stages),
            peak=max(base + placement.peak, division.plan.top),
            cycles=round(timeline(stretches, fetches, self.deep).end),
            bound=max(division.bound, sum(s.cycles for s in stretches)),
            moving=sum(f.bytes for f in fetches) + sum(s.streamed for s in stretches),
            tables=tables_of(fetches, stretches, self._moved_places(division.plan)),
        )

    def _moved_places(self, plan: FetchPlan) -> int:
        """Pieces of the constants that would begin elsewhere at each step, once for each operand that reads them."""
        begins: dict[str, list[int]] = {}
        for piece, at in zip(plan.pieces, plan.places, strict=True):
            begins.setdefault(piece.root, []).append(at - piece.begin)
        moved = {root: len(found) for root, found in begins.items() if len(set(found)) > 1}
        return sum(moved.get(o.root, 0) for p in self.picked for o in p.bound.operands)

    # ---- the steps ----

    def _fullest(self, blocks: list[Block]) -> int:
        level = live_bytes(blocks, self.calls)
        return max(range(self.calls), key=lambda i: (level[i], -i))

    def _narrow(self, call: int) -> bool:
        """A call's stages take half of what they did; False where they cannot, or there are none."""
        limit = self.picked[call].choice.stage_bytes // 2
        if not limit or limit >= self.draft.stages.get(call, self.l2):
            return False
        where = self.near.where(call, frozenset(self.draft.staged))
        if isinstance(self.options[call].pick(self.near.room[call], where, limit), NoFit):
            return False
        self.draft.stages[call] = limit
        return True

    def _shrink(self, call: int) -> None:
        """The constants of a call come in smaller pieces, and its stages shrink; where they are small already, the
        largest constant is read tile by tile."""
        limit = self.draft.pieces.get(call, self.l2) // 2
        if self._narrow(call):
            return
        if limit < LEAST_PIECE or call in self.rolled:
            self._stream(call)
        else:
            self.draft.pieces[call] = limit

    def _stream(self, call: int) -> None:
        """The largest constant live at a call is read tile by tile; with none left, an activation is spilled."""
        here = {r: c for r, c in self.users.items() if c[0] <= call <= c[-1]}
        if not here:
            self._spill(call)
            return
        root = max(sorted(here), key=lambda r: self.constants[r].bytes)
        self.draft.staged.add(self.constants[root].buffer)

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


def taken_by(b: Block, at: int, stretches: Sequence[Stretch]) -> Taken:
    """A block's place over steps."""
    first = next(s.begin for s in stretches if b.first <= s.last)
    last = next(s.end - 1 for s in stretches if b.last <= s.last)
    return Taken(at, at + b.size, first, last)
