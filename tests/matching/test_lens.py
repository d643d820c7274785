"""The quantisation lens: integers behind operands and results, biases, inner quantisations, and why entries decline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fusion_engine.covering.types import Candidate, Constant, ValueRef
from fusion_engine.view import View
from tests.matching.given import fired, kernel, kernels_of, reasons, rules_of, run, view_of

KERNELS = kernels_of(
    kernel("linear_f32", {"x": "float32[M, K]", "weight": "const float32[J, K]", "bias": "const float32[J]"},
           "float32[M, J]", {"lo": "float = -inf", "hi": "float = inf"}),
    kernel("linear_i8", {"x": "int8[M, K]", "weight": "const int8[J, K]", "bias": "const int32[J]",
           "mul": "const int32[J]"}, "int8[M, J]", {"x_zero": "int8", "y_zero": "int8", "lo": "int8", "hi": "int8"}),
    kernel("add_i8", {"a": "int8[*A]", "b": "int8[*B]"}, "int8[*Y]", {}, {"*Y": "broadcast(A, B)"}),
    kernel("lut_i8", {"x": "int8[*S]", "table": "const int8[L]"}, "int8[*S]"),
    kernel("map", {"x": "float32[*S]"}, "float32[*S]"),
)  # fmt: skip

LINEAR = """
rule: linear
given: {x: "real[M, K]", w: "const real[J, K]", b: "const real[J] | none"}
match:
  - variant: any
    pattern: |
      c = Gemm(x, w, b | None, transB=1)
      y = act(c) -> lo, hi
    let: {bias: "given(b, zeros([dim(w, 0)]))"}
emit:
  - {kernel: linear_f32, args: {x: x, weight: w, bias: bias}, attrs: {lo: lo, hi: hi}}
  - kernel: linear_i8
    stored: {x: int8, w: int8 symmetric axis 0, b: int32, y: int8}
    inner: {c: same_as(y)}
    args:
      x: stored(x)
      weight: stored(w)
      bias: stored(bias, scale(x) * scale(w))
      mul: repeat(multiplier(scale(x) * scale(w) / scale(y)), dim(w, 0))
    attrs: {x_zero: zero(x), y_zero: zero(y), lo: "quantised(lo, y)", hi: "quantised(hi, y)"}
