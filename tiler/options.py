"""The implementations that take a call, and the best of their tilings under a given memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fusion_engine.expr import evaluate
from fusion_engine.graph import Call
from tiler.bound import BoundCall
from tiler.bundles import bundled
from tiler.choice import Choice, Infeasible
from tiler.chosen import TilingId, chosen
from tiler.first_copies import Points, Tiling, plain_points
from tiler.frontier import Frontier, empty, merged
from tiler.levelled import levelled
from tiler.objective import CYCLES, PARTS, Objective
from tiler.search import choice_of, search_all
from tiler.search_points import Early, no_points, search_points
from tiler.space import Space
from tiler.target import Target
from tiler.walk import NAMES
from tiler.where import NEAR, Levels, Where


@dataclass(frozen=True, slots=True)
class Picked:
    """The implementation and tiling chosen for a call; `notes` say what binds and what lost."""

    bound: BoundCall
    choice: Choice
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoFit:
    """No tiling of any implementation fits: the least bytes that would do, and the implementation and loops that
    need them. `tried`: of each implementation its least L1 and the loops of that, or the sentence that rules it out."""

    call: str
    kernel: str
    implementation: str
    l1_bytes: int
    stage_bytes: int
    loops: tuple[tuple[str, int], ...]
    tried: tuple[tuple[str, Infeasible | str], ...] = ()


class CallOptions:
    """One call's bound implementations, quickest first, and why the others declined."""

    def __init__(
        self,
        call: Call,
        bound: Sequence[BoundCall],
        declined: Mapping[str, str],
        target: Target,
        objective: Objective = CYCLES,
    ) -> None:
        self.call, self.declined, self.target, self.objective = call, declined, target, objective
        self.bound = sorted(bound, key=lambda b: whole_cycles(b, target))
        self._spaces: dict[str, Space] = {}
        self._memo: dict[tuple[Levels, int | None], Frontier] = {}
        self._best: dict[tuple[Levels, int | None, int], Frontier] = {}
        self._points: dict[object, Points] = {}
        self._picks: dict[object, Picked | NoFit] = {}
        self._staged: dict[tuple[Levels, int], list[tuple[int, Picked]]] = {}  # searched picks by the room for stages

    def share_tables(self, twin: CallOptions) -> None:
        """Use the tables of a call that has the same tilings."""
        self._spaces = twin._spaces

    def share(self, twin: CallOptions) -> None:
        """Use the results of a call that has the same tilings, within the same L1."""
        self._memo, self._picks, self._staged = twin._memo, twin._picks, twin._staged
        self._points, self._best = twin._points, twin._best

    def space(self, bound: BoundCall) -> Space:
        """The tables of one implementation, made when first asked for."""
        if bound.implementation not in self._spaces:
            self._spaces[bound.implementation] = Space(bound, self.target)
        return self._spaces[bound.implementation]

    def least_cycles(self) -> int:
        """Cycles of computing that no tiling of any implementation gets below: tiles may share the cores more evenly
        than the whole call does."""
        return min(self._least_cycles(b) for b in self.bound)

    def _least_cycles(self, bound: BoundCall) -> int:
        return int(np.ceil(self.space(bound).compute.min()))

    def pick(self, l1: int, where: Where = NEAR, stage: int | None = None) -> Picked | NoFit:
        """The best choice within `l1`, buffers of `where.staged` read tile by tile from L3 through at most `stage` L2
        bytes."""
        key = tuple(where.levels(b) for b in self.bound), stage, l1
        if key not in self._picks:
            self._picks[key] = self._looser(*key, where) or self._pick(l1, where, stage)
        found = self._picks[key]
        if isinstance(found, NoFit):
            return replace(found, call=self.call.name)
        bound = next(b for b in self.bound if b.implementation == found.bound.implementation)
        return replace(found, bound=bundled(bound, found.choice))

    def _looser(self, levels: Levels, stage: int | None, l1: int, where: Where) -> Picked | None:
        """The pick with more L2 for stages, where it takes no more: the best of all is the best of fewer."""
        if stage is None or any("stream" in one for one in levels):
            return None
        for room, found in self._staged.get((levels, l1), ()):
            if room >= stage >= found.choice.stage_bytes:
                bound = next(b for b in self.bound if b.implementation == found.bound.implementation)
                return replace(found, notes=self._notes(bound, found.choice, l1, where, stage))
        return None

    def _pick(self, l1: int, where: Where, stage: int | None) -> Picked | NoFit:
        easier = self._within(l1, where, stage)
        if easier is not None:
            return easier
        found = self._within_l1(where, stage, l1)
        at = found.at(l1)
        if at is None:
            return self._no_fit(l1, where)
        bound = self.bound[int(found.ids[at, 0])]
        levels = tuple(where.levels(b) for b in self.bound)
        choice = choice_of(self.space(bound), found, at, where.levels(bound))
        picked = Picked(bound, choice, self._notes(bound, choice, l1, where, stage))
        if stage is not None:
            self._staged.setdefault((levels, l1), []).append((stage, picked))
        return picked

    def _within(self, l1: int, where: Where, stage: int | None) -> Picked | None:
        """The best choice under a larger stage, or none, where that keeps within this one: then it is the best here."""
        if stage is None or where.streams:
            return None
        levels = tuple(where.levels(b) for b in self.bound)
        known = sorted(s for v, s, room in self._best if (v, room) == (levels, l1) and s is not None and s > stage)
        for larger in (None, *reversed(known)):
            p = self.pick(l1, where, larger)
            if isinstance(p, NoFit) or p.choice.stage_bytes <= stage:
                return p if isinstance(p, Picked) else None
        return None

    def frontier(self, where: Where, stage: int | None) -> Frontier:
        """The choices that nothing beats within any L1 up to the target's; ids begin with the number in `bound`."""
        levels = tuple(where.levels(b) for b in self.bound)
        key = levels, stage
        if key not in self._memo:
            self._memo[key] = self._search(levels, stage, self.target.budget("l1"), alone=False)
        return self._memo[key]

    def _within_l1(self, where: Where, stage: int | None, l1: int) -> Frontier:
        """The best choice within `l1`, alone or of the frontier, if that is known."""
        levels = tuple(where.levels(b) for b in self.bound)
        if (levels, stage) in self._memo:
            return self._memo[levels, stage]
        if (levels, stage, l1) not in self._best:
            self._best[levels, stage, l1] = self._search(levels, stage, l1, alone=True)
        return self._best[levels, stage, l1]

    def points(self, where: Where, able: frozenset[str], cap: float) -> Points:
        """The tilings that matter where first copies of the operands of roots `able` may start early, `cap`
        cycles being the most that any call's take; ids begin with the number in `bound`. Where cycles only break ties
        none starts early."""
        if not self.objective.cycles:
            return plain_points(self.frontier(where, None), 0.0)
        levels = tuple(where.levels(b) for b in self.bound)
        early = tuple(
            Early(
                tuple(o.role != "out" and v == "l2" and o.root in able for o, v in zip(b.operands, at, strict=True)),
                cap,
            )
            for b, at in zip(self.bound, levels, strict=True)
        )
        key = levels, early
        if key not in self._points:
            self._points[key] = self._search_points(levels, early)
        return self._points[key]

    def _search_points(self, levels: Sequence[tuple[str, ...]], early: Sequence[Early]) -> Points:
        found = no_points()
        for i, b in enumerate(self.bound):
            found = search_points(
                self.space(b), self.target.budget("l1"), levels[i], self.objective, early[i], found, i
            )
        return found

    def picked(self, tiling: Tiling, l1: int, where: Where) -> Picked:
        """One of `points`."""
        bound = self.bound[tiling.ids[0]]
        choice = chosen(self.space(bound), TilingId(*tiling.ids[1:]), tiling.total, where.levels(bound))
        return Picked(bundled(bound, choice), choice, self._notes(bound, choice, l1, where, None))

    def _search(self, levels: Levels, stage: int | None, l1: int, alone: bool) -> Frontier:
        found = empty(PARTS, NAMES + 1)
        for i, b in enumerate(self.bound):
            one = search_all(self.space(b), l1, levels[i], stage, self.objective, found, alone)
            numbered = np.concatenate([np.full((len(one.ids), 1), i, np.int64), one.ids], axis=1)
            found = merged([found, replace(one, ids=numbered)])
        return found.least() if alone else found

    def miss(self, l1: int) -> NoFit | None:
        """What it needs that does not fit L1 by itself."""
        fits = any(levelled(self.space(b), NEAR.levels(b)).fitting(l1, None).any() for b in self.bound)
        return None if fits else self._no_fit(l1, NEAR)

    def _no_fit(self, l1: int, where: Where) -> NoFit:
        """Of those that fit L1 the least stage, else the least L1."""
        found = [(b, levelled(self.space(b), where.levels(b)).infeasible(l1)) for b in self.bound]
        misses = [(b, miss) for b, miss in found if miss is not None]
        fitting = [m for m in misses if m[1].l1_bytes <= l1]
        key = (lambda m: m[1].stage_bytes) if fitting else (lambda m: m[1].l1_bytes)
        b, miss = min(fitting or misses, key=key)
        tried: list[tuple[str, Infeasible | str]] = [(b.implementation, miss) for b, miss in misses]
        tried += self.declined.items()
        least = miss.l1_bytes, miss.stage_bytes, miss.smallest
        return NoFit(self.call.name, self.call.kernel, b.implementation, *least, tuple(tried))

    def _notes(self, bound: BoundCall, choice: Choice, l1: int, where: Where, stage: int | None) -> tuple[str, ...]:
        share = 100 * choice.compute_cycles // max(choice.total_cycles, 1)
        notes = [f"computing is {share} % of its cycles"]
        for b in self.bound:
            if b is bound:
                continue
            tables = levelled(self.space(b), where.levels(b))
            if not tables.fitting(l1, stage).any():
                miss = tables.infeasible(l1)
                notes.append(f"not {b.implementation}: {_lack(miss, l1, stage)}")
            elif (least := self._least_cycles(b)) >= choice.total_cycles:
                notes.append(f"not {b.implementation}: {least:,} cycles of computing alone")
            else:
                notes.append(f"not {b.implementation}: its best tiling is no better")
        notes.extend(f"not {name}: {reason}" for name, reason in self.declined.items())
        if any(s.grid.thinned for s in self._spaces.values()):
            notes.append("so many tilings that only every second or fewer sizes of the longest axes were tried")
        return tuple(notes)


def _lack(miss: Infeasible | None, l1: int, stage: int | None) -> str:
    if miss is None:
        return "it cannot walk its tiles inside the tensors that stay in L1"
    if miss.l1_bytes > l1:
        return f"needs {miss.l1_bytes} bytes of L1"
    return f"needs {miss.stage_bytes} bytes of L2 for its tiles, {stage} are free"


def whole_cycles(bound: BoundCall, target: Target) -> int:
    """Cycles of computing the call as one tile."""
    extents: dict[str, int] = dict(bound.extents)
    for o in bound.operands:
        for dim, extent in zip(o.dims, o.extent, strict=True):
            if "%" not in dim:
                factor = int(dim.split("/")[1]) if "/" in dim else 1
                extents.setdefault(f"{o.name}_{dim.split('/')[0]}", extent * factor)
    return int(-(-evaluate(bound.cycles, {**extents, "cores": target.cores}) // 1)) + target.fork
