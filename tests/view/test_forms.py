"""Old interfaces become the newest, and every meaning has one spelling."""

# ruff: noqa: E501 - graphs in one line each

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from fusion_engine.view import View
from tests.view.oracle import check, invariants, ops


def model(text: str, opset: int) -> object:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')


def ints(seen: View, node: int, operand: int) -> list[int]:
    value = seen.const(seen.nodes[node].inputs[operand])
    assert value is not None
    return [int(v) for v in value.ravel()]


OLD = {  # operator set, graph, operators of the view
    "reduce mean": (
        11,
        "g (float[2,3,4] x) => (float[2,3] y) { y = ReduceMean<axes=[-1], keepdims=0>(x) }",
        ["ReduceMean"],
    ),
    "reduce sum of all": (11, "g (float[2,3] x) => (float[1,1] y) { y = ReduceSum(x) }", ["ReduceSum"]),
    "clip": (10, "g (float[9] x) => (float[9] y) { y = Clip<min=-0.5, max=0.75>(x) }", ["Clip"]),
    "pad": (10, "g (float[2,3] x) => (float[5,4] y) { y = Pad<pads=[1,0,2,1], value=2.0>(x) }", ["Pad"]),
    "pad reflect": (10, 'g (float[4,3] x) => (float[6,4] y) { y = Pad<pads=[1,0,1,1], mode="reflect">(x) }', ["Pad"]),
    "slice": (
        9,
        "g (float[5,6] x) => (float[2,3] y) { y = Slice<starts=[1,-4], ends=[3,-1], axes=[0,1]>(x) }",
        ["Slice"],
    ),
    "split": (11, "g (float[6] x) => (float[2] a, float[4] b) { a, b = Split<split=[2,4]>(x) }", ["Split"]),
    "split equally": (11, "g (float[6] x) => (float[3] a, float[3] b) { a, b = Split(x) }", ["Split"]),
    "squeeze": (11, "g (float[1,3,1] x) => (float[3,1] y) { y = Squeeze<axes=[0]>(x) }", ["Squeeze"]),
    "unsqueeze": (11, "g (float[3] x) => (float[1,3,1] y) { y = Unsqueeze<axes=[0,2]>(x) }", ["Unsqueeze"]),
    "top k": (9, "g (float[2,5] x) => (float[2,3] y, int64[2,3] i) { y, i = TopK<k=3>(x) }", ["TopK"]),
    "upsample": (
        8,
        'g (float[1,1,2,3] x) => (float[1,1,4,9] y) { y = Upsample<scales=[1.,1.,2.,3.], mode="nearest">(x) }',
        ["Resize"],
    ),
    "upsample linear": (
        8,
        'g (float[1,1,2,3] x) => (float[1,1,4,9] y) { y = Upsample<scales=[1.,1.,2.,3.], mode="linear">(x) }',
        ["Resize"],
    ),
    "resize up": (
        10,
        'g (float[1,1,3,3] x) => (float[1,1,7,6] y) <float[4] s = {1,1,2.5,2}> { y = Resize<mode="nearest">(x, s) }',
        ["Resize"],
    ),
    "resize down": (
        10,
        'g (float[1,1,8,9] x) => (float[1,1,5,3] y) <float[4] s = {1,1,0.7,0.4}> { y = Resize<mode="nearest">(x, s) }',
        ["Resize"],
    ),
    "softmax last axis": (11, "g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=1>(x) }", ["Softmax"]),
    "softmax default axis": (
        11,
        "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }",
        ["Flatten", "Softmax", "Reshape"],
    ),
    "softmax trailing ones": (11, "g (float[2,3,1,1] x) => (float[2,3,1,1] y) { y = Softmax(x) }", ["Softmax"]),
    "log softmax": (
        11,
        "g (float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax<axis=-2>(x) }",
        ["Flatten", "LogSoftmax", "Reshape"],
    ),
    "hardmax": (11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax(x) }", ["Flatten", "Hardmax", "Reshape"]),
    "dropout": (10, "g (float[4] x) => (float[4] y) { a = Dropout<ratio=0.5>(x) y = Neg(a) }", ["Neg"]),
    "scatter": (
        10,
        "g (float[3,3] x, int64[1,3] i) => (float[3,3] y) <float[1,3] u = {1,2,3}> { y = Scatter(x, i, u) }",
        ["ScatterElements"],
    ),
    "gemm": (
        9,
        "g (float[2,3] x) => (float[2,2] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] c = {1,2}> { y = Gemm<alpha=0.5>(x, w, c) }",
        ["Gemm"],
    ),
    "batch norm": (
        9,
        "g (float[1,2,3,3] x) => (float[1,2,3,3] y) <float[2] s = {1,2}, float[2] b = {0,1}, float[2] m = {1,1}, float[2] v = {1,2}> { y = BatchNormalization(x, s, b, m, v) }",
        ["BatchNormalization"],
    ),
    "batch norm, some momentum": (
        15,
        "g (float[1,2,3,3] x) => (float[1,2,3,3] y) <float[2] s = {1,2}, float[2] b = {0,1}, float[2] m = {1,1}, float[2] v = {1,2}> { y = BatchNormalization<momentum = 0.99>(x, s, b, m, v) }",
        ["BatchNormalization"],
    ),
    "cast": (7, "g (float[4] x) => (int32[4] y) { y = Cast<to=6>(x) }", ["Cast"]),
    "cast like": (17, "g (float[4] x, int32[1] l) => (int32[4] y) { y = CastLike(x, l) }", ["Cast"]),
    "shape chain": (
        17,
        "g (float[2,3,4] x) => (float[6,4] y) <int64[1] m = {-1}> { s = Shape<start=2>(x) t = Concat<axis=0>(m, s) y = Reshape(x, t) }",
        ["Reshape"],
    ),
    "expand": (13, "g (float[3,1] x) => (float[2,3,4] y) <int64[3] s = {2,1,4}> { y = Expand(x, s) }", ["Expand"]),
    "pool same lower": (
        11,
        'g (float[1,1,5,6] x) => (float[1,1,3,3] y) { y = MaxPool<kernel_shape=[3,3], strides=[2,2], auto_pad="SAME_LOWER">(x) }',
        ["MaxPool"],
    ),
    "average same upper": (
        11,
        'g (float[1,1,6,6] x) => (float[1,1,3,3] y) { y = AveragePool<kernel_shape=[3,3], strides=[2,2], auto_pad="SAME_UPPER">(x) }',
        ["AveragePool"],
    ),
    "pool ceil": (
        10,
        "g (float[1,1,6,7] x) => (float[1,1,3,3] y) { y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(x) }",
        ["MaxPool"],
    ),
    "transposes that cancel": (
        13,
        "g (float[2,3,4] x) => (float[2,3,4] y) { a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[2,0,1]>(a) y = Neg(b) }",
        ["Neg"],
    ),
    "reshapes that cancel": (
        13,
        "g (float[2,6] x) => (float[2,6] y) <int64[2] s = {3,4}, int64[2] t = {2,-1}> { a = Reshape(x, s) b = Reshape(a, t) y = Neg(b) }",
        ["Neg"],
    ),
    "no-ops": (
        13,
        "g (float[2,6] x) => (float[2,6] y) <int64[2] s = {0,-1}> { a = Cast<to=1>(x) b = Identity(a) c = Reshape(b, s) d = Transpose<perm=[0,1]>(c) e = Flatten(d) y = Neg(e) }",
        ["Neg"],
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_same_results_in_the_newest_form(name: str) -> None:
    opset, text, expected = OLD[name]
    given = {"x": np.random.default_rng(3).standard_normal((3, 3)).astype(np.float32), "i": np.array([[2, 0, 1]])}
    seen = check(model(text, opset), inputs=given if name == "scatter" else None)
    assert ops(seen) == expected
    invariants(seen)


def test_axes_are_non_negative_operands() -> None:
    seen = check(model(OLD["reduce mean"][1], 11))
    assert ints(seen, 0, 1) == [2]
    assert seen.nodes[0].attrs["keepdims"] == 0
    assert ints(check(model(OLD["reduce sum of all"][1], 11)), 0, 1) == [0, 1]


def test_clip_bounds_are_operands_and_absent_where_they_bound_nothing() -> None:
    both = check(model(OLD["clip"][1], 10)).nodes[0]
    assert None not in both.inputs
    relu6 = check(model("g (float[9] x) => (float[9] y) { y = Clip<max=6.0>(x) }", 10)).nodes[0]
    assert relu6.inputs[1] is None
    assert relu6.inputs[2] is not None


CONV = """g (float[1,4,9,8] x) => (float[1,6,5,4] y) {{
  w = Constant<value = float[6,2,3,3] {{{}}}>()
  y = Conv<group=2, strides=[2,2], auto_pad="{}">(x, w) }}"""


@pytest.mark.parametrize(("mode", "pads"), [("SAME_UPPER", (1, 0, 1, 1)), ("SAME_LOWER", (1, 1, 1, 0))])
def test_auto_pad_becomes_numbers(mode: str, pads: tuple[int, ...]) -> None:
    weights = ",".join(str(i % 7 - 3) for i in range(108))
    node = check(model(CONV.format(weights, mode), 11)).nodes[0]
    assert node.attrs["pads"] == pads
    assert node.attrs["auto_pad"] == "NOTSET"
    assert node.attrs["kernel_shape"] == (3, 3)
    assert node.attrs["dilations"] == (1, 1)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
def test_transposed_convolution_padding_becomes_numbers(mode: str) -> None:
    weights = ",".join(str(i % 5 - 2) for i in range(2 * 3 * 9))
    text = f"""g (float[1,2,4,5] x) => (float[1,3,"h","w"] y) {{
      w = Constant<value = float[2,3,3,3] {{{weights}}}>()
      y = ConvTranspose<strides=[2,2], auto_pad="{mode}">(x, w) }}"""
    node = check(model(text.replace('"h","w"', "h,w"), 11)).nodes[0]
    assert node.attrs["auto_pad"] == "NOTSET"
    assert len(node.attrs["pads"]) == 4  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(7, 9), (8, 10), (9, 12)])
def test_transposed_convolution_output_shape_becomes_padding(shape: tuple[int, int]) -> None:
    weights = ",".join(str(i % 5 - 2) for i in range(2 * 3 * 9))
    text = f"""g (float[1,2,4,5] x) => (float[1,3,{shape[0]},{shape[1]}] y) {{
      w = Constant<value = float[2,3,3,3] {{{weights}}}>()
      y = ConvTranspose<strides=[2,2], output_shape=[{shape[0]},{shape[1]}]>(x, w) }}"""
    assert check(model(text, 11)).nodes[0].attrs["output_shape"] is None


def test_every_attribute_of_the_schema_is_there() -> None:
    attrs = check(model("g (float[2,3] x) => (float[2,3] y) { y = LeakyRelu(x) }", 13)).nodes[0].attrs
    assert attrs["alpha"] == pytest.approx(0.01)
