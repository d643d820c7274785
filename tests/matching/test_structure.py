"""What a pattern takes and leaves: users, outputs, attributes, norms in every spelling, classes, several results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fusion_engine.covering.types import ValueRef
from fusion_engine.matching import explain_node
from tests.matching.given import fired, kernel, kernels_of, reasons, rules_of, run, view_of

KERNELS = kernels_of(
    kernel("conv", {"x": "T[N, C, H, W]", "weight": "const T[K, CG, R, S]", "bias": "const T[K] | none"},
           "T[N, K, P, Q]", {"groups": "int = 1", "lo": "float = -inf", "hi": "float = inf"},
           {"P": "H - R + 1", "Q": "W - S + 1"}),
    kernel("map", {"x": "T[*S]"}, "T[*S]", {"op": "str"}),
    kernel("linear", {"x": "T[M, K]", "weight": "const T[J, K]", "bias": "const T[J]"}, "T[M, J]"),
    kernel("norm", {"x": "T[*S, D]", "scale": "const T[D]", "bias": "const T[D]"}, "T[*S, D]", {"eps": "float"}),
    kernel("scaled", {"x": "T[*S]"}, "T[*S]", {"by": "float"}),
)  # fmt: skip
CONV = """
rule: conv
given: {x: "real[N, C, H, W]", w: "const real[K, C / group, R, S]", b: "const real[K] | none"}
match:
  - variant: plain
    pattern: |
      c = Conv(x, w, b | None, group=group)
      y = act(c) -> lo, hi
emit:
  - {kernel: conv, args: {x: x, weight: w, bias: b}, attrs: {groups: group, lo: lo, hi: hi}}
"""
CONV_MODEL = """t (float[1,2,5,5] x, float[3,2,3,3] w) => (float[1,3,3,3] y{outputs}) {{
  c = Conv(x, w)
  y = Relu(c)
  {rest}
}}"""
W = np.ones((3, 2, 3, 3), np.float32)


def conv_model(outputs: str = "", rest: str = "") -> str:
    return CONV_MODEL.format(outputs=outputs, rest=rest)


def test_fires_with_and_without_the_activation() -> None:
    result = run(view_of(conv_model(), w=W), rules_of(CONV), KERNELS)
    assert [(c.produces, sorted(c.nodes)) for c in result.candidates] == [(("c",), [0]), (("y",), [0, 1])]
    whole = result.candidates[1]
    assert whole.consumes == ("x",)
    assert dict(whole.calls[0].attrs) == {"groups": 1, "lo": 0.0, "hi": float("inf")}
    assert [n for n, _ in whole.calls[0].operands] == ["x", "weight"]
    assert whole.evidence == "structure"
    assert result.candidates[0].evidence == "operator"


def test_inner_graph_output_declines() -> None:
    result = run(view_of(conv_model(", float[1,3,3,3] c"), w=W), rules_of(CONV), KERNELS)
    assert [c.produces for c in result.candidates] == [("c",)]
    assert "c has another user: it is a graph output" in reasons(result)


def test_inner_user_declines_and_shared_allows() -> None:
    model = conv_model(", float[1,3,3,3] z", " z = Tanh(c)")
    result = run(view_of(model, w=W), rules_of(CONV), KERNELS)
    assert [c.produces for c in result.candidates] == [("c",)]
    assert "c has another user: Tanh" in reasons(result)
    shared = CONV.replace("  - variant: plain", "  - variant: plain\n    shared: [c]")
    assert ("y",) in [c.produces for c in run(view_of(model, w=W), rules_of(shared), KERNELS).candidates]


def test_weight_that_is_no_constant() -> None:
    result = run(view_of(conv_model()), rules_of(CONV), KERNELS)
    assert fired(result) == []
    assert "w is not constant" in reasons(result)


def test_groups_enter_the_sizes() -> None:
    model = "t (float[1,4,5,5] x, float[6,2,3,3] w) => (float[1,6,3,3] y) { y = Conv<group = 2>(x, w) }"
    result = run(view_of(model, w=np.ones((6, 2, 3, 3), np.float32)), rules_of(CONV), KERNELS)
    assert dict(result.candidates[0].calls[0].attrs)["groups"] == 2


def test_attributes_left_unsaid_must_be_the_default() -> None:
    model = "t (float[1,2,9,9] x, float[3,2,3,3] w) => (float[1,3,5,5] y) { y = Conv<dilations = [2, 2]>(x, w) }"
    result = run(view_of(model, w=W), rules_of(CONV), KERNELS)
    assert fired(result) == []
    assert "dilations is [2, 2], which the pattern does not mention" in reasons(result)


GEMM = """
rule: gemm
given: {x: "real[M, K]", w: "const real[J, K]", b: "const real[J]"}
match:
  - {variant: any, pattern: "y = Gemm(x, w, b, transB=1)"}
