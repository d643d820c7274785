"""Whole networks at many sizes of L1 and L2, proved on the hostile port (tests/tiler/sweep.py): a sample in the usual
profile, the MLPerf Tiny networks at every size with GAP_FUSE_PROFILE=nightly. A size that is too small must say which
would do, and that one is run instead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tiler.sweep import PATHS, TINY, Unit, prove, units

NIGHTLY = os.environ.get("GAP_FUSE_PROFILE") == "nightly"
SAMPLE = [Unit("digits", 4, 512), Unit("digits", 8, 64), Unit("digits", 2, 6), Unit("digits_f32", 8, 24)]


@pytest.mark.parametrize("unit", SAMPLE + (units(TINY) if NIGHTLY else []), ids=lambda u: u.name)
def test_the_c_of_every_size_is_the_network(unit: Unit, tmp_path: Path) -> None:
    if not PATHS[unit.network].is_file():
        pytest.skip(f"{PATHS[unit.network]} is absent")
    prove(unit, tmp_path)
