"""The one mutable thing of a search: what is bound so far. Everything set is unset when its branch is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fusion_engine.covering.types import Cause
from fusion_engine.graph import Quantisation
from fusion_engine.language.types import Expression
from fusion_engine.matching.facts import Facts, Known, Tensor
from fusion_engine.view.types import Scope, ViewNode


@dataclass(frozen=True, slots=True)
class Deferred:
    """What `with name = expression` binds: evaluated once everything is bound."""

    expression: Expression


Bound = Tensor | Known | Deferred | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class InnerPair:
    """A QuantizeLinear - DequantizeLinear between two nodes of the match.

    `moved`: only movements lie between it and the root.
    """

    label: str
    quantisation: Quantisation
    nodes: tuple[int, ...]
    moved: bool


class ExhaustedError(Exception):
    """The search at one root took more steps than it may."""


@dataclass(slots=True)
class Miss:
    """The deepest failed attempt: how many operators were matched, why it ended, at which nodes."""

    matched: float = -1.0
    cause: Cause = field(default_factory=lambda: Cause(""))
    nodes: tuple[int, ...] = ()


@dataclass(slots=True)
class State:
    """`values[slot]` is what the name of the slot is bound to, `nodes[slot]` the node that an operator pattern took."""

    facts: Facts
    values: list[Bound]
    nodes: list[ViewNode | None]
    swapped: list[bool]
    found: Callable[[State], None]
    budget: int
    explain: bool
    scope: tuple[Scope, ...] = ()
    steps: int = 0
    matched: int = 0
    inside: list[int] = field(default_factory=list)
    pairs: list[InnerPair] = field(default_factory=list)
    extents: list[tuple[str, int]] = field(default_factory=list)  # axis names of rearranges
    miss: Miss = field(default_factory=Miss)
    low: int = 0  # the first of the nodes looked at
    numbers: bool = False  # whether constants were compared whose numbers the surroundings do not tell

    def step(self) -> None:
        self.steps += 1
        if self.steps > self.budget:
            raise ExhaustedError

    def fail(self, cause: Cause, *nodes: int, near: bool = False) -> None:
        """Keep this attempt if it came further than the ones before. Called only where `explain` is set.

        `near`: the operator was the right one, something about it is not.
        """
        matched = self.matched + near / 2
        if matched > self.miss.matched:
            self.miss = Miss(matched, cause, nodes)

    def node(self, slot: int) -> ViewNode:
        found = self.nodes[slot]
        assert found is not None
        return found
