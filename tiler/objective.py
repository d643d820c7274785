"""What a schedule minimises: a weighted sum, ties broken by cycles, then bytes, then transfers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusion_engine.diagnostics import Diagnostic, GapFuseError, did_you_mean
from tiler.schedule import Schedule

NAMES = ("cycles", "bytes", "energy", "l1", "l2")
PARTS = 4  # of a key: the objective, cycles, bytes, transfers

# Relative to one core's cycle: what a byte over each hop takes. Guesses at GAP8's order of magnitude, not measured.
ENERGY = {"cycles": 1.0, "l2_l1": 2.0, "l3_l2": 60.0}


@dataclass(frozen=True, slots=True)
class Objective:
    """`cycles * cycles + near * bytes(L2<->L1) + deep * bytes(L3<->L2) + tiles * tiles`. `memory` names a level whose
    peak comes before all that ("l1", "l2"). `double`: every operand of several tiles has two buffers, whatever that
    costs (as other tilers do; for comparisons)."""

    name: str = "cycles"
    cycles: float = 1.0
    near: float = 0.0
    deep: float = 0.0
    tiles: float = 0.0
    memory: str | None = None
    double: bool = False


CYCLES = Objective()


def value(objective: Objective, schedule: Schedule) -> tuple[float, ...]:
    """What a plan is compared by: its memory where that comes first, the objective, then cycles, bytes, transfers."""
    tiles = sum(c.tiles for c in schedule.calls)
    near, deep = schedule.bytes["l2_l1"], schedule.bytes["l3_l2"]
    weighed = (
        objective.cycles * schedule.total_cycles
        + objective.near * near
        + objective.deep * deep
        + objective.tiles * tiles
    )
    memory = {None: 0, "l1": schedule.peaks["l1"], "l2": schedule.activations}[objective.memory]
    moved = sum(schedule.bytes.values()), sum(schedule.transfer_count.values())
    return memory, weighed, schedule.total_cycles, *moved


def objective_of(text: str) -> Objective:
    """`cycles`, `bytes`, `energy`, `l1`, `l2`, or a sum such as `bytes+200*tiles`. Raises GapFuseError for others."""
    if text in ("l1", "l2"):
        return Objective(text, memory=text)
    weights = {"cycles": 0.0, "near": 0.0, "deep": 0.0, "tiles": 0.0}
    for part in text.replace(" ", "").split("+"):
        m = re.fullmatch(r"(?:(\d+(?:\.\d+)?)\*)?(cycles|bytes|tiles|energy)", part)
        if m is None:
            raise GapFuseError(
                Diagnostic(
                    f"--minimise {text}: `{part}` is nothing to minimise",
                    help=did_you_mean(part, (*NAMES, "tiles"))
                    or f"one of {', '.join(NAMES)}, or a sum such as bytes+200*tiles",
                )
            )
        factor = float(m[1] or 1)
        for key, weight in _terms(m[2]).items():
            weights[key] += factor * weight
    return Objective(text, weights["cycles"], weights["near"], weights["deep"], weights["tiles"])


def _terms(word: str) -> dict[str, float]:
    if word == "bytes":
        return {"near": 1.0, "deep": 1.0}
    if word == "energy":
        return {"cycles": ENERGY["cycles"], "near": ENERGY["l2_l1"], "deep": ENERGY["l3_l2"]}
    return {word: 1.0}
