"""Wrong fusions seen in the wild, one named test each: a small model that some other tool gets wrong.

Each is fused by the whole library and compared with onnxruntime; where a rule must have declined, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import onnx
import onnx.parser
import pytest

from fusion_engine import GapFuseError, match, plan, read_model, view
from tests.networks.proving import planned_of, prove
from tests.rules import running


def model_of(text: str, *constants: str, opset: int = 17) -> onnx.ModelProto:
    """`constants` are the inputs that become initializers with drawn values (variances positive)."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    rng = np.random.default_rng(5)
    for name in constants:
        found = next(i for i in model.graph.input if i.name == name)
        value = rng.uniform(0.2, 1.5, [d.dim_value for d in found.type.tensor_type.shape.dim])
        sign = 1 if name.startswith("var") else np.where(rng.random(value.shape) < 0.5, -1, 1)
        model.graph.initializer.append(onnx.numpy_helper.from_array((value * sign).astype(np.float32), name))
        model.graph.input.remove(found)
    return model


def checked(model: onnx.ModelProto, spread: float = 2.0) -> list[str]:
    """Fused equals model, calls equal their nodes; the kernels in order."""
    feeds = running.draw_inputs(model, np.random.default_rng(1))
    prove(model, {n: v * np.float32(spread) if v.dtype == np.float32 else v for n, v in feeds.items()})
    return [c.kernel for c in planned_of(model)[1].calls]


def reasons(model: onnx.ModelProto, rule: str) -> str:
    """Why this rule declined, anywhere."""
    seen = view(read_model(model))
    found = match(seen, running.only(rule), running.kernels(), explain=True)
    return "\n".join(f"{d.variant}: {d.reason}" for d in found.declines)


# ---- values inside a match that others want ----

CONV_RELU = "t (float[1,2,5,5] x, float[3,2,3,3] w) => ({outputs}) {{ c = Conv(x, w)  y = Relu(c) {more} }}"


def test_inner_value_is_a_graph_output_and_vanishes() -> None:
    model = model_of(CONV_RELU.format(outputs="float[1,3,3,3] y, float[1,3,3,3] c", more=""), "w")
    checked(model)
    assert "c has another user: it is a graph output" in reasons(model, "conv2d")


def test_inner_value_has_another_consumer() -> None:
    text = CONV_RELU.format(outputs="float[1,3,3,3] y, float[1,3,3,3] z", more=" z = Sigmoid(c)")
    model = model_of(text, "w")
    checked(model)
    assert "c has another user" in reasons(model, "conv2d")


def test_graph_gains_outputs() -> None:
    """prove() compares the names of the outputs; a value used twice inside stays inside."""
    text = CONV_RELU.format(outputs="float[1,3,3,3] z", more=" t = Sigmoid(c)  z = Mul(y, t)")
    model = model_of(text, "w")
    checked(model)
    assert planned_of(model)[1].outputs == ("z",)


# ---- scalars and defaults of Gemm ----


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1.0), (1.0, 0.5), (0.5, 0.0), (-1.0, 2.0)])
@pytest.mark.parametrize("bias", ["[3]", "[1,3]", "[1]", "[2,1]", "[2,3]"])
def test_gemm_alpha_beta_ignored(alpha: float, beta: float, bias: str) -> None:
    gemm = f"Gemm<alpha={alpha}, beta={beta}>"
    text = f"t (float[2,4] x, float[4,3] w, float{bias} b) => (float[2,3] y) {{ y = {gemm}(x, w, b) }}"
    checked(model_of(text, "w", "b"))


@pytest.mark.parametrize("attributes", ["transA = 0", "transB = 0", "alpha = 1.0", ""])
def test_absent_attribute_is_its_default(attributes: str) -> None:
    text = f"t (float[2,4] x, float[4,3] w) => (float[2,3] y) {{ y = Gemm<{attributes}>(x, w) }}"
    assert checked(model_of(text.replace("<>", ""), "w")) == ["linear_f32"]


@pytest.mark.parametrize(("alpha", "slope"), [("", 0.01), ("<alpha = 0.3>", 0.3)])
def test_absent_attribute_of_leakyrelu_is_not_another_default(alpha: str, slope: float) -> None:
    model = model_of(f"t (float[4] x) => (float[4] y) {{ y = LeakyRelu{alpha}(x) }}")
    checked(model)
    x = np.array([-1, -2, 3, 0], np.float32)
    assert np.allclose(running.by_onnxruntime(model, {"x": x})[0], np.where(x < 0, slope * x, x))


