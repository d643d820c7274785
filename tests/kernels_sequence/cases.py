"""Random calls of the kernels over sequences: recurrent layers, attention, group normalisation, rotary embedding."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.kernels_compute.cases import Case

Rng = np.random.Generator


def floats(rng: Rng, shape: tuple[int, ...], size: float = 1.0) -> np.ndarray:
    return (rng.standard_normal(shape) * size).astype(np.float32)


def sizes(rng: Rng) -> tuple[int, int, int]:
    """Steps, rows, units: the units around the blocks of 16 that the kernels take at once."""
    return int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.choice([1, 3, 16, 17, 35, 48]))


def states(rng: Rng, *names: str, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    return {n: floats(rng, shape) for n in names if rng.random() < 0.5}


def gru(rng: Rng) -> Case:
    t, n, u = sizes(rng)
    operands = {"x": floats(rng, (t, n, 3, u)), "r": floats(rng, (3, u, u), 0.3)} | states(rng, "h0", shape=(n, u))
    if rng.random() < 0.7:
        operands["b"] = floats(rng, (u,))
    return Case(operands, {"reverse": int(rng.integers(0, 2)), "linear_before_reset": int(rng.random() < 0.7)})


def lstm(rng: Rng) -> Case:
    t, n, u = sizes(rng)
    operands = {"x": floats(rng, (t, n, 4, u)), "r": floats(rng, (4, u, u), 0.3)}
    return Case(operands | states(rng, "h0", "c0", shape=(n, u)), {"reverse": int(rng.integers(0, 2))})


def rnn(rng: Rng) -> Case:
    t, n, u = sizes(rng)
    relu = int(rng.integers(0, 2))
    operands = {"x": floats(rng, (t, n, u)), "r": floats(rng, (u, u), 0.3 / (1 + relu))}
    return Case(operands | states(rng, "h0", shape=(n, u)), {"reverse": int(rng.integers(0, 2)), "relu": relu})


def attention(rng: Rng) -> Case:
    """Masks that broadcast, rows that see nothing (`empty`), heads that share."""
    b, g, shared, t, s = (int(rng.integers(1, n)) for n in (3, 3, 3, 8, 20))
    d, e = int(rng.choice([1, 5, 8, 24])), int(rng.choice([1, 4, 16, 37]))
    operands = {"q": floats(rng, (b, g * shared, t, d)), "k": floats(rng, (b, g, d, s)), "v": floats(rng, (b, g, s, e))}
    attrs = {
        "scale": float(rng.uniform(0.2, 1.5)),
        "shared": shared,
        "softcap": float(rng.choice([0.0, 0.0, 2.0])),
        "causal": int(rng.random() < 0.3),
    }
    kind = rng.choice(["none", "float", "bool"])
    if kind != "none":
        shape = (int(rng.choice([1, b])), int(rng.choice([1, g * shared])), int(rng.choice([1, t])), s)
        hidden = rng.random(shape) < rng.choice([0.1, 0.6])
        operands["mask"] = np.where(hidden, np.float32(-np.inf), floats(rng, shape)) if kind == "float" else ~hidden
    attrs |= {"keep": int(rng.integers(0, 2)), "masked": float(rng.choice([-np.inf, -1e9, -2.0])), "empty": 1}
    return Case(operands, attrs)


def groupnorm(rng: Rng) -> Case:
    """Groups whose mean is far from 0 beside their spread."""
    n, g, k, p = (int(rng.integers(1, e)) for e in (3, 5, 5, 30))
    x = floats(rng, (n, g, k, p)) + np.float32(rng.choice([0.0, 3.0, -20.0]))
    extra = {"gamma": floats(rng, (g, k)), "beta": floats(rng, (g, k))} if rng.random() < 0.7 else {}
    attrs = {"epsilon": 1e-3, "lo": float(rng.choice([-np.inf, 0.0])), "hi": float(rng.choice([np.inf, 2.0]))}
    return Case({"x": x, **extra}, attrs)


def rotary(rng: Rng) -> Case:
    b, h, t, half = (int(rng.integers(1, e)) for e in (3, 4, 6, 12))
    interleaved = int(rng.integers(0, 2))
    angles = half * int(rng.choice([1, 2])) if not interleaved else half
    shape = (int(rng.choice([1, b])), int(rng.choice([1, h])), int(rng.choice([1, t])), angles)
    operands = {"x": floats(rng, (b, h, t, 2 * half)), "cosine": floats(rng, shape), "sine": floats(rng, shape)}
    return Case(operands, {"interleaved": interleaved})


CASES: Mapping[str, Callable[[Rng], Case]] = {
    "attention_f32": attention,
    "groupnorm_f32": groupnorm,
    "gru_f32": gru,
    "lstm_f32": lstm,
    "rnn_f32": rnn,
    "rotary_f32": rotary,
}
