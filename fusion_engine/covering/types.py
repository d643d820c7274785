"""Candidates and plans: what the matcher offers and what the cover chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_engine.diagnostics import Span
from fusion_engine.graph import Alias, CallAttr


@dataclass(frozen=True, slots=True)
class ValueRef:
    """An operand that is a tensor of the view, by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An operand computed at compile time (`let`, `stored`, `multiplier`...), in logical ONNX order.

    `made_by` is the rule's expression that gave it, for matches that are alike.
    """

    data: np.ndarray
    made_by: object = None


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