emit:
  - {kernel: linear, args: {x: x, weight: w, bias: b}}
"""


NORM = """
rule: norm
given: {x: "real[*S, D]", scale: "const real[D]", bias: "const real[D] | none"}
match:
  - variant: centred
    shared: all
    pattern: |
      d = x - ReduceMean(x, [-1], keepdims=1)
      v = ReduceMean(square(d), [-1], keepdims=1)
      n = over_root(d, v + eps)
      y = n * scale + bias | n * scale
emit:
  - {kernel: norm, args: {x: x, scale: scale, bias: "given(bias, zeros(shape(scale)))"}, attrs: {eps: eps}}
"""
NORM_MODEL = """t (float[2,3,4] x, float[4] g, float[4] h) => (float[2,3,4] y)
<int64[1] a = {AXIS}, float e = {0.00001}, float two = {2.0}> {
  m = ReduceMean<keepdims = 1>(x, a)
  d = Sub(x, m)
  q = SQUARE
  v = ReduceMean<keepdims = 1>(q, a)
  w = Add(v, e)
  r = Sqrt(w)
  n = Div(d, r)
  s = Mul(SCALED)
  y = Add(s, h)
}"""
G, H = np.ones(4, np.float32), np.zeros(4, np.float32)


def norm_of(axis: str = "-1", square: str = "Pow(d, two)", scaled_by: str = "n, g", g: np.ndarray = G) -> list[str]:
    text = NORM_MODEL.replace("AXIS", axis).replace("SQUARE", square).replace("SCALED", scaled_by)
    dims = ",".join(map(str, g.shape))
    return fired(run(view_of(text.replace("float[4] g", f"float[{dims}] g"), g=g, h=H), rules_of(NORM), KERNELS))


def test_norm_in_every_spelling() -> None:
    both = ["norm.centred/0", "norm.centred/0"]  # with and without the bias
    assert norm_of() == norm_of("2") == norm_of(square="Mul(d, d)") == norm_of(scaled_by="g, n") == both


def test_norm_near_misses() -> None:
    assert norm_of("1") == []
    assert norm_of(square="Mul(d, x)") == []
    assert norm_of(square="Mul(d, m)") == []
    assert (
        norm_of(g=np.ones((3, 1), np.float32))
        == norm_of(g=np.ones((1, 4), np.float32))
        == norm_of(g=np.ones(1, np.float32))
        == []
    )


def test_two_norms_of_one_value_share_the_mean() -> None:
    text = NORM_MODEL.replace("AXIS", "-1").replace("SQUARE", "Mul(d, d)").replace("SCALED", "n, g")
    text = text.replace("(float[2,3,4] y)", "(float[2,3,4] y, float[2,3,4] z)").replace(
        "y = Add(s, h)", "y = Add(s, h)\n t = Mul(n, h)\n z = Add(t, g)"
    )
    result = run(view_of(text, g=G, h=G * 2), rules_of(NORM), KERNELS)
    assert {c.produces for c in result.candidates} >= {("y",), ("z",)}


UNARY = """
rule: unary
given: {x: "real[*S]"}
match:
  - {variant: any, pattern: "y = unary[op](x)"}
emit:
  - {kernel: map, args: {x: x}, attrs: {op: op}}
"""


def test_class_captures_the_operator() -> None:
    v = view_of("t (float[3] x) => (float[3] y) { a = Sigmoid(x)\n b = Exp(a)\n y = Relu(b) }")
    result = run(v, rules_of(UNARY), KERNELS)
    assert [dict(c.calls[0].attrs)["op"] for c in result.candidates] == ["Sigmoid", "Exp"]


def test_element_type_no_kernel_has() -> None:
    v = view_of("t (float16[3] x) => (float16[3] y) { y = Sigmoid(x) }")
    result = run(v, rules_of(UNARY), KERNELS)
    assert result.candidates == ()
    assert "float16" in reasons(result)


def test_one_pattern_node_is_one_graph_node() -> None:
    """A failed alternative must not leave its bindings behind."""
    rule = """
rule: twice
given: {x: "real[*S]"}
match:
  - variant: any
    pattern: |
      s = Sigmoid(x)
      y = (s * Tanh(s)) + Exp(s) | (s * Exp(s)) + Tanh(s)
emit:
  - {kernel: map, args: {x: x}, attrs: {op: '"twice"'}}
