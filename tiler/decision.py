"""Where every buffer lives: activations in L2 or spilled to L3, constants resident, fetched ahead, or streamed tile
by tile.

First the steps that each take less of L2, until everything has an address: constants that stay and constants that pass
through it (tiler/residents.py); passing in smaller pieces; then, at the fullest call, constants streamed, activations
spilled. Where runs wait for L3, smaller pieces and more streaming are then tried as long as the objective gains by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from fusion_engine.diagnostics import Diagnostic, GapFuseError, counted
from tiler.choice import Infeasible
from tiler.homes import Attempt, Draft, Homes, OutOfRoomError, StagedRollError
from tiler.liveness import Life
from tiler.options import CallOptions, NoFit
from tiler.placement import ALIGNMENT
from tiler.stays import Stays
from tiler.target import Target

TRIES = 10  # other drafts that are weighed
SPILLS = 4  # activations of which one more is tried in L3
PARTS = (4, 8, 16, 32)  # of L2: sizes of pieces that are tried
LESS = (0.75, 0.5)  # of L2: what they lead to is weighed too
WIDE = (1, 2, 4, 8)  # of L2: what stages may have that hold more than an L1 tile
WORTH = 1.002  # a run that is longer than its calls by less is not improved


class TooSmallError(GapFuseError):
    """L2 is too small; `least` bytes would do."""

    def __init__(self, diagnostic: Diagnostic, least: int) -> None:
        super().__init__(diagnostic)
        self.least = least


class LackingError(Exception):
    """L2 is too small. What would do is found when asked for."""

    def __init__(self, decide: _Decision) -> None:
        super().__init__()
        self._decide = decide

    def too_small(self) -> TooSmallError:
        """The error to tell, with the smallest size that would do: that of the largest tiles with everything in L3."""
        return _too_small(self._decide, self._decide.least())

    def below(self, size: int) -> TooSmallError | None:
        """Likewise where something must be in L2, by halving; None where that is not below `size` bytes."""
        if self._decide.within(size - 1).first() is None:
            return None
        return _too_small(self._decide, _smallest_l2(self._decide, size - 1))


def decide_homes(options: Sequence[CallOptions], lives: Sequence[Life], near: Stays, target: Target) -> Homes:
    """Choices for all calls and addresses in L2 for what does not stay in L1. Raises LackingError."""
    decide = _Decision(options, lives, near, target)
    homes, draft = decide.widen(*decide.start())
    if draft != Draft() or (homes.moving and homes.cycles > WORTH * homes.bound):
        draft = decide.of_less_l2(*decide.improve(homes, draft))
    return decide.settle(draft, final=True)[0]


def smallest_l1(options: Sequence[CallOptions]) -> int:
    """The least L1 that every call fits."""
    least = [p.l1_bytes for o in options if isinstance(p := o.pick(0), NoFit)]
    return max(least, default=ALIGNMENT)


class _Decision:
    def __init__(self, options: Sequence[CallOptions], lives: Sequence[Life], near: Stays, target: Target) -> None:
        self.options, self.lives, self.near, self.target = options, lives, near, target
        self.sizes = {v.root: v.bytes for v in lives}

    def settle(self, draft: Draft, final: bool = False) -> tuple[Homes, Draft]:
        """The first homes that fit from a draft on, their tables beside them, and the draft that led to them. Raises
        OutOfRoomError."""
        draft, l2, beside = draft.copy(), self.target.budget("l2"), 0
        while True:
            attempt = Attempt(
                self.options,
                self.lives,
                self.near,
                l2 - beside,
                self.target.hops["l3_l2"],
                draft,
            )
            before = draft.copy()
            homes = attempt.run(final)
            if homes is not None and homes.peak + homes.tables.bytes <= l2:
                return homes, draft
            if homes is not None:
                beside += homes.peak + homes.tables.bytes - l2
                continue
            assert draft != before, "a step must change the draft"

    def start(self) -> tuple[Homes, Draft]:
        """The first homes from everything in L2 on. Where those steps lead nowhere, what less L2 leads to; at last
        everything in L3, which fits if anything does. Raises LackingError."""
        found = self.first()
        if found is not None:
            return found
        least, less = self.least(), self.target.budget("l2") // 2
        if self.near.rolls or self.target.budget("l2") < least:
            raise LackingError(self)
        while less >= least:
            led = self._led_to(less)
            if led is not None:
                return led
            less //= 2
        return self.settle(self._all_in_l3())

    def least(self) -> int:
        """Of L2, with everything in L3."""
        return max(ALIGNMENT, *(smallest_stage(self.options, i, self.near) for i in range(len(self.options))))

    def _all_in_l3(self) -> Draft:
        buffers = {o.buffer for c in self.options for b in c.bound for o in b.operands}
        return Draft(staged=buffers | set(self.sizes))

    def within(self, l2: int) -> _Decision:
        return _Decision(self.options, self.lives, self.near, self.target.with_budgets(l2=l2))

    def first(self) -> tuple[Homes, Draft] | None:
        return self._try(Draft())

    def _led_to(self, less: int, wide: int = 0) -> tuple[Homes, Draft] | None:
        """Here, with stages that are so `wide`, what `less` bytes of L2 lead to."""
        found = self.within(less).first()
        return None if found is None else self._try(replace(found[1], wide=wide))

    def of_less_l2(self, homes: Homes, draft: Draft) -> Draft:
        """Where activations lie in L3, the better draft: this one, or what less L2 leads to. That fits here
        too: steps that suit all the L2 there is may lead to more waiting than steps that suit less of it."""
        best = self._key(homes)
        for part in LESS if homes.spilled else ():
            led = self._led_to(int(self.target.budget("l2") * part), draft.wide)
            if led is not None and self._key(led[0]) < best:
                best, draft = self._key(led[0]), led[1]
        return draft

    def widen(self, homes: Homes, draft: Draft) -> tuple[Homes, Draft]:
        """With the room for stages that leads to the best run: what they take, constants lack."""
        best, most = (homes, draft), self.target.budget("l2") + 1
        if not any(tile for p in homes.picked for tile in p.choice.l2_tiles):
            return best
        for limit in (self.target.budget("l2") // part for part in WIDE):
            if limit >= most:  # no stage took more
                continue
            wide = draft.copy()
            wide.wide = limit
            found = self._try(wide)
            if found is not None:
                most = max(p.choice.stage_bytes for p in found[0].picked)
            if found is not None and self._key(found[0]) < self._key(best[0]):
                best = found
        return best

    def improve(self, homes: Homes, draft: Draft) -> tuple[Homes, Draft]:
        """The draft that leads to the best run found, by single changes, and its homes."""
        best, tried = homes, [draft]
        improved = True
        while improved:
            improved = False
            for other in self._changes(best, draft):
                if other in tried:
                    continue
                if len(tried) > TRIES:
                    return best, draft
                tried.append(other)
                found = self._try(other)
                if found is not None and self._key(found[0]) < self._key(best):
                    best, draft = found
                    improved = True
                    break
        return best, draft

    def _key(self, homes: Homes) -> tuple[float, ...]:
        """What homes are compared by: the objective, then cycles, then bytes between L3 and L2."""
        o, choices = self.options[0].objective, [p.choice for p in homes.picked]
        near = sum(b.get("l2_l1", 0) for c in choices for b in c.bytes)
        weighed = o.cycles * homes.cycles + o.near * near + o.deep * homes.moving
        return weighed + o.tiles * sum(c.tiles for c in choices), homes.cycles, homes.moving

    def _try(self, draft: Draft) -> tuple[Homes, Draft] | None:
        try:
            return self.settle(draft)
        except (OutOfRoomError, StagedRollError):
            return None

    def _changes(self, homes: Homes, draft: Draft) -> Iterator[Draft]:
        """What is likely to help first: where activations lie in L3 one more of them, else smaller pieces."""
        first, second = self._smaller_pieces(draft), self._more_in_l3(homes, draft)
        yield from chain(*((second, first) if homes.spilled else (first, second)))
        for root in sorted({p.root for p in homes.passing.pieces}, key=lambda r: (-homes.constants[r].bytes, r)):
            other = draft.copy()
            other.staged.add(homes.constants[root].buffer)
            yield other

    def _more_in_l3(self, homes: Homes, draft: Draft) -> Iterator[Draft]:
        """One more activation in L3, the largest first, or one in place of the only one there, wide stages for what
        moves then; or stages half as large. Not where all comes in time as it is."""
        if draft == Draft():
            return
        alone = set(homes.spilled) if len(homes.spilled) == 1 else set()
        for left in [set[str](), alone] if alone else [set[str]()]:
            for root in sorted(homes.activations, key=lambda r: (-self.sizes[r], r))[:SPILLS]:
                other = draft.copy()
                other.staged = other.staged - left | {root}
                other.wide = other.wide or self.target.budget("l2") // WIDE[1]
                yield other
        other = draft.copy()
        stages = [p.choice.stage_bytes for p in homes.picked]
        other.stages.update({i: size // 2 for i, size in enumerate(stages) if size})
        yield other

    def _smaller_pieces(self, draft: Draft) -> Iterator[Draft]:
        """Of every call's constants."""
        for parts in PARTS:
            limit = self.target.budget("l2") // parts
            other = draft.copy()
            other.pieces.update({i: min(limit, other.pieces.get(i, limit)) for i in range(len(self.options))})
            yield other


