"""Operands of a pattern: scalars, biases, literals, bounds that are absent, and how they broadcast."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_engine.covering.types import Constant
from tests.matching.given import fired, kernel, kernels_of, reasons, rules_of, run, view_of
from tests.matching.test_structure import GEMM, KERNELS


@pytest.mark.parametrize(
    ("attrs", "fires"), [("", True), (", alpha = 2.0", False), (", beta = 0.5", False), (", alpha = 1.0000001", True)]
)
def test_gemm_alpha_and_beta(attrs: str, fires: bool) -> None:
    model = f"t (float[2,4] x, float[3,4] w, float[3] b) => (float[2,3] y) {{ y = Gemm<transB = 1{attrs}>(x, w, b) }}"
    v = view_of(model, w=np.ones((3, 4), np.float32), b=np.ones(3, np.float32))
    result = run(v, rules_of(GEMM), KERNELS)
    assert bool(result.candidates) == fires


@pytest.mark.parametrize("shape", [(1,), (1, 3), (2, 3), ()])
def test_gemm_bias_of_another_shape(shape: tuple[int, ...]) -> None:
    dims = ",".join(map(str, shape))
    model = f"t (float[2,4] x, float[3,4] w, float[{dims}] b) => (float[2,3] y) {{ y = Gemm<transB = 1>(x, w, b) }}"
    v = view_of(model, w=np.ones((3, 4), np.float32), b=np.ones(shape, np.float32))
    assert run(v, rules_of(GEMM), KERNELS).candidates == ()


MATMUL_ADD = """
rule: matmul_add
given: {x: "real[M, K]", w: "const real[K, J]", b: "const real[J]"}
match:
  - {variant: any, pattern: "y = MatMul(x, w) + b"}
emit:
  - {kernel: linear, args: {x: x, weight: "transpose(w, [1, 0])", bias: b}}
"""


def test_bias_on_either_side() -> None:
    for text in ("Add(m, b)", "Add(b, m)"):
        model = f"t (float[2,4] x, float[4,3] w, float[3] b) => (float[2,3] y) {{ m = MatMul(x, w)\n y = {text} }}"
        v = view_of(model, w=np.arange(12, dtype=np.float32).reshape(4, 3), b=np.ones(3, np.float32))
        result = run(v, rules_of(MATMUL_ADD), KERNELS)
        assert fired(result) == ["matmul_add.any/0"]
        weight = dict(result.candidates[0].calls[0].operands)["weight"]
        assert isinstance(weight, Constant)
        np.testing.assert_array_equal(weight.data, np.arange(12, dtype=np.float32).reshape(4, 3).T)


@pytest.mark.parametrize(
    ("shape", "result"), [((2, 1, 3), (2, 2, 3)), ((1, 1, 3), (1, 2, 3)), ((2, 3), (2, 3)), ((2, 1), (2, 3))]
)
def test_bias_that_broadcasts_the_product_up(shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    b, y = (",".join(map(str, s)) for s in (shape, result))
    model = f"t (float[2,4] x, float[4,3] w, float[{b}] b) => (float[{y}] y) {{ m = MatMul(x, w)\n y = Add(m, b) }}"
    v = view_of(model, w=np.ones((4, 3), np.float32), b=np.ones(shape, np.float32))
    assert run(v, rules_of(MATMUL_ADD), KERNELS).candidates == ()


SCALE = """
rule: halve
given: {x: "real[*S]"}
match:
  - {variant: any, pattern: "y = x * 0.7071067811865476"}
emit:
  - {kernel: scaled, args: {x: x}, attrs: {by: "0.5"}}
"""
HALF = np.float32(0.7071067811865476)


def scaled(constant: np.ndarray, order: str = "x, c", shape: str = "2,3") -> list[str]:
    dims = ",".join(map(str, constant.shape))
    v = view_of(f"t (float[{shape}] x, float[{dims}] c) => (float[{shape}] y) {{ y = Mul({order}) }}", c=constant)
    return fired(run(v, rules_of(SCALE), KERNELS))


def test_literal_in_either_rank_order_and_rounding() -> None:
    assert scaled(np.array(HALF)) == scaled(np.array([HALF])) == scaled(np.array(HALF), "c, x") == ["halve.any/0"]
    near = np.array(HALF)
    for _ in range(4):
        near = np.nextafter(near, np.float32(1))
    assert scaled(near) == ["halve.any/0"]
    assert scaled(np.nextafter(near, np.float32(1))) == []
    assert scaled(np.array(HALF * np.float32(1.001))) == []


def test_literal_that_raises_the_rank() -> None:
    assert scaled(np.full((1, 1), HALF), shape="3") == []
    v = view_of("t (float x, float[1] c) => (float[1] y) { y = Mul(x, c) }", c=np.array([HALF]))
    result = run(v, rules_of(SCALE), KERNELS)
    assert result.candidates == ()
    assert "shape" in reasons(result)


CLIP = """
rule: clip
given: {x: "real[*S]"}
match:
  - {variant: any, pattern: "y = Clip(x, lo = -inf, hi = inf)"}
emit:
  - {kernel: conv_clip, args: {x: x}, attrs: {lo: lo, hi: hi}}
"""


@pytest.mark.parametrize(
    ("call", "lo", "hi"),
    [
        ("Clip(x)", -np.inf, np.inf),
        ("Clip(x, l)", -0.5, np.inf),
        ("Clip(x, , h)", -np.inf, 0.75),
        ("Clip(x, l, h)", -0.5, 0.75),
    ],
)
def test_absent_bounds_have_their_meaning(call: str, lo: float, hi: float) -> None:
    k = kernels_of(kernel("conv_clip", {"x": "T[*S]"}, "T[*S]", {"lo": "float", "hi": "float"}))
    text = f"t (float[3] x, float l, float h) => (float[3] y, float[3] z) {{ y = {call}\n z = Add(l, h) }}"
    v = view_of(text.replace("float[3] z", "float z"), l=np.float32(-0.5), h=np.float32(0.75))
    result = run(v, rules_of(CLIP), k)
    if call == "Clip(x)" and not result.candidates:
        return  # the view may take an empty clamp away
    assert dict(result.candidates[0].calls[0].attrs) == {"lo": lo, "hi": hi}
