"""The tables that the emitted C keeps in L2 for what comes from L3 in a run, beside the plan's data.

Their bytes are those of the C structures that `tiler/emit/fetches.py` prints, on a machine with 32-bit integers; no
entry holds a pointer, so it is the same on one with 64-bit addresses.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tiler.timeline import Fetch, Stretch

ENTRY = 12  # of fetch_list: uint32_t l3, l2; int32_t bytes
TICKET = 12  # gf_ticket: int32_t open, and the port's part of 8 bytes
COUNTERS = 8  # int32_t fetch_started, fetch_arrived
STEP = 4  # of fetches_CALL: uint16_t started, arrived
PLACE = 4  # of places_CALL_OPERAND: int32_t


@dataclass(frozen=True, slots=True)
class Tables:
    """How many entries there are: `fetches` in the list, `tickets` for as many as are under way at once, `steps` of
    calls that fetch while they run, `places` of constants that lie elsewhere at each step."""

    fetches: int = 0
    tickets: int = 0
    steps: int = 0
    places: int = 0

    @property
    def bytes(self) -> int:
        """In L2."""
        entries = self.fetches * ENTRY + self.tickets * TICKET + self.steps * STEP + self.places * PLACE
        return entries + COUNTERS if self.fetches else entries


def tables_of(fetches: Sequence[Fetch], stretches: Sequence[Stretch], places: int) -> Tables:
    """The tables of a run; `fetches` in the order of their starts, which is also that of their waits."""
    if not fetches:
        return Tables()
    moments = {s.begin for s in stretches}
    inside = {step for f in fetches for step in (f.start, f.wait)} - moments
    busy = [s for s in stretches if any(s.begin < step < s.end for step in inside)]
    return Tables(len(fetches), _under_way(fetches), sum(s.steps for s in busy), places)


def _under_way(fetches: Sequence[Fetch]) -> int:
    """The most that are started and not yet waited for: at each step first all starts, then the waits."""
    starts, waits = [f.start for f in fetches], [f.wait for f in fetches]
    return max(bisect_right(starts, at) - bisect_left(waits, at) for at in starts)
