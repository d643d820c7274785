"""Targets: memories, the hops between them and the team of cores, read from targets/NAME/target.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, counted
from fusion_engine.marked_yaml import Marked, Problems, as_int, as_text, as_texts, check_map, pairs, read_yaml
from tiler.byte_sizes import byte_size

LEVELS = ("l1", "l2", "l3")
HOPS = ("l2_l1", "l3_l2")
TARGET_KEYS = ("target", "summary", "clock", "levels", "hops", "team", "isa", "compiler")
HOP_KEYS = ("bytes_per_cycle", "start", "latency", "per_run", "max_bytes", "max_stride", "in_flight")
PORT = "gf_port.h"
HERTZ = {"kHz": 1e3, "MHz": 1e6, "GHz": 1e9}


@dataclass(frozen=True, slots=True)
class Level:
    """One memory: `bytes` in all, `reserved` what is not for plan data, by item. `budget` bytes are the plan's."""

    name: str
    bytes: int
    reserved: Mapping[str, int]
    budget: int

    @property
    def room(self) -> int:
        """Bytes that the memory has for plan data."""
        return self.bytes - sum(self.reserved.values())


@dataclass(frozen=True, slots=True)
class Hop:
    """One way between two memories. Costs in cluster cycles: `start` per command on the issuing core, `latency` per
    command from start to the first byte, `per_run` per line of a strided command, and bytes over `bytes_per_cycle`.

    A command moves at most `max_bytes`; the distance between its lines is at most `max_stride` bytes.
    """

    name: str
    bytes_per_cycle: float
    start: int
    latency: int
    per_run: int
    max_bytes: int
    max_stride: int
    in_flight: int


@dataclass(frozen=True)
class Target:
    """A machine. `levels` and `hops` by name ("l1", "l2", "l3"; "l2_l1", "l3_l2"). `fork`: cycles that running the
    team once takes beside the kernel's own. `clock`: cycles per second, where known. `compiler` builds what the emitter
    writes; `has_port`: the folder holds the sources of a port beside `gf_port.h`."""

    name: str
    summary: str
    folder: Path
    levels: Mapping[str, Level]
    hops: Mapping[str, Hop]
    cores: int
    fork: int
    isa: tuple[str, ...]
    compiler: str
    has_port: bool
    clock: float | None = None

    def budget(self, level: str) -> int:
        """Bytes for plan data in a level."""
        return self.levels[level].budget

    def with_budgets(self, l1: int | None = None, l2: int | None = None, l3: int | None = None) -> Target:
        """The same target with other bytes for plan data (None: as it was). More than the memory has is allowed, to
        explore: `beyond` says where. Raises GapFuseError for less than one byte."""
        asked = {"l1": l1, "l2": l2, "l3": l3}
        levels = {name: _with_budget(level, asked.get(name)) for name, level in self.levels.items()}
        return replace(self, levels=levels)

    def beyond(self) -> tuple[str, ...]:
        """A sentence for each level whose budget is more than its memory has for plan data."""
        return tuple(
            f"{level.name} is planned with {level.budget} bytes, {self.name} has {level.room}"
            for level in self.levels.values()
            if level.budget > level.room
        )


def _with_budget(level: Level, budget: int | None) -> Level:
    if budget is None:
        return level
    if budget < 1:
        raise GapFuseError(f"{level.name} must have at least one byte for plan data, not {budget}")
    return replace(level, budget=budget)


def load_target(folder: Path) -> Target:
    """Read FOLDER/target.yaml. Raises GapFuseError with every problem found, each at its place."""
    path = Path(folder) / "target.yaml"
    documents = read_yaml(path)
    if len(documents) != 1:
        raise GapFuseError(Diagnostic("a target file holds exactly one document", Span(str(path))))
    problems: Problems = []
    target = _read(documents[0], Path(folder), problems)
    if problems or target is None:
        raise GapFuseError(problems)
    return target


