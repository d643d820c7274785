"""What a schedule is put together from: all that is decided of a network, and where each constant lies by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.graph import FusedGraph
from tiler.ahead import Ahead
from tiler.bound import Packing
from tiler.cost import align16
from tiler.homes import Homes
from tiler.joining import Join
from tiler.liveness import Life, constant_outputs
from tiler.memory import Memory
from tiler.near import NearPlan
from tiler.options import CallOptions
from tiler.pieces import roots_in_l3
from tiler.placement import Block, place
from tiler.stays import Stays, widened
from tiler.target import Target


@dataclass(frozen=True)
class DeepLayout:
    """Offsets in L3: the constants' image (`cold`), then the activations that are spilled (`homes`), up to `end`."""

    cold: Mapping[str, int]
    homes: Mapping[str, int]
    end: int


@dataclass(frozen=True)
class Settled:
    """The options of each call, what `memory` decided, what comes together (`joined`, per call), what starts early."""

    graph: FusedGraph
    target: Target
    options: Sequence[CallOptions]
    lives: Sequence[Life]
    memory: Memory
    joined: Sequence[Sequence[Join]]
    ahead: Ahead

    @property
    def homes(self) -> Homes:
        return self.memory.homes

    @property
    def near(self) -> NearPlan:
        return self.memory.near

    @property
    def stays(self) -> Stays:
        return self.memory.stays

    @cached_property
    def homed(self) -> list[Life]:
        """The activations in L2."""
        return [widened(v, self.stays.spans) for v in self.lives if v.root in self.homes.activations]

    @cached_property
    def constants(self) -> dict[str, Packing]:
        """Every packed constant, and constants that are outputs themselves: what stays, what passes, the rest."""
        homes = self.homes
        in_order = (*homes.resident, *roots_in_l3(homes.passing.pieces))
        result = {r: homes.constants[r] for r in in_order} | dict(homes.constants)
        for b in constant_outputs(self.graph):
            names = tuple(f"d{i}" for i in range(len(b.shape)))
            order = tuple(names[i] for i in b.storage_order)
            result.setdefault(b.name, Packing(b.name, b.name, names, order, b.nbytes))
        return result

    @cached_property
    def pieces(self) -> dict[str, list[int]]:
        """The numbers of the pieces of each constant that passes, by where they begin."""
        result: dict[str, list[int]] = {}
        for i, p in enumerate(self.homes.passing.pieces):
            result.setdefault(p.root, []).append(i)
        return result

    @cached_property
    def deep(self) -> DeepLayout:
        """Raises GapFuseError where L3 is too small."""
        cold, at = {}, 0
        for root, pack in self.constants.items():
            cold[root] = at
            at += align16(pack.bytes)
        spilled = [Block(v.root, v.bytes, v.first, v.last) for v in self.lives if v.root in self.homes.spilled]
        placed = place(spilled, len(self.options)) if spilled else None
        homes = {b.name: at + o for b, o in zip(spilled, placed.offsets, strict=True)} if placed else {}
        end = at + (placed.peak if placed else 0)
        _check_l3(at, end, self.target.budget("l3"))
        return DeepLayout(cold, homes, end)

    def in_l2(self, root: str) -> int | None:
        """A constant's offset in L2, of its first piece where it passes through; None: it comes tile by tile."""
        if root in self.homes.resident:
            return self.homes.resident[root]
        return self.homes.passing.places[self.pieces[root][0]] if root in self.pieces else None

    def far(self, root: str) -> int:
        """The root's offset in L2."""
        at = self.in_l2(root)
        return self.homes.activations[root] if at is None else at

    def places(self, root: str) -> tuple[int, ...]:
        """For each piece of a constant, where the whole would begin; nothing where that is always the same."""
        plan = self.homes.passing
        found = tuple(plan.places[i] - plan.pieces[i].begin for i in self.pieces.get(root, ()))
        return found if len(set(found)) > 1 else ()


def _check_l3(constants: int, end: int, budget: int) -> None:
    if end > budget:
        raise GapFuseError(
            Diagnostic(
                f"L3 is too small: {constants} bytes of constants and {end - constants} of activations, "
                f"{budget} are there",
                help=f"the smallest L3 that would do is {end} bytes (--l3 {end})",
            )
        )
