"""Calls of middling size on which `cycles` formulas are held against counted instructions: {kernel: calls}."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.call_makers import (
    KernelCall,
    attention,
    avgpool_i8,
    broadcast,
    channels,
    conv,
    depthwise,
    gru,
    indices,
    linear,
    lstm,
    matmul,
    norm,
    of,
    one,
    pointwise,
    pool,
    resize,
    rnn,
    rotary,
    scatter,
    transposed,
    two,
    values,
    where,
)

Makers = list[Callable[[str], KernelCall]]


def _alike(*names: str, calls: Makers) -> dict[str, Makers]:
    return {name: list(calls) for name in names}


CALLS: dict[str, Makers] = {
    **_alike(
        "conv2d_f32",
        "conv2d_i8",
        calls=[
            lambda n: conv(n, 16, 16, 32, 3),
            lambda n: conv(n, 32, 9, 40, 3),
            lambda n: conv(n, 3, 24, 16, 3, strides=(2, 2)),
            lambda n: conv(n, 16, 12, 16, 3, groups=4),
        ],
    ),
    **_alike(
        "depthwise_f32",
        "depthwise_i8",
        calls=[lambda n: depthwise(n, 24, 16), lambda n: depthwise(n, 64, 9, strides=(2, 2))],
    ),
    **_alike(
        "pointwise_f32",
        "pointwise_i8",
        calls=[lambda n: pointwise(n, 32, 12, 48), lambda n: pointwise(n, 128, 5, 72)],
    ),
    **_alike("linear_f32", "linear_i8", calls=[lambda n: linear(n, 1, 640, 128), lambda n: linear(n, 9, 64, 100)]),
    **_alike("matmul_f32", "matmul_i8", calls=[lambda n: matmul(n, 2, 24, 32, 40), lambda n: matmul(n, 4, 9, 64, 16)]),
    **_alike(
        "maxpool_f32",
        "maxpool_i8",
        "avgpool_f32",
        calls=[lambda n: pool(n, 24, 24, 2, 2), lambda n: pool(n, 12, 17, 3, 1)],
    ),
    **_alike(
        "global_maxpool_f32",
        "global_maxpool_i8",
        calls=[lambda n: one(n, 1, 96, 9, 9), lambda n: one(n, 3, 40, 5, 5)],
    ),
    "avgpool_i8": [lambda n: avgpool_i8(n, 24, 24, 2, 2), lambda n: avgpool_i8(n, 12, 17, 3, 1)],
    "global_avgpool_f32": [lambda n: one(n, 1, 96, 9, 9, factor=1 / 81), lambda n: one(n, 3, 40, 5, 5, factor=0.04)],
    "global_avgpool_i8": [
        lambda n: one(n, 1, 96, 9, 9, mul=2**30, shift=36),
        lambda n: one(n, 3, 40, 5, 5, mul=2**30, shift=35),
    ],
    **_alike(
        "conv_transpose_f32",
        "conv_transpose_i8",
        calls=[lambda n: transposed(n, 16, 12, 24), lambda n: transposed(n, 16, 9, 16, groups=4)],
    ),
    **_alike(
        "softmax_f32",
        "log_softmax_f32",
        "argmax_f32",
        "argmax_i8",
        calls=[lambda n: one(n, 30, 64), lambda n: one(n, 5, 9, 20)],
    ),
    "softmax_i8": [
        lambda n, shape=shape: KernelCall(
            {"x": values(n, *shape), "table": of("uint32", 256)}, {"mul": 2**30, "shift": 22}
        )
        for shape in ((30, 64), (5, 9, 20))
    ],
    **_alike(
        "add_f32", "sub_f32", "mul_f32", "div_f32", calls=[lambda n: two(n, 1, 24, 17, 16), lambda n: broadcast(n)]
    ),
    "add_i8": [
        lambda n: two(n, 1, 24, 17, 16, ma=3, mb=5, shift=4),
        lambda n: broadcast(n, ma=3, mb=5, shift=4),
    ],
    "mul_i8": [
        lambda n: two(n, 1, 24, 17, 16, mul=2**30, shift=36),
        lambda n: broadcast(n, mul=2**30, shift=36),
    ],
    "reduce_f32": [lambda n: one(n, 30, 64, op="mean"), lambda n: one(n, 5, 9, 20, op="sum")],
    "cast": [
        lambda _: KernelCall({"x": of("float32", 24, 17, 16)}, {"have": "float32", "to": "int8"}, {"y": "int8"}),
        lambda _: KernelCall({"x": of("int32", 40, 30)}, {"have": "int32", "to": "float32"}, {"y": "float32"}),
    ],
    "copy": [
        lambda _: KernelCall({"x": of("int8", 24, 17, 16)}, {}, orders={"x": (1, 2, 0)}),
        lambda _: KernelCall({"x": of("float32", 9, 30, 20)}, {}, orders={"x": (2, 0, 1)}),
    ],
    "expand": [
        lambda _: KernelCall({"x": of("float32", 24, 1, 16)}, {"shape": (24, 17, 16)}),
        lambda _: KernelCall({"x": of("int8", 1, 40, 30)}, {"shape": (4, 40, 30)}),
    ],
    "flip_sign_u8": [lambda _, s=s: KernelCall({"x": of("uint8", *s)}, {}) for s in ((24, 17, 16), (40, 31))],
    "flip_sign_i8": [lambda _, s=s: KernelCall({"x": of("int8", *s)}, {}) for s in ((24, 17, 16), (40, 31))],
    "lut_i8": [
        lambda _, s=s: KernelCall({"x": of("int8", *s), "table": of("int8", 256)}, {}) for s in ((24, 17, 16), (40, 31))
    ],
    "requantize_i8": [lambda n, s=s: one(n, *s, mul=2**30, shift=31) for s in ((24, 17, 16), (40, 31))],
    "cumsum_f32": [lambda n: one(n, 5, 24, 17), lambda n: one(n, 9, 30, 4)],
    "cumsum_int": [lambda _, s=s: KernelCall({"x": of("int32", *s)}, {}) for s in ((5, 24, 17), (9, 30, 4))],
    "gather": [
        lambda _: KernelCall({"x": of("float32", 3, 30, 40), "indices": indices(30, 25)}, {}),
        lambda _: KernelCall({"x": of("int8", 9, 20, 7), "indices": indices(20, 40)}, {}),
    ],
    "gather_elements": [
        lambda _, s=s: KernelCall({"x": of("float32", *s), "indices": indices(s[1], *s)}, {})
        for s in ((3, 30, 40), (9, 20, 7))
    ],
    "lrn_f32": [lambda n: one(n, 2, 24, 90, size=5), lambda n: one(n, 5, 12, 40, size=3)],
    "map_int": [
        lambda _, s=s: KernelCall(
            {"x0": of("int32", *s), "x1": of("int32", *s)},
            {"expr": "add(mul(x0, 3), x1)", "have": "int32", "to": "int32"},
            {"y": "int32"},
        )
        for s in ((24, 17, 16), (40, 31))
    ],
    **{
        name: [lambda _, s=s: KernelCall({}, {"shape": s}) for s in ((24, 17, 16), (40, 31))]
        for name in ("fill_f32", "fill_i8")
    },
    "pad_f32": [lambda n: one(n, 1, 12, 17, 16, pads=(0, 0, 1, 1, 0, 0, 1, 1))],
    "pad_i8": [lambda n: one(n, 1, 12, 17, 16, pads=(0, 0, 1, 1, 0, 0, 1, 1))],
    "pad_mirror": [lambda _: KernelCall({"x": of("float32", 1, 12, 17, 16)}, {"pads": (2, 2, 2, 2), "mode": 1})],
    "prelu_f32": [lambda _: channels("float32", ("slope", "float32"))],
    "scale_shift_f32": [lambda _: channels("float32", ("scale", "float32"), ("bias", "float32"))],
    "scale_shift_i8": [lambda _: channels("int8", ("mul", "int32"), ("bias", "int64"), ("shift", "uint8"))],
    **{
        f"{way}_linear{suffix}": [
            lambda _, t=t, given=given: channels(given or t, ("scale", "float32"), ("zero", t)),
        ]
        for suffix, t in (("", "int8"), ("_i16", "int16"), ("_u16", "uint16"))
        for way, given in (("quantize", "float32"), ("dequantize", ""))
    },
    "dequantize_linear_i32": [lambda _: channels("int32", ("scale", "float32"))],
    "resize_nearest": [lambda n: resize(n, 16, 9), lambda n: resize(n, 5, 12)],
    "resize_linear_f32": [lambda n: resize(n, 16, 9), lambda n: resize(n, 5, 12)],
    "resize_linear_i8": [
        lambda n: resize(n, 16, 9, mul=2**30, shift=45),
        lambda n: resize(n, 5, 12, mul=2**30, shift=45),
    ],
    "rotary_f32": [lambda n: rotary(n, 4, 17, 32), lambda n: rotary(n, 2, 40, 16)],
    **_alike("scatter_rows", "scatter_rows_f32", calls=[lambda _: scatter(40, 30, 12), lambda _: scatter(90, 9, 5)]),
    "scatter_elements": [
        lambda _: KernelCall(
            {"x": of("float32", 5, 30, 16), "indices": indices(30, 5, 7, 16), "updates": of("float32", 5, 7, 16)},
            {"extent": 30},
        )
    ],
    "topk_f32": [lambda n: one(n, 30, 64, count=5), lambda n: one(n, 9, 200, count=3)],
    "where_f32": [lambda _: where("float32", 24, 17, 16), lambda _: where("float32", 24, 1, 1)],
    "where_any": [lambda _: where("int32", 24, 17, 16), lambda _: where("int32", 24, 1, 1)],
    "map_f32": [
        lambda n: KernelCall({"x0": values(n, 24, 17, 16)}, {"expr": "mul(sigmoid(x0), x0)"}),
    ],
    "layernorm_f32": [lambda n: norm(n, 30, 64), lambda n: norm(n, 6, 200)],
    "rmsnorm_f32": [lambda n: norm(n, 30, 64)],
    "groupnorm_f32": [lambda n: one(n, 1, 12, 4, 80)],
    "gru_f32": [lambda n: gru(n, 6, 1, 64), lambda n: gru(n, 4, 9, 32)],
    "lstm_f32": [lambda n: lstm(n, 6, 1, 64), lambda n: lstm(n, 4, 9, 32)],
    "rnn_f32": [lambda n: rnn(n, 6, 1, 64), lambda n: rnn(n, 4, 9, 32)],
    "attention_f32": [lambda n: attention(n, 2, 24, 32)],
}