def _read(m: Marked, folder: Path, problems: Problems) -> Target | None:
    if not check_map(m, "a target", TARGET_KEYS, problems, required=("target", "levels", "hops", "team")):
        return None
    team = _numbers(m.get("team"), "the team", ("cores", "fork"), problems)
    return Target(
        name=as_text(m.get("target"), "the target's name", problems) or "",
        summary=as_text(m.get("summary"), "the summary", problems) or "",
        folder=folder,
        levels=_levels(m.get("levels"), problems),
        hops=_hops(m.get("hops"), problems),
        cores=team.get("cores", 1),
        fork=team.get("fork", 0),
        isa=as_texts(m.get("isa"), "isa", problems),
        compiler=as_text(m.get("compiler"), "the compiler", problems) or "gcc",
        has_port=(folder / PORT).is_file(),
        clock=_clock(m.get("clock"), problems),
    )


def _clock(m: Marked | None, problems: Problems) -> float | None:
    """`175 MHz` in cycles per second."""
    text = as_text(m, "the clock", problems)
    if m is None or text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(kHz|MHz|GHz)", text, re.ASCII)
    if found is None or not float(found[1]):
        problems.append(m.error(f"the clock must be a frequency such as 175 MHz, not `{text}`"))
        return None
    return float(found[1]) * HERTZ[found[2]]


def _numbers(m: Marked | None, what: str, keys: tuple[str, ...], problems: Problems) -> dict[str, int]:
    """A map of non-negative integers, `cores` at least one; every key must be there."""
    if m is None or not check_map(m, what, keys, problems, required=keys):
        return {}
    result = {k: as_int(m.get(k), k, problems) or 0 for k in keys}
    for key, value in result.items():
        entry = m.get(key)
        if entry is not None and value < int(key == "cores"):
            problems.append(entry.error(f"{key} cannot be {value}"))
    return result


def _levels(m: Marked | None, problems: Problems) -> dict[str, Level]:
    if m is None or not check_map(m, "levels", LEVELS, problems, required=LEVELS):
        return {}
    return {name: level for name in LEVELS if (level := _level(name, m.get(name), problems)) is not None}


def _level(name: str, m: Marked | None, problems: Problems) -> Level | None:
    if m is None or not check_map(m, f"level {name}", ("bytes", "reserved"), problems, required=("bytes",)):
        return None
    size = _bytes(m.get("bytes"), "bytes", problems)
    items = pairs(m.get("reserved"), "reserved", problems)
    reserved = {k.text: _bytes(v, f"reserved {k.text}", problems, least=0) for k, v in items}
    budget = size - sum(reserved.values())
    if any(v < 0 for v in reserved.values()) or budget < 1:
        problems.append(m.error(f"{name} has {counted(budget, 'byte')} left after what is reserved"))
        return None
    return Level(name, size, reserved, budget)


def _bytes(m: Marked | None, what: str, problems: Problems, least: int = 1) -> int:
    """`65536` or `64 kB`; 0 where it is neither."""
    text = as_text(m, what, problems)
    if m is None or text is None or (least == 0 and text == "0"):
        return 0
    try:
        return byte_size(text)
    except ValueError as e:
        problems.append(m.error(f"{what}: {e}"))
        return 0


def _hops(m: Marked | None, problems: Problems) -> dict[str, Hop]:
    if m is None or not check_map(m, "hops", HOPS, problems, required=HOPS):
        return {}
    return {name: hop for name in HOPS if (hop := _hop(name, m.get(name), problems)) is not None}


def _hop(name: str, m: Marked | None, problems: Problems) -> Hop | None:
    if m is None or not check_map(m, f"hop {name}", HOP_KEYS, problems, required=HOP_KEYS):
        return None
    rate = _positive_number(m.get("bytes_per_cycle"), problems)
    value = {k: as_int(m.get(k), k, problems) or 0 for k in HOP_KEYS if k != "bytes_per_cycle"}
    for key, least in (
        ("max_bytes", 16),
        ("max_stride", 1),
        ("in_flight", 1),
        ("start", 0),
        ("latency", 0),
        ("per_run", 0),
    ):
        entry = m.get(key)
        if entry is not None and value[key] < least:
            problems.append(entry.error(f"{key} must be at least {least}"))
    if rate is None:
        return None
    return Hop(name, rate, **value)


def _positive_number(m: Marked | None, problems: Problems) -> float | None:
    text = as_text(m, "bytes_per_cycle", problems)
    if m is None or text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e6:
        problems.append(m.error(f"bytes_per_cycle must be a number above zero, not `{text}`"))
        return None
    return rate
