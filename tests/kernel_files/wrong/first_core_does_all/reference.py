import numpy as np


def first_core_does_all(x, w, *, x_zero):
    total = (x.astype(np.int32) - x_zero) * w
    return np.clip(total >> 6, -128, 127).astype(np.int8)
