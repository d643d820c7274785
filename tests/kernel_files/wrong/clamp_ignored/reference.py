import numpy as np


def clamp_ignored(x, w, *, x_zero, lo, hi):
    total = (x.astype(np.int32) - x_zero) * w
    return np.clip(total >> 6, lo, hi).astype(np.int8)
