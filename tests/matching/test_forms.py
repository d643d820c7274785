"""Functions by name, module scopes, variadic operands, view kernels, regions, blanks."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_engine.covering.types import Constant, ValueRef
from fusion_engine.graph import Alias
from fusion_engine.view import Scope, View, ViewNode, ViewValue
from tests.matching.given import fired, kernel, kernels_of, reasons, rules_of, run, view_of

KERNELS = kernels_of(
    kernel("map", {"x": "T[*A] ..."}, "T[*Y]", {"expr": "str = ''"}, {"*Y": "broadcast(A)"}),
    kernel("one", {"x": "T[*S]"}, "T[*S]"),
    kernel("join", {"x": "T[*A] ..."}, "T[*Y]", {"axis": "int"}, {"*Y": "concat_shape(A, axis)"}, view="concat"),
    kernel("mm", {"a": "T[B, H, T1, D]", "b": "T[B, H, D, T2]"}, "T[B, H, T1, T2]"),
    kernel("transpose", {"x": "T[*A]"}, "T[*Y]", {"perm": "int[]"}, {"*Y": "permute(A, perm)"}, view="transpose"),
)


def hand_made(
    nodes: list[ViewNode], shapes: dict[str, tuple[int, ...]], inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> View:
    users: dict[str, list[int]] = {}
    for n in nodes:
        for v in dict.fromkeys(i for i in n.inputs if i):
            users.setdefault(v, []).append(n.index)
    values = {name: ViewValue(name, "float32", shape) for name, shape in shapes.items()}
    producer = {o: n.index for n in nodes for o in n.outputs if o}
    return View("t", 24, tuple(nodes), values, producer, {v: tuple(u) for v, u in users.items()}, inputs, outputs)


# ---- functions and scopes ----

CALL = """
rule: call
given: {x: "real[*S]"}
match:
  - {variant: any, pattern: 'y = "test.domain::Swi*"(x, beta=1.0)'}
emit:
  - {kernel: one, args: {x: x}}
"""


@pytest.mark.parametrize(
    ("op", "beta", "fires"),
    [("Swish", 1.0, True), ("Swish.1", 1.0, True), ("Swish", 2.0, False), ("Other", 1.0, False)],
)
def test_function_by_glob(op: str, beta: float, fires: bool) -> None:
    node = ViewNode(0, f"test.domain::{op}", ("x",), ("y",), {"beta": beta}, ("n",))
    v = hand_made([node], {"x": (3,), "y": (3,)}, ("x",), ("y",))
    result = run(v, rules_of(CALL), KERNELS)
    assert bool(result.candidates) == fires
    if fires:
        assert result.candidates[0].evidence == f"function test.domain::{op}"


SCOPED = """
rule: scoped
given: {x: "real[*S]"}
match:
  - {variant: any, scope: my.Block, pattern: "y = Tanh(Sigmoid(x))"}
emit:
  - {kernel: one, args: {x: x}}
"""


def test_scope_is_one_instance_of_the_module() -> None:
    a, b, other = Scope("my.Block", "a"), Scope("my.Block", "b"), Scope("my.Net", "")
    for first, second, fires in (
        ((other, a), (other, a), True),
        ((other, a), (other, b), False),
        ((other,), (other,), False),
    ):
        nodes = [
            ViewNode(0, "Sigmoid", ("x",), ("s",), {}, ("n0",), first),
            ViewNode(1, "Tanh", ("s",), ("y",), {}, ("n1",), second),
        ]
        v = hand_made(nodes, {"x": (3,), "s": (3,), "y": (3,)}, ("x",), ("y",))
        result = run(v, rules_of(SCOPED), KERNELS)
        assert bool(result.candidates) == fires
        if fires:
            assert result.candidates[0].evidence == "scope my.Block a"


# ---- variadic, views ----


def test_variadic_operands() -> None:
    rule = """
rule: join
given: {xs: any}
match:
  - {variant: any, pattern: "y = Concat(*xs, axis=axis)"}
emit:
  - {kernel: join, args: {x: xs}, attrs: {axis: axis}}
"""
    v = view_of("t (float[2,3] a, float[2,4] b) => (float[2,10] y) { y = Concat<axis = -1>(a, b, a) }")
    (c,) = run(v, rules_of(rule), KERNELS).candidates
    assert c.calls[0].operands == (("x0", ValueRef("a")), ("x1", ValueRef("b")), ("x2", ValueRef("a")))
    assert dict(c.calls[0].attrs) == {"axis": 1}
    assert c.consumes == ("a", "b")


def test_view_kernels_carry_their_alias() -> None:
    rule = """
rule: turn
given: {x: any}
match:
  - {variant: any, pattern: "y = Transpose(x, perm=perm)"}
emit:
  - {kernel: transpose, args: {x: x}, attrs: {perm: perm}}
"""
    v = view_of("t (float[2,3] x) => (float[3,2] y) { y = Transpose<perm = [1, 0]>(x) }")
    (c,) = run(v, rules_of(rule), KERNELS).candidates
    assert c.calls[0].alias == Alias("x", perm=(1, 0))


def test_one_result_of_a_node_with_several() -> None:
    rule = """
rule: second
given: {x: any}
match:
  - {variant: any, pattern: "_, y = Split(x, _, axis=axis)"}
emit:
  - {kernel: one, args: {x: y2}, when: ["axis == 0"]}