"""
HEAD = """t (int8[2,4] q, int8[3,4] w, {b}) => ({outputs})
<float sx = {{0.5}}, int8 zx = {{3}}, float sw = {{0.25}}, int8 zw = {{{zw}}}, float sb = {{{sb}}}, int32 zb = {{0}},
 float sy = {{2.0}}, int8 zy = {{-5}}, float sc = {{{sc}}}> {{
  x = DequantizeLinear(q, sx, zx)
  wf = DequantizeLinear(w, sw, zw)
"""
W = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
B = np.array([10, -20, 30], np.int32)


def quantised(body: str, b: str = "int32[3] b", outputs: str = "int8[2,3] y", zw: int = 0, sb: float = 0.125,
              sc: float = 2.0, bias: np.ndarray | None = B) -> View:  # fmt: skip
    text = HEAD.format(b=b, outputs=outputs, zw=zw, sb=sb, sc=sc) + body + "}"
    return view_of(text, w=W, b=B if bias is None else bias)


PLAIN = """bf = DequantizeLinear(b, sb, zb)
  c = Gemm<transB = 1>(x, wf, bf)
  y = QuantizeLinear(c, sy, zy)
"""


def integer(v: View, rule: str = LINEAR) -> Candidate:
    (found,) = [c for c in run(v, rules_of(rule), KERNELS).candidates if c.calls[0].kernel.endswith("_i8")]
    return found


def constant(c: Candidate, name: str) -> np.ndarray:
    operand = dict(c.calls[0].operands)[name]
    assert isinstance(operand, Constant)
    return operand.data


def test_one_rule_serves_float_and_int8() -> None:
    v = quantised(PLAIN)
    result = run(v, rules_of(LINEAR), KERNELS)
    assert fired(result) == ["linear.any/0", "linear.any/1"]
    real, whole = result.candidates
    (q,) = [n for n in v.nodes if n.op == "QuantizeLinear"]
    (x,) = [n for n in v.nodes if n.op == "DequantizeLinear" and n.inputs[0] == "q"]
    assert real.consumes == x.outputs
    assert x.index not in real.nodes
    np.testing.assert_allclose(constant(real, "weight"), W * np.float32(0.25))
    assert whole.consumes == ("q",)
    assert whole.produces == q.outputs
    assert {q.index, x.index} < whole.nodes
    assert dict(whole.calls[0].operands)["x"] == ValueRef("q")
    assert dict(whole.calls[0].attrs) == {"x_zero": 3, "y_zero": -5, "lo": -128, "hi": 127}
    np.testing.assert_array_equal(constant(whole, "weight"), W)
    np.testing.assert_array_equal(constant(whole, "bias"), B)


def test_bias_absent_of_another_scale_and_float() -> None:
    none = integer(quantised("c = Gemm<transB = 1>(x, wf)\n y = QuantizeLinear(c, sy, zy)\n"))
    np.testing.assert_array_equal(constant(none, "bias"), [0, 0, 0])
    other = integer(quantised(PLAIN, sb=0.25))
    np.testing.assert_array_equal(constant(other, "bias"), B * 2)
    body = "c = Gemm<transB = 1>(x, wf, b)\n y = QuantizeLinear(c, sy, zy)\n"
    real = integer(quantised(body, b="float[3] b", bias=np.array([1.25, -2.5, 0.06], np.float32)))
    np.testing.assert_array_equal(constant(real, "bias"), [10, -20, 0])


def test_weight_zero_point() -> None:
    result = run(quantised(PLAIN, zw=1), rules_of(LINEAR), KERNELS)
    assert fired(result) == ["linear.any/0"]
    assert "linear_i8: w zero point is not 0" in reasons(result)


def test_result_that_is_not_quantised() -> None:
    body = PLAIN.replace("y = QuantizeLinear(c, sy, zy)", "y = Tanh(c)")
    result = run(quantised(body, outputs="float[2,3] y"), rules_of(LINEAR), KERNELS)
    assert fired(result) == ["linear.any/0"]
    assert "linear_i8: no int8 storage for y: it is float32" in reasons(result)


def test_real_and_two_quantisations_of_one_result() -> None:
    body = PLAIN + "z = QuantizeLinear(c, sc, zy)\n r = Tanh(c)\n"
    result = run(quantised(body, outputs="int8[2,3] y, int8[2,3] z, float[2,3] r", sc=4.0), rules_of(LINEAR), KERNELS)
    assert [c.produces for c in result.candidates] == [("c",), ("y",), ("z",)]


INNER = """bf = DequantizeLinear(b, sb, zb)
  c = Gemm<transB = 1>(x, wf, bf)
  p = QuantizeLinear(c, sc, zy)
  d = DequantizeLinear(p, sc, zy)
  r = {act}(d)
  y = QuantizeLinear(r, sy, zy)
"""


def test_inner_quantisation_of_equal_scale_is_absorbed() -> None:
    """The clamp commutes with rounding to the same steps; with another scale the sequence is two roundings."""
    v = quantised(INNER.format(act="Relu"))
    same = [c for c in run(v, rules_of(LINEAR), KERNELS).candidates if c.calls[0].kernel == "linear_i8"]
    clamped = [c for c in same if dict(c.calls[0].attrs)["lo"] == -5]
    assert [c.produces for c in clamped] == [("y",)]
    result = run(quantised(INNER.format(act="Relu"), sc=1.0), rules_of(LINEAR), KERNELS)
    assert not [c for c in result.candidates if c.produces == ("y",) and c.calls[0].kernel == "linear_i8"]
    assert "c is quantised inside the match unlike y" in reasons(result)
    assert "linear_f32: c is quantised inside the match" in reasons(result)


def test_inner_quantisation_needs_leave() -> None:
    rule = LINEAR.replace("    inner: {c: same_as(y)}\n", "")
    result = run(quantised(INNER.format(act="Relu"), sc=1.0), rules_of(rule), KERNELS)
    assert not [c for c in result.candidates if c.produces == ("y",)]


SILU = """
rule: silu
given: {x: "real[*S]"}
match:
  - {variant: any, pattern: "y = x * Sigmoid(x)"}
emit:
  - {kernel: map, args: {x: x}}
  - {kernel: lut_i8, stored: {x: int8, y: int8}, args: {x: stored(x), table: 'table_i8("Swish", x, y)'}}
"""


def test_one_capture_through_two_dequantisers() -> None:
    text = """t (int8[4] q, int8[4] p) => (int8[4] y) <float s = {0.5}, int8 z = {3}, float t = {0.25}> {
      a = DequantizeLinear(q, s, z)
      b = DequantizeLinear(%s)
      g = Sigmoid(a)
      m = Mul(b, g)
      y = QuantizeLinear(m, t, z)
    }"""
    v = view_of(text % "q, s, z")
    (c,) = [c for c in run(v, rules_of(SILU), KERNELS).candidates if c.calls[0].kernel == "lut_i8"]
    assert c.consumes == ("q",)
    for other in ("p, s, z", "q, t, z"):
        assert run(view_of(text % other), rules_of(SILU), KERNELS).candidates == ()


ADD = """
rule: add
given: {a: real, b: "BTYPE"}
match:
  - {variant: any, pattern: "y = a + b"}
emit:
  - {kernel: add_i8, stored: {a: int8, b: int8, y: int8}, args: {a: stored(a), b: stored(b)}}
"""
ADD_MODEL = """t (int8[4] q, float[%s] k) => (int8[4] y) <float s = {0.5}, int8 z = {3}> {
  a = DequantizeLinear(q, s, z)
  m = Add(a, k)
  y = QuantizeLinear(m, s, z)
}"""


def test_float_constant_operand_is_quantised_at_compile_time() -> None:
    v = view_of(ADD_MODEL % "4", k=np.array([1.0, -0.5, 0.25, 0.1], np.float32))
    (c,) = run(v, rules_of(ADD.replace("BTYPE", "real")), KERNELS).candidates
    np.testing.assert_array_equal(constant(c, "b"), [127, -64, 32, 13])
    declined = run(v, rules_of(ADD.replace("BTYPE", "const real")), KERNELS)
    assert declined.candidates == ()
    assert "no int8 storage for b: it is float32" in reasons(declined)
    scalar = view_of(ADD_MODEL % "1", k=np.array([0.3], np.float32))
    assert len(run(scalar, rules_of(ADD.replace("BTYPE", "const real")), KERNELS).candidates) == 1


PER_AXIS = """t (int8[2,4] q, int8[3,4] w) => (int8[2,3] y)
<float sx = {0.5}, int8 zx = {3}, float[3] sw = {0.25, 0.5, 1.0}, int8[3] zw = {0, 0, 0}, float sy = {2.0}> {
  x = DequantizeLinear(q, sx, zx)
  wf = DequantizeLinear<axis = AXIS>(w, sw, zw)
  c = Gemm<transB = 1>(x, wf)
  y = QuantizeLinear(c, sy, zx)
}"""


def test_scale_per_axis() -> None:
    c = integer(view_of(PER_AXIS.replace("AXIS", "0"), w=W))
    assert len(set(constant(c, "mul").tolist())) in (1, 3)  # powers of two share the multiplier
    text = PER_AXIS.replace("AXIS", "1").replace("int8[3,4] w", "int8[3,3] w").replace("[2,4] q", "[2,3] q")
    v = view_of(text, w=W[:, :3])
    result = run(v, rules_of(LINEAR), KERNELS)
    assert fired(result) == ["linear.any/0"]
    assert "w is quantised along axis 1, not 0" in reasons(result)


def test_rule_on_the_quantisers_themselves() -> None:
    rule = """
rule: dequantize
given: {x: "int8[*S]", s: "const real"}
match:
  - {variant: any, pattern: "y = DequantizeLinear(x, s, _)", where: ["size(s) == 1"]}
emit:
  - {kernel: dq, args: {x: x}}
"""
    k = kernels_of(kernel("dq", {"x": "int8[*S]"}, "float32[*S]"))
    v = view_of("t (int8[4] q) => (float[4] y) <float s = {0.5}, int8 z = {3}> { y = DequantizeLinear(q, s, z) }")
    assert fired(run(v, rules_of(rule), k)) == ["dequantize.any/0"]


@pytest.mark.parametrize("change", [lambda k: replace(k, dtypes={}), lambda k: k])
def test_kernel_of_another_type(change: Callable[..., object]) -> None:
    k = {name: change(kernel_) for name, kernel_ in KERNELS.items() if name == "linear_f32"}
    result = run(quantised(PLAIN), rules_of(LINEAR), k)  # type: ignore[arg-type]
    assert fired(result) == ["linear.any/0"]
    assert "there is no kernel linear_i8" in reasons(result)
