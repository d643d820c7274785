"""The operators that random networks are drawn from: each layer takes a float value and gives one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.networks.growing import FLOAT, Net

Layer = Callable[[Net, str], str]


# ---- windows ----


def _window(g: Net, x: str, most: int = 3, dilated: bool = True) -> dict[str, Any]:
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
    window = _window(g, x)
    bias = [g.weight(k)] if g.odds(2) else []
    y = g.node("Conv", [x, g.weight(k, c // group, *window["kernel_shape"]), *bias], group=group, **window)
    return _behind_conv(g, y, k, len(spatial))


def _behind_conv(g: Net, y: str, k: int, spatial: int) -> str:
    """A BatchNormalization, a bias in one of its shapes, both, an activation between them, or nothing."""
    if g.odds(3):
        y = _clamp(g, y)
    if g.odds(3):
        y = batchnorm(g, y)
    if g.odds(3):
        shape = g.pick((k, *[1] * spatial), (1, k, *[1] * spatial), (1,), (), (1, *[1] * spatial))
        y = g.node("Add", [y, g.weight(*shape)] if g.odds(2) else [g.weight(*shape), y])
    return _clamp(g, y) if g.odds(3) else y


def _clamp(g: Net, x: str) -> str:
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
    window = _window(g, x, dilated=False)
    if g.odds(4) and window.get("auto_pad", "NOTSET") == "NOTSET":
        window["ceil_mode"] = 1
        window["pads"] = [0] * len(window["pads"])
        if not _all_windows_begin_inside(g, x, window):
            return x
    if g.odds(2):
        return g.node("MaxPool", [x], **window)
    y = g.node("AveragePool", [x], count_include_pad=g.pick(0, 1), **window)
    return _clamp(g, y) if g.odds(4) else y


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


# ---- matrices ----


def matmul(g: Net, x: str) -> str:
    k, j = g.shape(x)[-1], g.integer(1, 9)
    y = g.node("MatMul", [x, g.weight(k, j, scale=0.3)])
    if g.odds(2):
        y = g.node("Add", [y, g.weight(*g.pick((j,), (1, j), (1,), ()))] if len(g.shape(y)) > 1 else [y, g.weight(j)])
    return _clamp(g, y) if g.odds(3) else y


def product(g: Net, x: str) -> str:
    """x @ x^T: a matrix product of two activations, scaled and soft-maxed now and then."""
    rank = len(g.shape(x))
    turned = g.node("Transpose", [x], perm=[*range(rank - 2), rank - 1, rank - 2])
    y = g.node("MatMul", [x, turned] if g.odds(2) else [turned, x])
    y = g.node("Mul", [y, g.scalar(0.25)]) if g.odds(2) else y
    return g.node("Softmax", [y], axis=-1) if g.odds(3) else y


def gemm(g: Net, x: str) -> str:
    a, b = g.pick(0, 0, 0, 1), g.pick(0, 1)
    rows = g.shape(x)[::-1] if a else g.shape(x)
    j = g.integer(1, 9)
    weight = g.weight(*((j, rows[1]) if b else (rows[1], j)), scale=0.3)
    bias = g.pick([], [g.weight(j)], [g.weight(1, j)], [g.weight(1)], [g.weight()], [g.weight(rows[0], 1)])
    attributes = {"alpha": g.pick(1.0, 1.0, 0.5), "beta": g.pick(1.0, 1.0, 0.5, 0.0)}
    y = g.node("Gemm", [x, weight, *bias], transA=a, transB=b, **attributes)
    return _clamp(g, y) if g.odds(3) else y


def flatten(g: Net, x: str) -> str:
    return g.node("Flatten", [x], axis=g.integer(0, len(g.shape(x))))


# ---- any rank ----

UNARY = ("Relu", "Sigmoid", "Tanh", "Elu", "LeakyRelu", "HardSigmoid", "Abs", "Neg", "Erf", "Exp",
         "Softplus", "Softsign", "Selu", "HardSwish", "Floor", "Ceil", "Round", "Sign", "Sin",
         "ThresholdedRelu", "Celu")  # fmt: skip


def unary(g: Net, x: str) -> str:
    op = g.pick(*UNARY)
    return g.node("Tanh" if op == "HardSwish" and g.opset < 14 else op, [x])


def clamp(g: Net, x: str) -> str:
    return _clamp(g, _clamp(g, x) if g.odds(3) else x)


def nothing(g: Net, x: str) -> str:
    """Operators that change nothing."""
    op, attributes = g.pick(("Identity", {}), ("Dropout", {}), ("Cast", {"to": FLOAT}))
    return g.node(op, [x], **attributes)


def binary(g: Net, x: str) -> str:
    """With an earlier value or a constant that broadcasts, either way round."""
    op = g.pick("Add", "Mul", "Sub", "Add", "Mul", "Max", "Min", "Div")
    shape = g.shape(x)
    earlier = [v for v in g.floats() if _joins(g.shape(v), shape)]
    if op == "Div":
        return g.node("Div", [x, g.positive(*g.broadcastable(shape))])
    other = g.pick(*earlier) if earlier and g.odds(2) else g.weight(*g.broadcastable(shape))
    return g.node(op, [x, other] if g.odds(2) else [other, x])


def _joins(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a, b))) <= 3000 and len(a) <= 4
    except ValueError:
        return False


def silu(g: Net, x: str) -> str:
    return g.node("Mul", [x, g.node("Sigmoid", [x])] if g.odds(2) else [g.node("Sigmoid", [x]), x])


def power(g: Net, x: str) -> str:
    y = g.node("Pow", [x, g.scalar(2.0)])
    y = g.node("Add", [y, g.scalar(1.0)])
    return g.node("Sqrt", [y]) if g.odds(2) else g.node("Pow", [y, g.scalar(g.pick(-0.5, 0.5, 1.5))])


def prelu(g: Net, x: str) -> str:
    return g.node("PRelu", [x, g.weight(*g.broadcastable(g.shape(x)))])


def softmax(g: Net, x: str) -> str:
    return g.node(
        g.pick("Softmax", "Softmax", "LogSoftmax"), [x], axis=g.integer(-len(g.shape(x)), len(g.shape(x)) - 1)
    )


def layernorm(g: Net, x: str) -> str:
    n = g.shape(x)[-1]
    if g.opset >= 17 and g.odds(2):
        return g.node("LayerNormalization", [x, g.weight(n), *([g.weight(n)] if g.odds(2) else [])], axis=-1)
    mean = _reduce(g, "ReduceMean", x, [-1], 1)
    d = g.node("Sub", [x, mean])
    var = _reduce(g, "ReduceMean", g.node("Mul", [d, d]) if g.odds(2) else g.node("Pow", [d, g.scalar(2.0)]), [-1], 1)
    y = g.node("Div", [d, g.node("Sqrt", [g.node("Add", [var, g.scalar(1e-5)])])])
    return g.node("Add", [g.node("Mul", [y, g.weight(n)]), g.weight(n)]) if g.odds(2) else y


def _reduce(g: Net, op: str, x: str, axes: list[int], keep: int) -> str:
    if g.opset >= 18 or op == "ReduceSum":
        return g.node(op, [x, g.ints(*axes)], keepdims=keep)
    return g.node(op, [x], axes=axes, keepdims=keep)


def reduce(g: Net, x: str) -> str:
    op = g.pick("ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare")
    rank = len(g.shape(x))
    axes = sorted({g.integer(0, rank - 1) for _ in range(g.integer(1, 2))})
    signed = [a - rank if g.odds(2) else a for a in axes]
    return _reduce(g, op, x, signed, g.pick(0, 1))


def transpose(g: Net, x: str) -> str:
    perm = list(range(len(g.shape(x))))
    g.rng.shuffle(perm)
    return g.node("Transpose", [x], perm=[int(p) for p in perm])


def reshape(g: Net, x: str) -> str:
    shape = g.shape(x)
    merged = g.pick(
        (-1, shape[-1]), (1, -1), (shape[0], -1), (*shape[:-1], 1, shape[-1]) if len(shape) < 4 else shape, (0, -1)
    )
    return g.node("Reshape", [x, g.ints(*merged)]) if int(np.prod(shape)) and len(shape) > 1 else x


def squeeze(g: Net, x: str) -> str:
    shape = g.shape(x)
    ones = [i for i, d in enumerate(shape) if d == 1]
    if ones and len(shape) > 1:
        return g.node("Squeeze", [x, g.ints(g.pick(*ones) - (len(shape) if g.odds(2) else 0))])
    return g.node("Unsqueeze", [x, g.ints(g.integer(0, len(shape)))]) if len(shape) < 4 else x


def concat(g: Net, x: str) -> str:
    shape = g.shape(x)
    axis = g.integer(0, len(shape) - 1)
    other = [v for v in g.floats(len(shape)) if _but(g.shape(v), axis) == _but(shape, axis) and g.shape(v)[axis] <= 20]
    parts = [x, g.pick(*other)] if other else [x, x]
    if g.odds(4):
        parts.append(g.weight(*shape[:axis], 2, *shape[axis + 1 :]))
    return g.node("Concat", parts, axis=axis - (len(shape) if g.odds(2) else 0))


def _but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def split(g: Net, x: str) -> str:
    shape = g.shape(x)
    axis = g.pick(*(i for i, _ in enumerate(shape)))
    if shape[axis] < 2:
        return x
    at = g.integer(1, shape[axis] - 1)
    parts = g.results("Split", [x, g.ints(at, shape[axis] - at)], 2, axis=axis)
    return parts[g.integer(0, 1)]


def slices(g: Net, x: str) -> str:
    shape = g.shape(x)
    axis = g.integer(0, len(shape) - 1)
    start = g.integer(0, shape[axis] - 1)
    end = g.pick(shape[axis], 2**31 - 1, start + 1)
    step = g.pick(1, 1, 2)
    signed = start - shape[axis] if g.odds(3) else start
    return g.node(
        "Slice", [x, g.ints(signed), g.ints(end), g.ints(axis - (len(shape) if g.odds(2) else 0)), g.ints(step)]
    )


def gather(g: Net, x: str) -> str:
    shape = g.shape(x)
    axis = g.integer(0, len(shape) - 1)
    n = shape[axis]
    indices = g.pick([g.integer(-n, n - 1)], [n - 1, 0, 0], list(range(n))[::-1])
    scalar = len(indices) == 1 and len(shape) > 1 and g.odds(2)
    return g.node("Gather", [x, g.constant(np.array(indices[0] if scalar else indices, np.int64))], axis=axis)


def expand(g: Net, x: str) -> str:
    shape = g.shape(x)
    if int(np.prod(shape)) > 500 or len(shape) > 3:
        return x
    return (
        g.node("Expand", [x, g.ints(2, *shape)])
        if g.odds(2)
        else g.node("Tile", [x, g.ints(2, *[1] * (len(shape) - 1))])
    )


def choice(g: Net, x: str) -> str:
    """Where of a comparison, of two joined by logic now and then."""
    test = _test(g, x)
    if g.odds(2):
        test = g.node(g.pick("And", "Or", "Xor"), [test, _test(g, x)])
    test = g.node("Not", [test]) if g.odds(3) else test
    other = g.scalar(0.0) if g.odds(2) else g.weight(*g.broadcastable(g.shape(x)))
    return g.node("Where", [test, x, other] if g.odds(2) else [test, other, x])


def _test(g: Net, x: str) -> str:
    op = g.pick("Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    return g.node(op, [x, g.weight(*g.broadcastable(g.shape(x)))])


def round_trip(g: Net, x: str) -> str:
    """Through another element type, with arithmetic there now and then."""
    to = g.pick(np.int32, np.int64, np.bool_)
    kind = {np.int32: 6, np.int64: 7, np.bool_: 9}[to]
    bounded = g.node(
        "Clip", [x, g.constant(np.float32(-20)), g.constant(np.float32(20))]
    )  # beyond int32 nothing is promised
    y = g.node("Cast", [g.node("Mul", [bounded, g.scalar(4.0)])], to=kind)
    if to is not np.bool_ and g.odds(2):
        y = g.node(g.pick("Add", "Mul", "Sub"), [y, g.constant(np.array(g.integer(-3, 3), to))])
    return g.node("Cast", [y], to=FLOAT)


def position(g: Net, x: str) -> str:
    """ArgMax of a graph input (a last bit decides between computed values), which nothing reads; what goes on is x."""
    of = g.pick(*g.inputs)
    g.node(g.pick("ArgMax", "ArgMin"), [of], axis=g.integer(0, len(g.shape(of)) - 1), keepdims=g.pick(0, 1))
    return x


# ---- quantised ----


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
    window = _window(g, x)
    weight, scales = _weight_pair(g, g.pick(None, 0), k, c // group, *window["kernel_shape"])
    inputs = [real, weight]
    if g.odds(2):
        steps = g.constant(g.rng.integers(-500, 500, k).astype(np.int32))
        step = g.constant((scales * scale).astype(np.float32))
        axis = {"axis": 0} if scales.ndim else {}
        inputs.append(g.node("DequantizeLinear", [steps, step], **axis))
    y = g.node("Conv", inputs, group=group, **window)
    y = _clamp(g, y) if g.odds(2) else y
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


MAPS: tuple[Layer, ...] = (
    conv, conv, pointwise, conv_transpose, batchnorm, pool, pool, global_pool, normalise_input, resize, blocks, shuffle,
    pad, quantised_conv, quantised_conv,
)  # fmt: skip
ROWS: tuple[Layer, ...] = (conv, pointwise, conv_transpose, batchnorm, pool, shuffle, pad, quantised_conv)
MATRICES: tuple[Layer, ...] = (matmul, product, layernorm, quantised_matmul, dynamic)
ANY: tuple[Layer, ...] = (
    unary, unary, clamp, nothing, binary, binary, silu, power, prelu, softmax, reduce, transpose, reshape, squeeze,
    concat, split, slices, gather, expand, choice, round_trip, position, quantise, quantised_binary, flatten,
    integer_chain,
)  # fmt: skip


SCALAR: tuple[Layer, ...] = (unary, clamp, nothing, binary, silu, power, round_trip, quantise, quantised_binary)


def layers_for(rank: int) -> tuple[Layer, ...]:
    """What a value of this rank may go through."""
    if rank == 4:
        return MAPS + MAPS + MATRICES + ANY
    if rank == 3:
        return ROWS + MATRICES + ANY
    if rank == 2:
        return (gemm, gemm, *MATRICES, *ANY)
    return ANY if rank == 1 else SCALAR
