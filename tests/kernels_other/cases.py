"""Random calls of the kernels without weights: elementwise, pools, softmax, norms, movement, resize."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.kernels_compute.cases import Case
from tests.kernels_other.drawn import (
    Rng,
    broadcast,
    bytes_,
    channelwise,
    clamp,
    extents,
    floats,
    integers,
    scaling,
    whole,
    zero,
)
from tests.kernels_other.movement_cases import (
    copy,
    expand,
    fill,
    gather,
    gather_elements,
    pad,
    pad_mirror,
    scatter_elements,
    scatter_rows,
    scatter_rows_f32,
)
from tests.kernels_other.window_cases import (
    avgpool_f32,
    avgpool_i8,
    global_f32,
    global_i8,
    image,
    maxpool_f32,
    maxpool_i8,
    resize_f32,
    resize_i8,
    resize_nearest,
)

EXPRESSIONS = [
    "mul(sigmoid(x0), x0)",
    "add(mul(x0, x1), 0.5)",
    "max(tanh(x0), sub(x1, x0))",
    "where(greater(x0, 0.25), x1, neg(x2))",
    "add(x0, x1, mul(x2, x0), -1.5)",
]
REDUCTIONS = ["sum", "mean", "max", "min", "prod", "l1", "l2", "sumsquare", "logsum", "logsumexp"]
CAST_TYPES = ["float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64", "bool"]


def binary_f32(rng: Rng) -> Case:
    shape = extents(rng)
    a, b = floats(rng, broadcast(rng, shape)), floats(rng, shape)
    b = np.where(np.abs(b) < 0.05, np.float32(0.5), b)
    a, b = (a, b) if rng.random() < 0.7 else (floats(rng, shape), b)
    return Case({"a": a, "b": b}, clamp(rng, False))


def add_i8(rng: Rng) -> Case:
    shape = extents(rng)
    ma, mb = (int(v) for v in rng.integers(2**20, 2**31, 2))
    attrs = {"ma": ma, "mb": mb, "shift": 31, "a_zero": zero(rng), "b_zero": zero(rng), "y_zero": zero(rng)}
    return Case({"a": bytes_(rng, shape), "b": bytes_(rng, broadcast(rng, shape))}, attrs | clamp(rng, True))


def mul_i8(rng: Rng) -> Case:
    shape = extents(rng)
    attrs = scaling(rng.uniform(0.001, 0.1)) | {"a_zero": zero(rng), "b_zero": zero(rng), "y_zero": zero(rng)}
    return Case({"a": bytes_(rng, broadcast(rng, shape)), "b": bytes_(rng, shape)}, attrs | clamp(rng, True))


def cast(rng: Rng) -> Case:
    """Floats as far as every type reaches, with what is no number; integers of every size of their type."""
    have, to = (str(t) for t in rng.choice(CAST_TYPES, 2, replace=False))
    shape = extents(rng)
    if have in ("float32", "float16"):
        special = rng.choice([np.nan, np.inf, -np.inf, -0.5, 0.0, 2147483648.0, -3e9, 127.9, 1e30], shape)
        x = np.where(rng.random(shape) < 0.3, special, rng.normal(0, 200, shape))
        tiny = rng.normal(0, 3e-6, shape)  # where half floats have no leading one
        with np.errstate(over="ignore"):
            return Case({"x": np.where(rng.random(shape) < 0.3, tiny, x).astype(have)}, {"have": have, "to": to})
    wide = rng.integers(-(2**40), 2**40, shape) >> rng.integers(0, 40, shape)
    return Case({"x": wide.astype(have)}, {"have": have, "to": to})


def layernorm(rng: Rng) -> Case:
    shape = (*extents(rng, 0, 2), int(rng.integers(2, 40)))
    extra = {"gamma": floats(rng, shape[-1:]), "beta": floats(rng, shape[-1:])} if rng.random() < 0.7 else {}
    return Case({"x": floats(rng, shape), **extra}, {"epsilon": 1e-5})


def rmsnorm(rng: Rng) -> Case:
    case = layernorm(rng)
    return Case({n: v for n, v in case.operands.items() if n != "beta"}, case.attrs)


def lut_i8(rng: Rng) -> Case:
    return Case({"x": bytes_(rng, extents(rng)), "table": bytes_(rng, (256,))}, {})


def map_f32(rng: Rng) -> Case:
    expr = str(rng.choice(EXPRESSIONS))
    shape = extents(rng)
    more = {n: floats(rng, broadcast(rng, shape)) for n in ("x1", "x2") if n in expr}
    return Case({"x0": floats(rng, shape)} | more, {"expr": expr})


def prelu_f32(rng: Rng) -> Case:
    shape = extents(rng)
    return Case({"x": floats(rng, shape), "slope": floats(rng, broadcast(rng, shape))}, {})


def quantize_linear(dtype: str) -> Callable[[Rng], Case]:
    def make(rng: Rng) -> Case:
        shape = extents(rng)
        part = channelwise(rng, shape)
        info = np.iinfo(dtype)
        scale = (rng.uniform(0.01, 0.1, part) * 256 / (info.max - info.min)).astype(np.float32)
        lo, hi = sorted(int(v) for v in integers(dtype, rng, (2,)))
        whole = {"lo": int(info.min), "hi": int(info.max)}
        attrs = {"lo": lo, "hi": hi} if rng.random() < 0.5 else whole
        return Case({"x": floats(rng, shape), "scale": scale, "zero": integers(dtype, rng, part)}, attrs)

    return make


def dequantize_linear(dtype: str) -> Callable[[Rng], Case]:
    def make(rng: Rng) -> Case:
        shape = extents(rng)
        part = channelwise(rng, shape)
        scale = rng.uniform(0.01, 0.1, part).astype(np.float32)
        return Case({"x": integers(dtype, rng, shape), "scale": scale, "zero": integers(dtype, rng, part)}, {})

    return make


def dequantize_i32(rng: Rng) -> Case:
    shape = extents(rng)
    return Case(
        {
            "x": rng.integers(-(2**24), 2**24, shape).astype(np.int32),
            "scale": rng.uniform(0.01, 0.1, channelwise(rng, shape)).astype(np.float32),
        },
        {},
    )


def reduce_f32(rng: Rng) -> Case:
    op = str(rng.choice(REDUCTIONS))
    x = rng.standard_normal((*extents(rng, 0, 2), int(rng.integers(1, 30)))).astype(np.float32)
    return Case({"x": np.abs(x) + np.float32(0.1) if op in ("prod", "logsum") else x}, {"op": op})


def cumsum(dtype: str) -> Callable[[Rng], Case]:
    def make(rng: Rng) -> Case:
        shape = extents(rng, 3, 3)
        x = floats(rng, shape) if dtype == "float32" else integers(dtype, rng, shape)
        return Case({"x": x}, {"exclusive": int(rng.integers(0, 2)), "reverse": int(rng.integers(0, 2))})

    return make


def lrn_f32(rng: Rng) -> Case:
    attrs = {"size": int(rng.integers(1, 6)), "alpha": 0.5, "beta": float(rng.uniform(0.3, 1.5)), "bias": 1.5}
    return Case({"x": floats(rng, extents(rng, 3, 3))}, attrs)


def topk_f32(rng: Rng) -> Case:
    b, d = int(rng.integers(1, 7)), int(rng.integers(1, 20))
    x = rng.integers(-5, 6, (b, d)).astype(np.float32)  # many equal values
    return Case({"x": x}, {"count": int(rng.integers(1, d + 1)), "largest": int(rng.integers(0, 2))})


def requantize_i8(rng: Rng) -> Case:
    attrs = scaling(rng.uniform(0.1, 4.0)) | {"x_zero": zero(rng), "y_zero": zero(rng)}
    return Case({"x": bytes_(rng, extents(rng))}, attrs | clamp(rng, True))


def scale_shift_f32(rng: Rng) -> Case:
    shape = extents(rng)
    part = channelwise(rng, shape)
    return Case({"x": floats(rng, shape), "scale": floats(rng, part), "bias": floats(rng, part)}, clamp(rng, False))


def scale_shift_i8(rng: Rng) -> Case:
    shape = extents(rng)
    part = channelwise(rng, shape)
    mul = rng.integers(-(2**31) + 1, 2**31, part).astype(np.int32)
    operands = {
        "mul": mul,
        "bias": rng.integers(-(2**37), 2**37, part),
        "shift": rng.integers(30, 33, part).astype(np.uint8),
    }
    return Case({"x": bytes_(rng, shape), **operands}, {"x_zero": zero(rng), "y_zero": zero(rng)} | clamp(rng, True))


def rows_f32(rng: Rng) -> Case:
    return Case({"x": floats(rng, (*extents(rng, 0, 2), int(rng.integers(1, 30))))}, {})


def softmax_i8(rng: Rng) -> Case:
    table = np.rint(2.0**30 * np.exp(-np.arange(256) * rng.uniform(0.01, 0.2))).astype(np.uint32)
    x = bytes_(rng, (*extents(rng, 0, 2), int(rng.integers(1, 30))))
    return Case({"x": x, "table": table}, scaling(256.0) | {"y_zero": -128})


def argmax(dtype: str) -> Callable[[Rng], Case]:
    def draw(rng: Rng) -> Case:
        shape = (*extents(rng, 1, 2), int(rng.integers(1, 20)))
        x = rng.integers(-3, 3, shape).astype(np.float32 if dtype == "f32" else np.int8)  # ties are the point
        return Case({"x": x}, {"minimum": int(rng.integers(0, 2)), "last": int(rng.integers(0, 2))})

    return draw


def where_f32(rng: Rng) -> Case:
    shape = extents(rng)
    return Case(
        {"condition": rng.random(shape) < 0.5, "a": floats(rng, broadcast(rng, shape)), "b": floats(rng, shape)}, {}
    )


INTEGER_TYPES = CAST_TYPES[2:-1]
INTEGER_EXPRESSIONS = [
    "add(x0, x1, -3)", "sub(x0, mul(x1, x0))", "div(x0, x1)", "div(mul(x0, 55), 7)", "mod(x0, x1)", "fmod(x0, x1)",
    "max(x0, neg(x1))", "min(abs(x0), x1)", "mul(sign(x0), x1)", "clip(x0, -5, 9)", "relu(x0)", "bitwiseand(x0, x1)",
    "bitwiseor(x0, bitwisenot(x1))", "bitwisexor(x0, x1)", "shiftleft(x0, x1)", "shiftright(x0, x1)",
    "shiftright(x0, 3)",
]  # fmt: skip
LOGIC = ["equal(x0, x1)", "greater(x0, x1)", "greaterorequal(x0, x1)", "less(x0, x1)", "lessorequal(x0, x1)"]


LOGIC += ["and_(x0, x1)", "or_(x0, not_(x1))", "xor(x0, x1)"]


def map_int(rng: Rng) -> Case:
    logic = rng.random() < 0.4
    expr = str(rng.choice(LOGIC if logic else INTEGER_EXPRESSIONS))
    have = str(rng.choice([*INTEGER_TYPES, "bool"] if logic else INTEGER_TYPES))
    shape = extents(rng)
    operands = {"x0": whole(rng, have, shape)}
    if "x1" in expr:
        operands["x1"] = whole(rng, have, broadcast(rng, shape))
    return Case(operands, {"expr": expr, "have": have, "to": "bool" if logic else have})


def where_any(rng: Rng) -> Case:
    dtype, shape = str(rng.choice([*INTEGER_TYPES, "bool"])), extents(rng)
    a, b = whole(rng, dtype, broadcast(rng, shape)), whole(rng, dtype, shape)
    return Case({"condition": rng.random(shape) < 0.5, "a": a, "b": b}, {})


CASES: Mapping[str, Callable[[Rng], Case]] = {
    "add_f32": binary_f32,
    "sub_f32": binary_f32,
    "mul_f32": binary_f32,
    "div_f32": binary_f32,
    "add_i8": add_i8,
    "mul_i8": mul_i8,
    "argmax_f32": argmax("f32"),
    "argmax_i8": argmax("i8"),
    "cast": cast,
    "copy": copy,
    "expand": expand,
    "flip_sign_u8": lambda rng: Case({"x": bytes_(rng, extents(rng)).view(np.uint8)}, {}),
    "flip_sign_i8": lambda rng: Case({"x": bytes_(rng, extents(rng))}, {}),
    "fill_f32": fill("f32"),
    "fill_i8": fill("i8"),
    "gather": gather,
    "global_avgpool_f32": global_f32,
    "global_avgpool_i8": global_i8,
    "global_maxpool_f32": lambda rng: Case({"x": floats(rng, image(rng))}, {}),
    "global_maxpool_i8": lambda rng: Case({"x": bytes_(rng, image(rng))}, {}),
    "layernorm_f32": layernorm,
    "rmsnorm_f32": rmsnorm,
    "lut_i8": lut_i8,
    "map_f32": map_f32,
    "map_int": map_int,
    "pad_f32": pad("f32"),
    "pad_i8": pad("i8"),
    "pad_mirror": pad_mirror,
    "maxpool_f32": maxpool_f32,
    "maxpool_i8": maxpool_i8,
    "avgpool_f32": avgpool_f32,
    "avgpool_i8": avgpool_i8,
    "prelu_f32": prelu_f32,
    "quantize_linear": quantize_linear("int8"),
    "quantize_linear_i16": quantize_linear("int16"),
    "quantize_linear_u16": quantize_linear("uint16"),
    "dequantize_linear": dequantize_linear("int8"),
    "dequantize_linear_i16": dequantize_linear("int16"),
    "dequantize_linear_u16": dequantize_linear("uint16"),
    "dequantize_linear_i32": dequantize_i32,
    "reduce_f32": reduce_f32,
    "cumsum_f32": cumsum("float32"),
    "cumsum_int": cumsum("int64"),
    "lrn_f32": lrn_f32,
    "topk_f32": topk_f32,
    "gather_elements": gather_elements,
    "scatter_rows": scatter_rows,
    "scatter_rows_f32": scatter_rows_f32,
    "scatter_elements": scatter_elements,
    "requantize_i8": requantize_i8,
    "resize_nearest": resize_nearest,
    "resize_linear_f32": resize_f32,
    "resize_linear_i8": resize_i8,
    "scale_shift_f32": scale_shift_f32,
    "scale_shift_i8": scale_shift_i8,
    "softmax_f32": rows_f32,
    "log_softmax_f32": rows_f32,
    "softmax_i8": softmax_i8,
    "where_any": where_any,
    "where_f32": where_f32,
}