def check_l1(options: Sequence[CallOptions], l1: int) -> None:
    """Every call fits L1 by itself. Raises GapFuseError naming the one that needs most."""
    misses = [p for o in options if (p := o.miss(l1)) is not None]
    if not misses:
        return
    worst = max(misses, key=lambda m: m.l1_bytes)
    more = len(misses) - 1
    others = f"; {counted(more, 'other call')} {'does' if more == 1 else 'do'} not fit either, needing no more"
    raise GapFuseError(
        Diagnostic(
            f"L1 is too small: call {worst.call} (kernel {worst.kernel}) needs {worst.l1_bytes} bytes, "
            f"{l1} are there{others if more else ''}",
            help=f"the smallest L1 that would do is {worst.l1_bytes} bytes (--l1 {worst.l1_bytes})",
            notes=tuple(_tried(name, why, l1) for name, why in worst.tried),
        )
    )


def _tried(name: str, why: Infeasible | str, l1: int) -> str:
    """What an implementation lacks."""
    if isinstance(why, str):
        return f"implementation {name} does not take the call: {why}"
    loops = ", ".join(f"{axis} {tile}" for axis, tile in why.smallest)
    smallest = f"its smallest tiles ({loops}) need" if loops else "it takes the call whole, which needs"
    return f"implementation {name} lacks {counted(why.l1_bytes - l1, 'byte')}: {smallest} {why.l1_bytes:,}"


