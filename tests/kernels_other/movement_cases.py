"""Cases of kernels that move elements: copies, pads, gathering, scattering."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.kernels_compute.cases import Case
from tests.kernels_other.drawn import (
    Rng,
    any_index,
    broadcast,
    bytes_,
    extents,
    floats,
    zero,
)
from tests.kernels_other.window_cases import (
    image,
)


def copy(rng: Rng) -> Case:
    dtype = str(rng.choice(["float32", "int8", "int32", "int64", "bool"]))
    return Case({"x": rng.integers(0, 2 if dtype == "bool" else 100, extents(rng)).astype(dtype)}, {})


def expand(rng: Rng) -> Case:
    shape = extents(rng)
    return Case({"x": floats(rng, broadcast(rng, shape))}, {"shape": shape})


def gather(rng: Rng) -> Case:
    a, d, b, k = (int(v) for v in rng.integers(1, 7, 4))
    x = bytes_(rng, (a, d, b)) if rng.random() < 0.5 else floats(rng, (a, d, b))
    return Case({"x": x, "indices": rng.integers(-d, d, k).astype(rng.choice(["int32", "int64"]))}, {})


def pad(dtype: str) -> Callable[[Rng], Case]:
    def draw(rng: Rng) -> Case:
        x = floats(rng, image(rng)) if dtype == "f32" else bytes_(rng, image(rng))
        value = float(rng.integers(-3, 3)) if dtype == "f32" else zero(rng)
        return Case({"x": x}, {"pads": tuple(int(v) for v in rng.integers(0, 4, 8)), "value": value})

    return draw


def fill(dtype: str) -> Callable[[Rng], Case]:
    return lambda rng: Case(
        {}, {"shape": extents(rng), "value": float(rng.integers(-3, 3)) if dtype == "f32" else zero(rng)}
    )


def pad_mirror(rng: Rng) -> Case:
    shape = image(rng, 3)
    return Case(
        {"x": bytes_(rng, shape)},
        {"pads": tuple(int(v) for v in rng.integers(0, 3, 4)), "mode": int(rng.integers(0, 3))},
    )


def gather_elements(rng: Rng) -> Case:
    a, d, b = extents(rng, 3, 3)
    x = bytes_(rng, (a, d, b)) if rng.random() < 0.5 else floats(rng, (a, d, b))
    return Case({"x": x, "indices": any_index(rng, d, (a, int(rng.integers(1, 9)), b))}, {})


def scatter_rows(rng: Rng) -> Case:
    lead, each = extents(rng, 1, 3), int(rng.integers(1, 6))
    m = int(rng.integers(1, 7))
    indices = np.stack([any_index(rng, e, (m,)).astype(np.int64) for e in lead], axis=1)
    make = bytes_ if rng.random() < 0.5 else floats
    x, updates = make(rng, (int(np.prod(lead)), each)), make(rng, (m, each))
    return Case({"x": x, "indices": indices, "updates": updates, "extents": np.asarray(lead, np.int32)}, {})


def scatter_rows_f32(rng: Rng) -> Case:
    case = scatter_rows(rng)
    wide = {n: v.astype(np.float32) if n in ("x", "updates") else v for n, v in case.operands.items()}
    return Case(wide, {"mode": int(rng.integers(1, 5))})


def scatter_elements(rng: Rng) -> Case:
    a, d, b = extents(rng, 3, 3)
    k = int(rng.integers(1, 7))
    make = bytes_ if rng.random() < 0.5 else floats
    operands = {"x": make(rng, (a, d, b)), "indices": any_index(rng, d, (a, k, b)), "updates": make(rng, (a, k, b))}
    return Case(operands, {"extent": d})