# ---- broadcasts ----


@pytest.mark.parametrize(
    ("shape", "result"),
    [("[2,3,5,5]", "[2,3,5,5]"), ("[3,5,5]", "[1,3,5,5]"), ("[1,1,5,5]", "[1,3,5,5]"), ("[4,1,3,1,1]", "[4,1,3,5,5]")],
)
def test_a_bias_or_scale_that_broadcasts_the_other_operand_up_or_is_no_bias_per_channel(
    shape: str, result: str
) -> None:
    for op in ("Add", "Mul"):
        text = f"""t (float[1,2,5,5] x, float[3,2,1,1] w, float{shape} b) => (float{result} y)
            {{ c = Conv(x, w)  y = {op}(c, b) }}"""
        model = model_of(text, "w", "b")
        checked(model)
        assert all(d.rule != "conv2d" or d.variant != "bias" for d in planned_of(model)[0].plan.chosen)
    assert "bias:" in reasons(model_of(text.replace("Mul", "Add"), "w", "b"), "conv2d")


@pytest.mark.parametrize("shape", ["[1,3]", "[2,1,3]", "[2,2,3]", "[2,1]", "[1,1]", "[3]"])
def test_a_matmul_bias_that_changes_the_shape(shape: str) -> None:
    rank = max(2, shape.count(",") + 1)
    result = "[2,2,3]" if rank == 3 else "[2,3]"
    checked(
        model_of(
            f"""t (float[2,4] x, float[4,3] w, float{shape} b) => (float{result} y)
            {{ m = MatMul(x, w)  y = Add(m, b) }}""",
            "w",
            "b",
        )
    )


def test_output_rank_changed_by_a_constant_of_shape_1_1() -> None:
    for op in ("Add", "Mul", "Sub", "Div"):
        model = model_of(f"t (float[3] x, float[1,1] b) => (float[1,3] y) {{ r = Relu(x)  y = {op}(r, b) }}", "b")
        checked(model)
    for op in ("Gelu", "Silu"):
        checked(_with_rank_two_scalars(op))


def _with_rank_two_scalars(kind: str) -> onnx.ModelProto:
    """An activation spelled out whose constants have shape [1, 1], on a vector: the result has two axes."""
    if kind == "Gelu":
        body = "s = Div(x, r)  e = Erf(s)  f = Add(e, one)  g = Mul(x, f)  y = Mul(g, half)"
        return onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["" : 17]> t (float[3] x) => (float[1,3] y)
            <float[1,1] r = {{1.4142135}}, float[1,1] one = {{1.0}}, float[1,1] half = {{0.5}}> {{ {body} }}"""
        )
    return onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> t (float[3] x) => (float[1,3] y)
        <float[1,1] one = {1.0}> { s = Sigmoid(x)  t = Mul(s, one)  y = Mul(x, t) }"""
    )


@pytest.mark.parametrize("group", [2, 4])
def test_grouped_convolution_with_an_add_of_1_c_h_w_taken_as_bias(group: int) -> None:
    text = f"""t (float[1,4,5,5] x, float[4,{4 // group},3,3] w, float[1,4,3,3] e) => (float[1,4,3,3] y)
        {{ c = Conv<group = {group}>(x, w)  y = Add(c, e) }}"""
    model = model_of(text, "w", "e")
    checked(model)
    assert not any(d.variant == "bias" for d in planned_of(model)[0].plan.chosen)


# ---- norms ----


def norm(gamma: str, axis: int, eps: str = "", rank: int = 3) -> onnx.ModelProto:
    x = {3: "[2,3,4]", 4: "[2,3,4,4]"}[rank]
    return model_of(
        f"""t (float{x} x, float{gamma} g) => (float{x} y) <float e = {{{eps or "1e-5"}}}>
        {{ m = ReduceMean<axes = [{axis}]>(x)  d = Sub(x, m)  s = Mul(d, d)  v = ReduceMean<axes = [{axis}]>(s)
        w = Add(v, e)  r = Sqrt(w)  n = Div(d, r)  y = Mul(n, g) }}""",
        "g",
    )


@pytest.mark.parametrize("gamma", ["[4]", "[1]", "[3,1]", "[2,1,1]", "[3,4]"])
@pytest.mark.parametrize("axis", [2, -1, 1])
def test_gamma_with_the_wrong_rank_or_axis(gamma: str, axis: int) -> None:
    checked(norm(gamma, axis))


