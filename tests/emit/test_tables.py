"""The tables that the emitted C keeps in L2 take the bytes that the plan has set aside for them."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from fusion_engine.graph import FusedGraph
from tests.emit.building import build
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS, Builder
from tiler import Schedule, emit, schedule

TABLES = re.compile(r"^(fetch_list|fetch_tickets|fetch_started|fetch_arrived|fetches_\w+|places_\w+)$")


def _chain() -> FusedGraph:
    """Wide pointwise convolutions, whose weights come in pieces."""
    b = Builder()
    first = x = b.tensor(40, 4, 4)
    for _ in range(6):
        x = b.conv(x, 40, 1)
    return b.graph([first], [x])


@cache
def _planned(l2: int) -> Schedule:
    return schedule(_chain(), KERNELS, TARGET, l1=1500, l2=l2)


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm (binutils) is not installed")
@pytest.mark.parametrize("l2", [3300, 4000, 6000])
def test_the_compiler_makes_tables_of_the_planned_size(tmp_path: Path, l2: int) -> None:
    s = _planned(l2)
    assert s.tables.fetches
    assert s.tables.tickets <= s.tables.fetches
    program = build(emit(_chain(), KERNELS, s, TARGET), tmp_path)
    done = subprocess.run(["nm", "-S", str(program.parent / "network.o")], capture_output=True, text=True, check=True)
    symbols = [line.split() for line in done.stdout.splitlines()]
    sizes = {x[3]: int(x[1], 16) for x in symbols if len(x) == 4 and TABLES.match(x[3])}
    assert sum(sizes.values()) == s.tables.bytes, sizes


def test_pieces_at_moving_places_and_steps_are_in_the_tables() -> None:
    """The networks above are such that every kind of table is there."""
    found = [_planned(l2).tables for l2 in (3300, 4000, 6000)]
    assert any(t.steps for t in found)
    assert any(t.places for t in found)
