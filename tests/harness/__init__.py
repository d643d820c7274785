"""Kernels' C on any tiling (gap_fuse/proof/tiles), with hypothesis drawing the tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from fusion_engine.graph import CallAttr
from fusion_engine.kernels.descriptor import Implementation, Kernel
from gap_fuse.proof.tiles import BoundKernel, Setting, bind_kernel, run_team
from gap_fuse.proof.tiles.building import FLAGS
from tiler.bound import BoundCall

__all__ = ["bind_kernel", "run_tiled", "tilings"]


def run_tiled(
    kernel: Kernel,
    implementation: Implementation,
    operands: Mapping[str, np.ndarray],
    attrs: Mapping[str, CallAttr],
    tiles: Mapping[str, int] | None = None,
    cores: int = 8,
    *,
    orders: Mapping[str, Sequence[int]] | None = None,
    dtypes: Mapping[str, str] | None = None,
    flags: Sequence[str] = FLAGS,
) -> dict[str, np.ndarray]:
    """What the compiled C answers in these tiles (`run_team`); the implementation has to take the call."""
    bound = bind_kernel(kernel, implementation, operands, attrs, orders=orders, dtypes=dtypes)
    assert not isinstance(bound, str), bound
    call = BoundKernel(kernel, implementation, operands, *bound)
    return run_team(call, Setting(tiles or {}, cores, flags=tuple(flags)))[0]


def tilings(bound: BoundCall) -> st.SearchStrategy[dict[str, int]]:
    """Legal tiles of a bound call: a size for every axis, a multiple of its step where it is split; ends are ragged."""

    def sizes(extent: int, step: int, limit: int | None) -> st.SearchStrategy[int]:
        most = min(extent, limit or extent)
        steps = list(range(step, most, step)) + ([extent] if most == extent else [most])
        return st.sampled_from(steps[::-1] or [extent])

    return st.fixed_dictionaries(
        {a.name: st.just(a.extent) if a.whole else sizes(a.extent, a.step, a.limit) for a in bound.axes}
    )
