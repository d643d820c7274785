"""Runs a kernel's C implementation on any tiling: see `run_tiled`."""

from tests.harness.bind import bind_kernel
from tests.harness.tiled import Declined, run_kernel, run_tiled, tilings

__all__ = ["Declined", "bind_kernel", "run_kernel", "run_tiled", "tilings"]
