"""Constants in the storage order a call wants: blocks such as `k/16 ... k%16`, padded with zeros."""

from __future__ import annotations

import numpy as np

from fusion_engine.diagnostics import GapFuseError


def pack(data: np.ndarray, dims: tuple[str, ...], order: tuple[str, ...]) -> np.ndarray:
    """The constant `data` (logical, one name of `dims` per axis) as a dense array with the axes of `order`.

    `k/B` and `k%B` are block number and place in the block; the last block is padded with zeros. Names of extent 1 may
    be left out. Raises GapFuseError if the order and the dims do not name the same axes.
    """
    blocks = {o.split("%")[0]: int(o.split("%")[1]) for o in order if "%" in o}
    names: list[str] = []
    split = data
    for dim in reversed(dims):  # from the end, so that axis numbers before it stay
        axis = dims.index(dim)
        if dim in blocks:
            split = _split(split, axis, blocks[dim])
            names[:0] = [f"{dim}/{blocks[dim]}", f"{dim}%{blocks[dim]}"]
        else:
            names.insert(0, dim)
    left_out = [n for n in names if n not in order]
    if set(order) - set(names) or any(split.shape[names.index(n)] != 1 for n in left_out):
        raise GapFuseError(f"a constant with dims {' '.join(dims)} cannot be stored as {' '.join(order)}")
    axes = [names.index(o) for o in order] + [names.index(n) for n in left_out]
    return np.ascontiguousarray(split.transpose(axes)).reshape([split.shape[names.index(o)] for o in order])


def _split(data: np.ndarray, axis: int, block: int) -> np.ndarray:
    padding = [(0, 0)] * data.ndim
    padding[axis] = (0, -data.shape[axis] % block)
    padded = np.pad(data, padding)
    shape = (*data.shape[:axis], padded.shape[axis] // block, block, *data.shape[axis + 1 :])
    return padded.reshape(shape)
