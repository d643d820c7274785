"""What one call of match() gathers and gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from fusion_engine.covering.types import Candidate, Decline
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.matching.decisive import Constants
from fusion_engine.matching.emission import Emitter
from fusion_engine.matching.facts import Facts
from fusion_engine.matching.index import Compiled
from fusion_engine.matching.repeats import Template
from fusion_engine.view.types import ViewNode


class StaleError(GapFuseError):
    """A candidate that repeats another one cannot be made, since numbers in its own constants keep it from that."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchResult:
    """`candidates` in order of root node, rule and variant; `declines` where asked for; `notes`: what was cut short."""

    candidates: tuple[Candidate, ...]
    declines: tuple[Decline, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class Look:
    """What a search looked at: the first of its nodes, and whether numbers in constants decided."""

    low: int
    cut: int
    numbers: bool = False
    constants: dict[int, Constants | None] = field(default_factory=dict)  # by candidate


@dataclass(eq=False)
class Run:
    """What one call of match() gathers."""

    facts: Facts
    emitter: Emitter
    explain: bool
    budget: int
    look: Look | None = None
    only: int | None = None  # the one emit entry that is wanted
    templates: dict[Candidate, Template] = field(default_factory=dict)  # of what was offered again elsewhere
    candidates: list[tuple[int, int, Candidate]] = field(default_factory=list)  # with root and variant's position
    declines: list[Decline] = field(default_factory=list)
    exhausted: dict[tuple[str, str], int] = field(default_factory=dict)
    limited: dict[tuple[str, str], int] = field(default_factory=dict)

    def keep(self, node: ViewNode, compiled: Compiled, found: Iterable[Candidate]) -> None:
        self.candidates.extend((node.index, compiled.position, c) for c in found)

    @property
    def ordered(self) -> tuple[Candidate, ...]:
        """By root, then by rule and variant; regions are found last."""
        self.candidates.sort(key=itemgetter(0, 1))
        return tuple([c for _, _, c in self.candidates])