""".replace("y2", "x")
    v = view_of("t (float[4] x) => (float[2] a, float[2] b) { a, b = Split<num_outputs = 2>(x) }")
    result = run(v, rules_of(rule), KERNELS)
    assert "y would have the shape [4], not [2]" in reasons(result)  # the second result was found; the kernel declined


# ---- regions ----

REGION = """
rule: tree
given: {xs: "float32"}
match:
  - {variant: any, region: {ops: elementwise}, pattern: "y = elementwise[op](*xs)"}
emit:
  - {kernel: map, args: {x: xs}, attrs: {expr: op}}
"""


def test_region_is_maximal_and_private() -> None:
    text = """t (float[3] a, float[3] b) => (float[3] y, float[3] z) <float k = {0.5}> {
      s = Sigmoid(a)
      m = Mul(s, k)
      r = LeakyRelu(b)
      u = Add(m, r)
      y = Clip(u, k)
      z = Neg(s)
    }"""
    result = run(view_of(text), rules_of(REGION), KERNELS)
    last = next(c for c in result.candidates if c.produces == ("y",))
    assert dict(last.calls[0].attrs)["expr"] == "clip(add(mul(x0, 0.5), leakyrelu(x1, 0.009999999776482582)), 0.5, inf)"
    assert last.consumes == ("s", "b")  # s has a user outside


def test_region_cut_at_what_it_uses_twice() -> None:
    v = view_of("t (float[3] x) => (float[3] y) { s = Sigmoid(x)\n t = Tanh(s)\n y = Mul(s, t) }")
    found = [c for c in run(v, rules_of(REGION), KERNELS).candidates if c.produces == ("y",)]
    assert [dict(c.calls[0].attrs)["expr"] for c in found] == [
        "mul(sigmoid(x0), tanh(sigmoid(x0)))",
        "mul(x0, tanh(x0))",
    ]


def test_region_cut_at_what_another_kernel_makes() -> None:
    """The convolution with its clamp ends at `r`: the region above may begin there, or take the clamp in too."""
    conv = """
rule: conv
given: {x: "real[*S]"}
match: {pattern: "y = Relu(GlobalAveragePool(x))"}
emit: {kernel: pool, args: {x: x}}
"""
    body = "g = GlobalAveragePool(x)\n r = Relu(g)\n s = Tanh(r)\n y = Exp(s)"
    v = view_of(f"t (float[1,3,4,4] x) => (float[1,3,1,1] y) {{ {body} }}")
    k = {**KERNELS, **kernels_of(kernel("pool", {"x": "T[N, C, H, W]"}, "T[N, C, 1, 1]"))}
    found = [c for c in run(v, rules_of(REGION, conv), k).candidates if c.produces == ("y",)]
    assert [dict(c.calls[0].attrs)["expr"] for c in found] == ["exp(tanh(relu(x0)))", "exp(tanh(x0))"]


def test_a_region_larger_than_one_may_be_is_reported() -> None:
    lines = "\n".join(f" v{i + 1} = Tanh(v{i})" for i in range(40))
    result = run(view_of(f"t (float[3] v0) => (float[3] v40) {{ {lines} }}"), rules_of(REGION), KERNELS)
    assert result.notes == ("rule tree, variant any: the region was larger than one may be at 8 nodes",)


def test_view_of_a_constant_is_made_at_once() -> None:
    rule = """
rule: twice
given: {x: "const real[M, N]", z: "real[*S]"}
match:
  - {variant: any, pattern: "y = MatMul(z, x)"}
emit:
  - calls:
      - {kernel: transpose, args: {x: x}, attrs: {perm: "[1, 0]"}, results: {y: t}}
      - {kernel: product, args: {a: z, b: t}}
"""
    k = kernels_of(KERNELS["transpose"], kernel("product", {"a": "T[M, K]", "b": "const T[N, K]"}, "T[M, N]"))
    v = view_of(
        "t (float[2,3] z, float[3,4] x) => (float[2,4] y) { y = MatMul(z, x) }", x=np.eye(3, 4, dtype=np.float32)
    )
    (c,) = run(v, rules_of(rule), k).candidates
    assert [call.kernel for call in c.calls] == ["product"]
    assert c.temporaries == ()
    weight = dict(c.calls[0].operands)["b"]
    assert isinstance(weight, Constant)
    np.testing.assert_array_equal(weight.data, np.eye(4, 3))


# ---- blanks ----

BLANKS = """
rule: blanks
given: {x: "real[*S]"}
match:
  - {variant: any, pattern: 'y = Softmax(unary[_](LogSoftmax(unary[_](x), axis=_)), axis=_)'}
emit:
  - {kernel: one, args: {x: x}}
"""


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize(("inner", "outer"), [("Exp", "Exp"), ("Exp", "Tanh")])
def test_blanks_need_not_be_equal(first: int, second: int, inner: str, outer: str) -> None:
    """`_` was a name like others: two `axis=_` had to be the same axis."""
    body = f"a = {inner}(x) l = LogSoftmax<axis = {first}>(a) b = {outer}(l) y = Softmax<axis = {second}>(b)"
    v = view_of(f"t (float[2,3] x) => (float[2,3] y) {{ {body} }}")
    assert fired(run(v, rules_of(BLANKS), KERNELS)) == ["blanks.any/0"]
