"""Layers of drawn networks that walk images: convolutions, pools, resizing, pads."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.networks.growing import Net


def drawn_window(g: Net, x: str, most: int = 3, dilated: bool = True) -> dict[str, Any]:
    """kernel_shape, strides, dilations and pads or auto_pad over the spatial axes, never an empty result."""
    spatial = g.shape(x)[2:]
    kernel = [g.integer(1, min(most, n)) for n in spatial]
    dilations = [2 if dilated and 2 * (k - 1) < n and g.odds(3) else 1 for k, n in zip(kernel, spatial, strict=True)]
    window = {"kernel_shape": kernel, "strides": [g.pick(1, 1, 2) for _ in spatial]}
    if dilated:
        window["dilations"] = dilations
    auto = g.pick("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto.startswith("SAME"):  # onnxruntime refuses the negative pads of a window shorter than its stride
        window["strides"] = [min(s, k) for s, k in zip(window["strides"], kernel, strict=True)]
    if auto != "NOTSET":
        return {**window, "auto_pad": auto, **({"dilations": [1] * len(kernel)} if dilated else {})}
    return {**window, "pads": [g.integer(0, k - 1) for k in (*kernel, *kernel)]}


def conv(g: Net, x: str) -> str:
    _, c, *spatial = g.shape(x)
    group = g.pick(*(d for d in (1, 1, 2, 3, c) if c % d == 0))
    k = group * g.integer(1, 3 if group > 1 else 9)
    window = drawn_window(g, x)
    bias = [g.weight(k)] if g.odds(2) else []
    y = g.node("Conv", [x, g.weight(k, c // group, *window["kernel_shape"]), *bias], group=group, **window)
    return _behind_conv(g, y, k, len(spatial))


def _behind_conv(g: Net, y: str, k: int, spatial: int) -> str:
    """A BatchNormalization, a bias in one of its shapes, both, an activation between them, or nothing."""
    if g.odds(3):
        y = clamped(g, y)
    if g.odds(3):
        y = batchnorm(g, y)
    if g.odds(3):
        shape = g.pick((k, *[1] * spatial), (1, k, *[1] * spatial), (1,), (), (1, *[1] * spatial))
        y = g.node("Add", [y, g.weight(*shape)] if g.odds(2) else [g.weight(*shape), y])
    return clamped(g, y) if g.odds(3) else y


def clamped(g: Net, x: str) -> str:
    if g.odds(2):
        return g.node("Relu", [x])
    lo, hi = (g.constant(np.float32(v)) for v in g.pick((-0.5, 0.75), (0.0, 6.0), (0.25, 0.25), (1.0, -1.0)))
    return g.node("Clip", [x, *g.pick([lo, hi], [lo], ["", hi], [])])


def pointwise(g: Net, x: str) -> str:
    _, c, *spatial = g.shape(x)
    k = g.integer(1, 18)
    return _behind_conv(g, g.node("Conv", [x, g.weight(k, c, *[1] * len(spatial)), g.weight(k)]), k, len(spatial))


def conv_transpose(g: Net, x: str) -> str:
    _, c, *spatial = g.shape(x)
    group = g.pick(*(d for d in (1, 1, 2, c) if c % d == 0))
    k = g.integer(1, 4)
    kernel, strides = [g.integer(1, 3) for _ in spatial], [g.pick(1, 2) for _ in spatial]
    pads = [g.integer(0, (r - 1) // 2) for r in (*kernel, *kernel)]
    extra = [g.integer(0, s - 1) for s in strides]
    window: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads, "output_padding": extra}
    bias = [g.weight(k * group)] if g.odds(2) else []
    y = g.node("ConvTranspose", [x, g.weight(c, k, *kernel), *bias], group=group, **window)
    return _behind_conv(g, y, k * group, len(spatial))


def batchnorm(g: Net, x: str) -> str:
    c = g.shape(x)[1]
    parameters = [g.weight(c), g.weight(c), g.weight(c), g.positive(c)]
    return g.node("BatchNormalization", [x, *parameters], epsilon=g.pick(1e-5, 1e-3))


def pool(g: Net, x: str) -> str:
    window = drawn_window(g, x, dilated=False)
    if g.odds(4) and window.get("auto_pad", "NOTSET") == "NOTSET":
        window["ceil_mode"] = 1
        window["pads"] = [0] * len(window["pads"])
        if not _all_windows_begin_inside(g, x, window):
            return x
    if g.odds(2):
        return g.node("MaxPool", [x], **window)
    y = g.node("AveragePool", [x], count_include_pad=g.pick(0, 1), **window)
    return clamped(g, y) if g.odds(4) else y


def _all_windows_begin_inside(g: Net, x: str, window: dict[str, Any]) -> bool:
    """Where the last window of ceil_mode begins outside, versions of the standard differ."""
    sizes = zip(g.shape(x)[2:], window["kernel_shape"], window["strides"], strict=True)
    return all(-(-(n - k) // s) * s < n for n, k, s in sizes)


def global_pool(g: Net, x: str) -> str:
    return g.node(g.pick("GlobalAveragePool", "GlobalMaxPool"), [x])


def normalise_input(g: Net, x: str) -> str:
    """(x - mean) / std per channel, as in front of a first convolution."""
    _, c, *spatial = g.shape(x)
    shape = g.pick((1, c, *[1] * len(spatial)), (c, *[1] * len(spatial)))
    y = g.node("Sub", [x, g.weight(*shape)])
    y = g.node(*g.pick(("Div", [y, g.positive(*shape)]), ("Mul", [y, g.weight(*shape)])))
    return conv(g, y) if g.odds(2) else y


def resize(g: Net, x: str) -> str:
    scales = g.constant(np.array([1, 1, g.pick(1, 2), g.pick(2, 3)], np.float32))
    modes = g.pick(
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        {"mode": "nearest"},
        {"mode": "linear"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    )
    return g.node("Resize", [x, "", scales], **modes)


def blocks(g: Net, x: str) -> str:
    _, c, h, w = g.shape(x)
    if c % 4 == 0 and g.odds(2):
        return g.node("DepthToSpace", [x], blocksize=2, mode=g.pick("DCR", "CRD"))
    return g.node("SpaceToDepth", [x], blocksize=2) if h % 2 == 0 and w % 2 == 0 else x


def shuffle(g: Net, x: str) -> str:
    """Channel shuffle, as ShuffleNet exports it."""
    n, c, *spatial = g.shape(x)
    groups = g.pick(*(d for d in range(1, c + 1) if c % d == 0))
    y = g.node("Reshape", [x, g.ints(n, groups, c // groups, *spatial)])
    y = g.node("Transpose", [y], perm=[0, 2, 1, *range(3, 3 + len(spatial))])
    return g.node("Reshape", [y, g.ints(n, c, *spatial)])


def pad(g: Net, x: str) -> str:
    shape = g.shape(x)
    free = range(2, len(shape)) if len(shape) > 2 else range(len(shape))
    mode = g.pick("constant", "constant", "edge", "reflect")
    most = [min(2, shape[i] - 1) if mode == "reflect" else 2 for i in range(len(shape))]
    front, back = ([g.integer(0, most[i]) if i in free else 0 for i in range(len(shape))] for _ in range(2))
    value = [g.constant(np.float32(0.5))] if mode == "constant" and g.odds(2) else []
    return g.node("Pad", [x, g.ints(*front, *back), *value], mode=mode)
