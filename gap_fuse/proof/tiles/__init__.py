"""Runs a kernel's C implementation on any tiling of one call: see `run_tiled` and `run_team`."""

from gap_fuse.proof.tiles.l1 import StrayAccess
from gap_fuse.proof.tiles.one_call import bind_kernel
from gap_fuse.proof.tiles.running import Declined, in_place, run_team, run_tiled

__all__ = ["Declined", "StrayAccess", "bind_kernel", "in_place", "run_team", "run_tiled"]
