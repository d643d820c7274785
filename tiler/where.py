"""Where the operands of a call are while its tilings compete."""

from __future__ import annotations

from dataclasses import dataclass

from tiler.bound import BoundCall
from tiler.schedule import BoundOperand


@dataclass(frozen=True, slots=True)
class Where:
    """Which buffers or roots are not in L2: `staged` ones in L3, read tile by tile, roots of `stays` in L1, those of
    `ends` in L1 up to this call or from it on, where a result may overlap an input. Those of `streams` pass through L2
    in pieces."""

    staged: frozenset[str] = frozenset()
    stays: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()
    streams: frozenset[str] = frozenset()

    def levels(self, bound: BoundCall) -> tuple[str, ...]:
        """Per operand "l1", "ends", "l2", "l3" or "stream"."""
        return tuple(self._level(o) for o in bound.operands)

    def _level(self, o: BoundOperand) -> str:
        if o.root in self.ends:
            return "ends"
        if o.root in self.stays:
            return "l1"
        if o.buffer in self.staged or o.root in self.staged:
            return "l3"
        return "stream" if o.buffer in self.streams else "l2"


NEAR = Where()
Levels = tuple[tuple[str, ...], ...]  # of the operands of each implementation
