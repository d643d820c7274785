"""Frames around a tensor."""

from __future__ import annotations

import numpy as np

MODES = ("edge", "reflect", "wrap")


def pad(x: np.ndarray, *, pads: tuple[int, ...], value: float) -> np.ndarray:
    return np.pad(x, [(pads[i], pads[i + 4]) for i in range(4)], constant_values=x.dtype.type(value))


def pad_mirror(x: np.ndarray, *, pads: tuple[int, ...], mode: int) -> np.ndarray:
    """pads [top, left, bottom, right]; mode 0 edge, 1 reflect, 2 wrap."""
    return np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])], mode=MODES[mode])  # type: ignore[call-overload]
