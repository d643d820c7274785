"""Cases of kernels that walk images: pools and resizing."""

from __future__ import annotations

import numpy as np

from fusion_engine.fixed_point import multiplier, shift
from tests.kernels_compute.cases import Case
from tests.kernels_other.drawn import (
    Attrs,
    Rng,
    bytes_,
    clamp,
    floats,
    scaling,
    zero,
)


def image(rng: Rng, least: int = 1) -> tuple[int, int, int, int]:
    n, c = int(rng.integers(1, 3)), int(rng.integers(1, 20))
    return n, c, int(rng.integers(least, 10)), int(rng.integers(least, 10))


def global_f32(rng: Rng) -> Case:
    shape = image(rng)
    return Case({"x": floats(rng, shape)}, {"factor": 1.0 / (shape[2] * shape[3])} | clamp(rng, False))


def global_i8(rng: Rng) -> Case:
    shape = image(rng)
    attrs = scaling(rng.uniform(0.3, 3.0) / (shape[2] * shape[3])) | {"x_zero": zero(rng), "y_zero": zero(rng)}
    return Case({"x": bytes_(rng, shape)}, attrs | clamp(rng, True))


def window(rng: Rng) -> Attrs:
    kernel = tuple(int(v) for v in rng.integers(1, 4, 2))
    pads = tuple(int(rng.integers(0, kernel[i % 2])) for i in range(4))
    return {
        "kernel": kernel,
        "strides": tuple(int(v) for v in rng.integers(1, 4, 2)),
        "pads": pads,
        "dilations": (1, 1),
        "ceil_mode": int(rng.integers(0, 2)),
    }


def maxpool_f32(rng: Rng) -> Case:
    return Case(
        {"x": floats(rng, image(rng, 5))}, window(rng) | {"dilations": (1, int(rng.integers(1, 3)))} | clamp(rng, False)
    )


def maxpool_i8(rng: Rng) -> Case:
    return Case(
        {"x": bytes_(rng, image(rng, 5))}, window(rng) | {"dilations": (int(rng.integers(1, 3)), 1)} | clamp(rng, True)
    )


def avgpool_f32(rng: Rng) -> Case:
    return Case(
        {"x": floats(rng, image(rng, 5))},
        window(rng) | {"count_include_pad": int(rng.integers(0, 2))} | clamp(rng, False),
    )


def avgpool_i8(rng: Rng) -> Case:
    attrs = window(rng)
    taps = int(np.prod(attrs["kernel"]))  # type: ignore[arg-type]
    factors = rng.uniform(0.3, 3.0) / np.arange(1, taps + 1)
    zeros = {"x_zero": zero(rng), "y_zero": zero(rng), "count_include_pad": int(rng.integers(0, 2))}
    return Case(
        {"x": bytes_(rng, image(rng, 5)), "mul": multiplier(factors), "shift": shift(factors)},
        attrs | zeros | clamp(rng, True),
    )


def resized(rng: Rng, h: int, w: int) -> Attrs:
    p, q = (int(v) for v in rng.integers(1, 14, 2))
    half = rng.random() < 0.5
    rows = (2 * h, h - p, 2 * p) if half else (h, 0, p)
    columns = (2 * w, w - q, 2 * q) if half else (w, 0, q)
    return {"extent": (p, q), "rows": rows, "columns": columns}


def resize_f32(rng: Rng) -> Case:
    shape = image(rng)
    return Case({"x": floats(rng, shape)}, resized(rng, *shape[2:]))


def resize_nearest(rng: Rng) -> Case:
    shape = image(rng)
    return Case({"x": bytes_(rng, shape) if rng.random() < 0.5 else floats(rng, shape)}, resized(rng, *shape[2:]))


def resize_i8(rng: Rng) -> Case:
    shape = image(rng)
    attrs = resized(rng, *shape[2:])
    factor = rng.uniform(0.5, 2.0) / (attrs["rows"][2] * attrs["columns"][2])  # type: ignore[index]
    zeros = {"x_zero": zero(rng), "y_zero": zero(rng)}
    return Case({"x": bytes_(rng, shape)}, attrs | scaling(float(factor)) | zeros | clamp(rng, True))
