"""Profiles and fixtures that every test room shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

settings.register_profile(
    "ci", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("nightly", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("GAP_FUSE_PROFILE", "ci"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real networks; tests that use it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("../shared is absent: real networks not tested")
    return SHARED


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