def _too_small(decide: _Decision, least: int) -> TooSmallError:
    options, near = decide.options, decide.near
    call = options[max(range(len(options)), key=lambda i: smallest_stage(options, i, near))].call
    return TooSmallError(
        Diagnostic(
            f"L2 is too small: call {call.name} (kernel {call.kernel}) needs {least} bytes, "
            f"{decide.target.budget('l2')} are there",
            help=f"the smallest L2 that would do is {least} bytes (--l2 {least})",
            notes=("what does not fit lies in L3 then, and L2 holds one tile of it",),
        ),
        least,
    )


def _smallest_l2(decide: _Decision, enough: int) -> int:
    """By halving: a size that does, one byte less than which does not. `enough` is one that does."""
    lacking = decide.target.budget("l2")
    while enough - lacking > 1:
        middle = (enough + lacking) // 2
        if decide.within(middle).first() is not None:
            enough = middle
        else:
            lacking = middle
    return enough


def smallest_stage(options: Sequence[CallOptions], call: int, near: Stays) -> int:
    """Least L2 bytes with every operand of a call that does not stay read and written tile by tile."""
    staged = frozenset(o.buffer for b in options[call].bound for o in b.operands)
    miss = options[call].pick(near.room[call], near.where(call, staged), -1)
    return miss.stage_bytes if isinstance(miss, NoFit) else 0