@pytest.mark.parametrize("eps", ["1e-5", "1e-3", "0.5"])
def test_epsilon_is_the_models_not_a_default(eps: str) -> None:
    checked(norm("[4]", -1, eps), 0.01)
    bn = f"""t (float[1,3,4,4] x, float[3] g, float[3] b, float[3] m, float[3] var) => (float[1,3,4,4] y)
        {{ y = BatchNormalization<epsilon = {eps}>(x, g, b, m, var) }}"""
    checked(model_of(bn, "g", "b", "m", "var"))


@pytest.mark.parametrize("op", ["LayerNormalization", "InstanceNormalization", "BatchNormalization"])
def test_absent_epsilon_is_1e_5(op: str) -> None:
    more = ", float[3] m, float[3] var" if op == "BatchNormalization" else ""
    names = ["g", "b", *(["m", "var"] if more else [])]
    text = f"t (float[2,3,3] x, float[3] g, float[3] b{more}) => (float[2,3,3] y) {{ y = {op}(x, {', '.join(names)}) }}"
    checked(model_of(text, *names), 0.003)


def test_two_norms_sharing_a_mean() -> None:
    """After common subexpression elimination both read the same centred value and the same variance."""
    model = model_of(
        """t (float[2,4] x, float[4] g, float[4] h) => (float[2,4] y, float[2,4] z) <float e = {1e-5}>
        { m = ReduceMean<axes = [-1]>(x)  d = Sub(x, m)  s = Mul(d, d)  v = ReduceMean<axes = [-1]>(s)  w = Add(v, e)
        r = Sqrt(w)  n = Div(d, r)  y = Mul(n, g)  z = Mul(n, h) }""",
        "g",
        "h",
    )
    assert checked(model).count("layernorm_f32") >= 1


# ---- activations ----


@pytest.mark.parametrize(("lo", "hi"), [(-0.5, 0.75), (0.25, 2.0), (-2.0, -0.5)])
def test_relu_behind_a_clip_dropped(lo: float, hi: float) -> None:
    for pair in ("c = Clip(x, l, h)  y = Relu(c)", "c = Relu(x)  y = Clip(c, l, h)"):
        text = f"t (float[2,9] x) => (float[2,9] y) <float l = {{{lo}}}, float h = {{{hi}}}> {{ {pair} }}"
        checked(model_of(text))
        conv = text.replace("[2,9] x", "[1,2,4,4] x, float[3,2,1,1] w").replace("(float[2,9] y)", "(float[1,3,4,4] y)")
        conv = conv.replace("{ c", "{ k = Conv(x, w)  c").replace("Clip(x,", "Clip(k,").replace("Relu(x)", "Relu(k)")
        checked(model_of(conv, "w"))


@pytest.mark.parametrize("bounds", ["(c)", "(c, , h)", "(c, l)"])
def test_a_clip_without_a_bound_is_no_relu(bounds: str) -> None:
    text = f"""t (float[1,2,4,4] x, float[3,2,1,1] w) => (float[1,3,4,4] y) <float l = {{-0.5}}, float h = {{0.5}}>
        {{ c = Conv(x, w)  y = Clip{bounds} }}"""
    checked(model_of(text, "w"))


@pytest.mark.parametrize("slope", ["[3,1,1]", "[1]", "[3,4,4]", "[4]"])
def test_prelu_slope_ignored(slope: str) -> None:
    text = f"""t (float[1,2,4,4] x, float[3,2,1,1] w, float{slope} s) => (float[1,3,4,4] y)
        {{ c = Conv(x, w)  y = PRelu(c, s) }}"""
    checked(model_of(text, "w", "s"))


# ---- windows ----


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("pads", ["1,1,1,1", "0,0,1,1", "1,0,0,1"])
@pytest.mark.parametrize("include", [0, 1])
def test_pools_padded_with_0_and_count_include_pad_ignored(op: str, pads: str, include: int) -> None:
    """All inputs negative: a frame of zeros would win every maximum and lift every mean."""
    extra = f", count_include_pad = {include}" if op == "AveragePool" else ""
    text = f"t (float[1,2,5,5] x) => (float[1,2,a,b] y) {{ y = {op}<kernel_shape = [2,2], pads = [{pads}]{extra}>(x) }}"
    model = model_of(text)
    x = -1 - np.abs(np.random.default_rng(0).standard_normal((1, 2, 5, 5))).astype(np.float32)
    prove(model, {"x": x})


