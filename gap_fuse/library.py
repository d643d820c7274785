"""The shipped rules and kernels with a user's own on top, and what of it overrides what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_engine import RuleSet, load_kernels, load_rules
from fusion_engine.kernels import KernelSet
from gap_fuse.rooms import room


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """Rules and the kernels that they name."""

    rules: RuleSet
    kernels: KernelSet

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what overrides what."""
        return (*self.kernels.notes, *self.rules.notes)


def load_library(rules: Sequence[Path] = (), kernels: Sequence[Path] = ()) -> Library:
    """The shipped rooms, then the given folders, later ones overriding. Raises GapFuseError with every mistake."""
    known = load_kernels([room("kernels"), *kernels])
    return Library(load_rules([room("rules"), *rules], known), known)
