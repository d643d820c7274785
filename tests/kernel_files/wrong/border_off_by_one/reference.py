import numpy as np


def border_off_by_one(x):
    padded = np.pad(x, 1)
    return (padded[:-2] + padded[1:-1] + padded[2:]).astype(np.int32)
