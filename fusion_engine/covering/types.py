"""Candidates and plans: what the matcher offers and what the cover chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_engine.diagnostics import Span
from fusion_engine.graph import Alias, CallAttr
from fusion_engine.opened import opened


@dataclass(frozen=True, slots=True)
class ValueRef:
    """An operand that is a tensor of the view, by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An operand computed at compile time (`let`, `stored`, `multiplier`...), in logical ONNX order."""

    data: np.ndarray


Operand = ValueRef | Constant


@dataclass(frozen=True, slots=True)
class Temporary:
    """A named value between the calls of an `emit` sequence."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EmittedCall:
    """One kernel call of a candidate, operands in terms of view values. `alias`: of kernels that only re-see bytes."""

    kernel: str
    operands: tuple[tuple[str, Operand], ...]
    results: tuple[tuple[str, str], ...]
    attrs: tuple[tuple[str, CallAttr], ...]
    alias: Alias | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One way to make `produces` from `consumes`: a rule's variant bound at a place, with one of its `emit` entries.

    `nodes` are the view nodes inside. `cost` is cycles on the target plus bytes of the results.
    A candidate that repeats another one elsewhere (`like`) has its `calls` and `temporaries` made when first asked for.
    """

    rule: str
    variant: str
    emit: int
    calls: tuple[EmittedCall, ...]
    nodes: frozenset[int]
    consumes: tuple[str, ...]
    produces: tuple[str, ...]
    evidence: str
    cost: float
    temporaries: tuple[Temporary, ...] = ()
    like: Candidate | None = None
    again: Callable[[Candidate], Candidate] | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels of its calls, in order."""
        made = self if self.like is None else self.like
        return tuple(call.kernel for call in made.calls)

    def elsewhere(
        self,
        nodes: frozenset[int],
        consumes: tuple[str, ...],
        produces: tuple[str, ...],
        again: Callable[[Candidate], Candidate],
    ) -> Candidate:
        """This candidate at another place; `again` makes it there in full."""
        other = object.__new__(_Open)
        other.rule, other.variant, other.emit = self.rule, self.variant, self.emit
        other.nodes, other.consumes, other.produces = nodes, consumes, produces
        other.evidence, other.cost = self.evidence, self.cost
        other.like, other.again = self, again
        other.__class__ = Candidate
        made: Candidate = other
        return made

    def __getattr__(self, name: str) -> Any:
        """Asked only for a field that `elsewhere` left open."""
        if name not in ("calls", "temporaries") or self.again is None:
            raise AttributeError(name)
        made = self.again(self)
        object.__setattr__(self, "calls", made.calls)
        object.__setattr__(self, "temporaries", made.temporaries)
        return getattr(made, name)


_Open = opened(Candidate)


@dataclass(frozen=True, slots=True)
class Cause:
    """What stopped an attempt: one sentence, and apart what the graph `had`, what the rule would `want`, what could
    change, and the place of the rule's text."""

    reason: str
    had: str = ""
    want: str = ""
    help: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Decline:
    """Why a rule's variant did not fire at a node: the best attempt's cause, its nodes, how far it came (0..1).

    `matched` of the `needed` operators fitted.
    """

    rule: str
    variant: str
    root: int
    cause: Cause
    nodes: tuple[int, ...]
    depth: float
    matched: int = 0
    needed: int = 0

    @property
    def reason(self) -> str:
        """The cause in one sentence."""
        return self.cause.reason


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The chosen candidates in topological order; `gap`: how far the cost may be from the least (0.0 = proven)."""

    chosen: tuple[Candidate, ...]
    cost: float
    gap: float
