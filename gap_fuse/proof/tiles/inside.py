"""Tiles inside tensors that stay in L1: which operands' tiles can lie there, and what a call must leave beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fusion_engine.diagnostics import counted
from gap_fuse.proof.tiles.l1 import StrayAccess
from tiler.bound import BoundCall
from tiler.grid import Grid, dim_classes
from tiler.schedule import BoundOperand
from tiler.traffic import in_place


def staying(bound: BoundCall, tiles: Mapping[str, int]) -> frozenset[str]:
    """The operands whose tiles of these sizes the C can walk inside their tensors, as the tiler decides it."""
    extents = bound.extents
    grid = Grid(bound, tuple(extents), extents, tuple(np.array([tiles[a]]) for a in extents), thinned=False)
    return frozenset(o.name for o in bound.operands if o.role != "const" and _walkable(grid, o))


def _walkable(grid: Grid, o: BoundOperand) -> bool:
    dims = [dim_classes(grid, i, e) for i, e in zip(o.index, o.extent, strict=True)]
    return not o.gather and bool(in_place(dims, o).all())


def check_beside(name: str, before: np.ndarray, after: np.ndarray, tile: np.ndarray, what: str) -> None:
    """Raise StrayAccess where elements of a result's tensor that are not of the `tile` (a mask) were written."""
    wrote = (before.view(np.uint8) != after.view(np.uint8)).reshape(len(before), -1).any(axis=1) & ~tile
    if wrote.any():
        many = counted(int(wrote.sum()), "element")
        raise StrayAccess(f"{what} wrote {many} beside the tile of `{name}`, inside its tensor in L1")
