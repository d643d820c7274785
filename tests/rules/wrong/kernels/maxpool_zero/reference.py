import numpy as np


def maxpool_zero(x, *, kernel, pads):
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))
    return windows.max((-1, -2)).astype(np.float32)