@pytest.mark.parametrize("op", ["Conv(x, w)", "MaxPool(x)", "AveragePool(x)", "ConvTranspose(x, w)"])
@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_same_upper_and_same_lower_swapped(op: str, auto: str) -> None:
    if op.startswith("ConvTranspose") and auto == "VALID":
        return
    call = op.replace("(", f'<auto_pad = "{auto}", kernel_shape = [2,2], strides = [1,2]>(', 1)
    weights = ", float[2,2,2,2] w" if "w" in op else ""
    checked(
        model_of(f"t (float[1,2,5,5] x{weights}) => (float[1,2,a,b] y) {{ y = {call} }}", *(["w"] if weights else []))
    )


# ---- the machinery ----


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_fusion_emits_an_operator_newer_than_the_models_opset(opset: int) -> None:
    """The fused model says its own opset, so that every body is legal: the checker runs in prove()."""
    checked(model_of("t (float[2,3] x) => (float[2,3] y) { s = Sigmoid(x)  y = Mul(x, s) }", opset=opset))


def test_fusion_to_a_dtype_that_no_kernel_has() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> t (double[2,3] x) => (double[2,3] y) { y = Relu(x) }'
    )
    with pytest.raises(GapFuseError, match="x is float64, not real"):
        plan(read_model(model), running.rules(), running.kernels(), 8, ())


def test_unsupported_operator_deleted_with_a_warning() -> None:
    model = model_of("t (float[2,3] x) => (float[2,3] y) { r = Relu(x)  y = Hardmax(r) }")
    with pytest.raises(GapFuseError, match=r"no rule takes the node .*Hardmax"):
        plan(read_model(model), running.rules(), running.kernels(), 8, ())


def test_one_pattern_node_means_two_graph_nodes_after_backtracking() -> None:
    """x * sigmoid(x) where the factor is the sigmoid of another value, in either order."""
    for body in ("s = Sigmoid(z)  y = Mul(x, s)", "s = Sigmoid(x)  y = Mul(s, z)", "s = Sigmoid(s0)  y = Mul(x, s)"):
        text = f"t (float[2,3] x, float[2,3] z) => (float[2,3] y) {{ s0 = Tanh(x)  {body} }}"
        model = model_of(text)
        checked(model)
        assert not any(d.rule == "silu" for d in planned_of(model)[0].plan.chosen)


def test_add_x_y_to_add_y_x_runs_for_ever() -> None:
    """Commutative patterns on a chain of sums of equal values end, and give one candidate per place."""
    names = ["x", *(f"a{i}" for i in range(12))]
    body = "  ".join(f"{b} = Add({a}, {a})" for a, b in pairwise(names))
    model = model_of(f"t (float[2] x) => (float[2] {names[-1]}) {{ {body} }}")
    checked(model)
    found = match(view(read_model(model)), running.only("add"), running.kernels())
    assert len(found.candidates) == 12


def test_matching_order_does_not_depend_on_a_set() -> None:
    """The same plan from the rules in any order."""
    model = norm("[4]", -1)
    forwards, kernels = running.rules(), running.kernels()
    backwards = type(forwards)(tuple(reversed(forwards.rules)), forwards.classes)
    first, other = (plan(read_model(model), r, kernels, 8, ()).plan.chosen for r in (forwards, backwards))
    assert [(c.rule, c.variant, c.produces) for c in first] == [(c.rule, c.variant, c.produces) for c in other]


@pytest.mark.parametrize("perm", [[0, 1, 3, 2], [0, 3, 1, 2], [0, 2, 3, 1], [0, 3, 2, 1]])
def test_layout_pass_corrupts_a_transpose(perm: list[int]) -> None:
    shape = [(1, 3, 3, 5)[p] for p in perm]
    text = f"""t (float[1,2,5,7] x, float[3,2,3,3] w) => (float{shape} y)
        {{ c = Conv(x, w)  t = Transpose<perm = {perm}>(c)  y = Relu(t) }}"""
    checked(model_of(text, "w"))


@pytest.mark.parametrize("builder", [lambda: norm("[4]", -1), lambda: _with_rank_two_scalars("Gelu")])
def test_fusing_twice_is_fusing_once(builder: Callable[[], onnx.ModelProto]) -> None:
    model = builder()
    once, twice = (planned_of(model)[1] for _ in range(2))
    assert [c.kernel for c in once.calls] == [c.kernel for c in twice.calls]
