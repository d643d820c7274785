"""Kernels' C on any tiling (gap_fuse/proof/tiles), with hypothesis drawing the tiles."""

from __future__ import annotations

from hypothesis import strategies as st

from gap_fuse.proof.tiles import Declined, bind_kernel, run_tiled
from tiler.bound import BoundCall

__all__ = ["Declined", "bind_kernel", "run_tiled", "tilings"]


def tilings(bound: BoundCall) -> st.SearchStrategy[dict[str, int]]:
    """Legal tiles of a bound call: a size for every axis, a multiple of its step where it is split; ends are ragged."""

    def sizes(extent: int, step: int, limit: int | None) -> st.SearchStrategy[int]:
        most = min(extent, limit or extent)
        steps = list(range(step, most, step)) + ([extent] if most == extent else [most])
        return st.sampled_from(steps[::-1] or [extent])

    return st.fixed_dictionaries(
        {a.name: st.just(a.extent) if a.whole else sizes(a.extent, a.step, a.limit) for a in bound.axes}
    )