"""
    text = """t (float[3] x, float[3] z) => (float[3] y) {{
      s = Sigmoid(x)
      r = Sigmoid(z)
      t = Tanh({0})
      e = Exp(s)
      m = Mul(s, e)
      y = Add(t, m)
    }}"""
    good = run(view_of(text.format("s")), rules_of(rule), KERNELS)
    bad = run(view_of(text.format("r")), rules_of(rule), KERNELS)
    assert [len(c.nodes) for c in good.candidates] == [5]
    assert bad.candidates == ()


def test_conditions_are_three_valued() -> None:
    rule = UNARY.replace('y = unary[op](x)"}', 'y = unary[op](x)", where: ["dim(x, 0) == 3"]}')
    v = view_of("t (float[3] x) => (float[3] y) { y = Sigmoid(x) }")
    assert fired(run(v, rules_of(rule), KERNELS)) == ["unary.any/0"]
    other = run(view_of("t (float[4] x) => (float[4] y) { y = Sigmoid(x) }"), rules_of(rule), KERNELS)
    assert "`dim(x, 0) == 3` does not hold" in reasons(other)
    rule = rule.replace("dim(x, 0) == 3", "x > 3")
    assert "x is not constant" in reasons(run(v, rules_of(rule), KERNELS))


def test_several_results_share_a_value() -> None:
    rule = """
rule: pair
given: {x: "real[*S]"}
match:
  - variant: any
    shared: [s]
    pattern: |
      s = Sigmoid(x)
      y = Tanh(s)
      z = Exp(s)
emit:
  - {kernel: two, args: {x: x}, results: {y: y, z: z}}
"""
    k = kernels_of(kernel("two", {"x": "T[*S]"}, "", outputs={"y": "T[*S]", "z": "T[*S]"}))
    v = view_of("t (float[3] x) => (float[3] a, float[3] b) { s = Sigmoid(x)\n a = Tanh(s)\n b = Exp(s) }")
    result = run(v, rules_of(rule), k)
    assert [(c.produces, len(c.nodes)) for c in result.candidates] == [(("a", "b"), 3)]
    v = view_of("t (float[3] x) => (float[3] a, float[3] b) { s = Sigmoid(x)\n a = Tanh(s)\n b = Exp(x) }")
    assert run(v, rules_of(rule), k).candidates == ()


def test_temporaries_are_named_by_the_result() -> None:
    rule = """
rule: sequence
given: {x: "real[*S]"}
match:
  - {variant: any, pattern: "y = Sigmoid(Tanh(x))"}
emit:
  - calls:
      - {kernel: map, args: {x: x}, attrs: {op: '"Tanh"'}, results: {y: t}}
      - {kernel: map, args: {x: t}, attrs: {op: '"Sigmoid"'}}
"""
    v = view_of("t (float[3] x) => (float[3] y) { a = Tanh(x)\n y = Sigmoid(a) }")
    (c,) = run(v, rules_of(rule), KERNELS).candidates
    assert [t.name for t in c.temporaries] == ["y/t"]
    assert c.temporaries[0].shape == (3,)
    assert c.calls[1].operands == (("x", ValueRef("y/t")),)
    assert c.consumes == ("x",)


def test_types_of_temporaries_that_the_kernel_does_not_tell() -> None:
    """A cast's result has a type of its own; a reshape's a shape of its own."""
    rule = """
rule: sequence
given: {x: "real[N, C]"}
match:
  - {variant: any, pattern: "y = Sigmoid(Flatten(Tanh(x), axis=0))"}
emit:
  - calls:
      - {kernel: convert, args: {x: x}, results: {y: int8 t}}
      - {kernel: flat, args: {x: t}, results: {y: "[1, N * C] u"}}
      - {kernel: convert, args: {x: u}}
"""
    k = kernels_of(
        replace(
            kernel("convert", {"x": "T[*S]"}, "U[*S]"), dtypes={"T": ("float32", "int8"), "U": ("float32", "int8")}
        ),
        kernel("flat", {"x": "T[*S]"}, "T[P, Q]", sizes={"P": "given", "Q": "given"}),
    )
    v = view_of("t (float[2,3] x) => (float[1,6] y) { a = Tanh(x)\n b = Flatten<axis = 0>(a)\n y = Sigmoid(b) }")
    (c,) = run(v, rules_of(rule), k).candidates
    assert [(t.name, t.dtype, t.shape) for t in c.temporaries] == [("y/t", "int8", (2, 3)), ("y/u", "int8", (1, 6))]
    missing = run(v, rules_of(rule.replace("int8 t", "bool t")), k)
    assert "convert takes y as float32 or int8, not bool" in reasons(missing)


def test_nearest_declines_of_a_node() -> None:
    model = (
        "t (float[2,4] x, float[3,4] w, float[3] b) => (float[2,3] y) { y = Gemm<transB = 1, alpha = 2.0>(x, w, b) }"
    )
    v = view_of(model, w=np.ones((3, 4), np.float32), b=np.ones(3, np.float32))
    node = next(n for n in v.nodes if n.op == "Gemm")
    declines = explain_node(v, rules_of(GEMM, CONV), KERNELS, node.index)
    assert [d.rule for d in declines] == ["gemm"]
    assert "alpha is 2" in declines[0].reason
