"""Runs a kernel's C implementation on any tiling of one call: see `run_team`."""

from gap_fuse.proof.tiles.l1 import StrayAccess
from gap_fuse.proof.tiles.one_call import bind_kernel
from gap_fuse.proof.tiles.running import BoundKernel, Setting, in_place, run_team

__all__ = ["BoundKernel", "Setting", "StrayAccess", "bind_kernel", "in_place", "run_team"]
