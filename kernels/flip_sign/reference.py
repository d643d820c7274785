"""uint8 and int8 with the zero point 128 apart."""

from __future__ import annotations

import numpy as np


def flip_sign_u8(x: np.ndarray) -> np.ndarray:
    return (x ^ np.uint8(0x80)).view(np.int8)


def flip_sign_i8(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint8) ^ np.uint8(0x80)
