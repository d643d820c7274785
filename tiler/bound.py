"""A kernel call bound to one implementation: every size a number, every index map in terms of the call's axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fusion_engine.expr import Expr
from fusion_engine.graph import CallAttr
from tiler.schedule import BoundOperand


@dataclass(frozen=True, slots=True)
class BoundAxis:
    """A loop that may be split. `whole`: it may not. Every tile but the last is a multiple of `step`; none exceeds
    `limit`."""

    name: str
    extent: int
    whole: bool = False
    step: int = 1
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class BoundScratch:
    """`bytes` reads the tile's axes, `cores` and `OPERAND_DIM`."""

    name: str
    bytes: Expr
    per: Literal["core", "call"]


@dataclass(frozen=True, slots=True)
class BoundAccumulator:
    """Partial sums kept in L1 while the axes `over` are walked: the box of `index` over a tile."""

    name: str
    itemsize: int
    index: tuple[Expr, ...]
    over: tuple[str, ...]
    ordered: bool = False  # a recurrence's state: `over` is walked in this sequence


@dataclass(frozen=True, slots=True)
class Packing:
    """How a constant must lie: dims of its logical shape by name, and the order wanted (`k/16 ... k%16` are blocks).
    Several that come together are one, its `parts` in the order in which they lie in a share, `buffer` the largest."""

    root: str
    buffer: str
    dims: tuple[str, ...]
    order: tuple[str, ...]
    bytes: int
    parts: tuple[Packing, ...] = ()


@dataclass(frozen=True)
class BoundCall:
    """One call under one implementation, ready to be tiled.

    `axes` outermost first in the kernel's order, a group of any rank as NAME0, NAME1, ... (`groups` maps NAME to
    them); `operands` inputs then outputs, absent ones left out; `cycles` reads axes (the tile's extents), `cores`
    and `OPERAND_DIM`.
    """

    call: str
    kernel: str
    implementation: str
    axes: tuple[BoundAxis, ...]
    groups: Mapping[str, tuple[str, ...]]
    operands: tuple[BoundOperand, ...]
    packings: tuple[Packing, ...]
    attrs: Mapping[str, CallAttr]
    cycles: Expr
    scratch: tuple[BoundScratch, ...]
    accumulate: BoundAccumulator | None
    reuse: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by result, inputs that it may be written over
    own: tuple[int, ...] = ()  # operands, by position: constants that are its own, or of which it may have a copy

    @property
    def extents(self) -> dict[str, int]:
        """Full extent of every axis."""
        return {a.name: a.extent for a in self.axes}
