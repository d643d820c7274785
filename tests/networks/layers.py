"""The operators that random networks are drawn from: each layer takes a float value and gives one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.networks.growing import FLOAT, Net
from tests.networks.quantised_layers import (
    dynamic,
    integer_chain,
    quantise,
    quantised_binary,
    quantised_conv,
    quantised_matmul,
)
from tests.networks.window_layers import (
    batchnorm,
    blocks,
    clamped,
    conv,
    conv_transpose,
    global_pool,
    normalise_input,
    pad,
    pointwise,
    pool,
    resize,
    shuffle,
)

Layer = Callable[[Net, str], str]


# ---- matrices ----


def matmul(g: Net, x: str) -> str:
    k, j = g.shape(x)[-1], g.integer(1, 9)
    y = g.node("MatMul", [x, g.weight(k, j, scale=0.3)])
    if g.odds(2):
        y = g.node("Add", [y, g.weight(*g.pick((j,), (1, j), (1,), ()))] if len(g.shape(y)) > 1 else [y, g.weight(j)])
    return clamped(g, y) if g.odds(3) else y


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
    return clamped(g, y) if g.odds(3) else y


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
    return clamped(g, clamped(g, x) if g.odds(3) else x)


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
