"""Layers of drawn networks that are quantised: QDQ pairs around operators, integer chains, dynamic quantisation."""

from __future__ import annotations

import numpy as np

from tests.networks.growing import FLOAT, Net
from tests.networks.window_layers import clamped, drawn_window


def quantise(g: Net, x: str) -> str:
    """A Q-DQ pair; the scale is what a value of a few units wants."""
    kind = g.pick(np.int8, np.int8, np.uint8)
    zero = g.pick(0, 5, -128) if kind is np.int8 else g.pick(0, 128, 100)
    parameters = [g.constant(np.float32(g.pick(0.02, 0.05))), g.constant(np.array(zero, kind))]
    return g.node("DequantizeLinear", [g.node("QuantizeLinear", [x, *parameters]), *parameters])


def _weight_pair(g: Net, axis: int | None, *shape: int) -> tuple[str, np.ndarray]:
    """Constant int8 weights behind their DequantizeLinear, and the scales."""
    count = 1 if axis is None else shape[axis]
    scales = g.rng.uniform(0.005, 0.02, count if axis is not None else ()).astype(np.float32)
    stored = g.constant(g.rng.integers(-127, 128, shape).astype(np.int8))
    attributes = {} if axis is None else {"axis": axis}
    zeros = g.constant(np.zeros(scales.shape, np.int8))
    return g.node("DequantizeLinear", [stored, g.constant(scales), zeros], **attributes), scales


def quantised_conv(g: Net, x: str) -> str:
    """Q-DQ - Conv - clamp - Q-DQ with int8 weights and an int32 bias, as onnxruntime's quantiser writes it."""
    kind = g.pick(np.int8, np.uint8)
    scale = np.float32(0.03)
    parameters = [g.constant(scale), g.constant(np.array(g.pick(0, 4, 100), kind))]
    real = g.node("DequantizeLinear", [g.node("QuantizeLinear", [x, *parameters]), *parameters])
    c = g.shape(x)[1]
    group = g.pick(*(d for d in (1, 1, c) if c % d == 0))
    k = group * g.integer(1, 6 if group == 1 else 1)
    window = drawn_window(g, x)
    weight, scales = _weight_pair(g, g.pick(None, 0), k, c // group, *window["kernel_shape"])
    inputs = [real, weight]
    if g.odds(2):
        steps = g.constant(g.rng.integers(-500, 500, k).astype(np.int32))
        step = g.constant((scales * scale).astype(np.float32))
        axis = {"axis": 0} if scales.ndim else {}
        inputs.append(g.node("DequantizeLinear", [steps, step], **axis))
    y = g.node("Conv", inputs, group=group, **window)
    y = clamped(g, y) if g.odds(2) else y
    return quantise(g, y)


def quantised_matmul(g: Net, x: str) -> str:
    k, j = g.shape(x)[-1], g.integer(1, 8)
    y = g.node("MatMul", [quantise(g, x), _weight_pair(g, None, k, j)[0]])
    y = g.node("Add", [y, g.weight(j)]) if g.odds(3) else y
    return quantise(g, y)


def quantised_binary(g: Net, x: str) -> str:
    a = quantise(g, x)
    y = g.node(g.pick("Add", "Mul", "Sub"), [a, quantise(g, x) if g.odds(2) else a])
    y = g.node("Relu", [y]) if g.odds(3) else y
    return quantise(g, y)


def integer_chain(g: Net, x: str) -> str:
    """Whole numbers made of a graph input, rescaled as NEMO or as DORY writes it."""
    x = g.pick(*g.inputs)
    whole = g.node("Round", [g.node("Mul", [x, g.scalar(16.0)])])
    rank = len(g.shape(x))
    per = (g.shape(x)[1], *[1] * (rank - 2)) if rank > 2 else ()
    kappa, lambda_ = (g.constant(g.rng.integers(-most, most, per).astype(np.float32)) for most in (99, 9999))
    y = g.node("Add", [g.node("Mul", [whole, kappa] if g.odds(2) else [kappa, whole]), lambda_])
    if g.odds(2):
        y = g.node("Floor", [g.node("Div", [y, g.scalar(g.pick(64.0, 100.0))])])
    else:
        y = g.node("Mul", [g.node("Cast", [y], to=7), g.ints(g.pick(1, 55, -7))])
        y = g.node("Cast", [g.node("Div", [y, g.ints(g.pick(4096, 4095))])], to=FLOAT)
    return g.node("Clip", [y, g.constant(np.float32(0)), g.constant(np.float32(255))])


def dynamic(g: Net, x: str) -> str:
    """As onnxruntime's dynamic quantiser writes a matrix product."""
    k, j = g.shape(x)[-1], g.integer(1, 8)
    stored, scale, zero = g.results("DynamicQuantizeLinear", [x], 3)
    weight = g.constant(g.rng.integers(-127, 128, (k, j)).astype(np.int8))
    y = g.node("Cast", [g.node("MatMulInteger", [stored, weight, zero])], to=FLOAT)
    return g.node("Mul", [y, g.node("Mul", [scale, g.scalar(0.01)])])
