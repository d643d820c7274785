"""Functions by name, module scopes, variadic operands, rearrangements, regions, view kernels, the search's limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from einops import rearrange
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.covering.types import Constant, ValueRef
from fusion_engine.graph import Alias
from fusion_engine.language.axes import AxesText, parse_axes, solve_axes
from fusion_engine.matching.rearrange import expected_map, identity, reshape, transpose
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


# ---- rearrange ----

HEADS = """
rule: heads
given: {x: "real[S, B, E]"}
match:
  - {variant: any, pattern: 'y = Sigmoid(rearrange(x, "s b (h d) -> b h s d"))'}
emit:
  - {kernel: heads, args: {x: x}, attrs: {h: h, d: d}}
"""
HEADS_KERNEL = kernels_of(
    kernel("heads", {"x": "T[S, B, E]"}, "T[B, H, S, D]", {"h": "int", "d": "int"}, {"H": "h", "D": "d"})
)


@pytest.mark.parametrize(
    ("body", "fires"),
    [
        ("r = Reshape(x, s1)\n t = Transpose<perm = [1, 2, 0, 3]>(r)", True),
        ("p = Transpose<perm = [1, 0, 2]>(x)\n r = Reshape(p, s2)\n t = Transpose<perm = [0, 2, 1, 3]>(r)", True),
        ("r = Reshape(x, s3)\n t = Transpose<perm = [1, 3, 0, 2]>(r)", False),
        ("r = Reshape(x, s4)\n t = Transpose<perm = [0, 2, 1, 3]>(r)", False),
    ],
)
def test_chains_of_movement(body: str, fires: bool) -> None:
    text = f"""t (float[5,2,12] x) => (float[2,3,5,4] y)
    <int64[4] s1 = {{5, 2, 3, 4}}, int64[4] s2 = {{2, 5, 3, 4}}, int64[4] s3 = {{5, 2, 4, 3}},
     int64[4] s4 = {{2, 5, 3, 4}}> {{
      {body}
      y = Sigmoid(t)
    }}"""
    result = run(view_of(text), rules_of(HEADS), HEADS_KERNEL)
    assert bool(result.candidates) == fires
    if fires:
        assert dict(result.candidates[0].calls[0].attrs) == {"h": 3, "d": 4}
        assert result.candidates[0].consumes == ("x",)
    else:
        assert "no movement before" in reasons(result)


def test_empty_chain() -> None:
    rules = rules_of(HEADS.replace('"s b (h d) -> b h s d"', '"s b e -> s b e"').replace("h: h, d: d", "h: s, d: e"))
    v = view_of("t (float[5,2,12] x) => (float[5,2,12] y) { y = Sigmoid(x) }")
    k = kernels_of(kernel("heads", {"x": "T[S, B, E]"}, "T[S, B, E]", {"h": "int", "d": "int"}))
    assert dict(run(v, rules, k).candidates[0].calls[0].attrs) == {"h": 5, "d": 12}


def test_axis_names_are_sizes_of_conditions_lets_and_types() -> None:
    """`h` and `d` of the text stand in `where`, `let` and dims; a dim that is another number declines."""
    text = HEADS.replace('x: "real[S, B, E]"', 'x: "real[S, B, h * d]"')
    text = text.replace("h s d\"))'}", "h s d\"))', let: {twice: d * 2}, where: ['h == 3']}")
    text = text.replace("d: d}", "d: twice}")
    model = """t (float[5,2,12] x) => (float[2,HEADS,5,DEPTH] y) <int64[4] s = {5, 2, HEADS, DEPTH}> {
      r = Reshape(x, s)
      t = Transpose<perm = [1, 2, 0, 3]>(r)
      y = Sigmoid(t)
    }"""
    k = kernels_of(
        kernel("heads", {"x": "T[S, B, E]"}, "T[B, H, S, D]", {"h": "int", "d": "int"}, {"H": "h", "D": "d // 2"})
    )
    result = run(view_of(model.replace("HEADS", "3").replace("DEPTH", "4")), rules_of(text), k)
    assert dict(result.candidates[0].calls[0].attrs) == {"h": 3, "d": 8}
    result = run(view_of(model.replace("HEADS", "4").replace("DEPTH", "3")), rules_of(text), k)
    assert result.candidates == ()
    assert "`h == 3` does not hold" in reasons(result)


TEXTS = ("a b c -> c a b", "a (b c) d -> b (d a) c", "(a b) (c d) -> a c b d", "a b -> b a 1", "a 1 b -> (b a)")


@given(st.data(), st.sampled_from(TEXTS))
def test_index_maps_are_numpy_and_einops(data: st.DataObject, text: str) -> None:
    """Random chains of reshapes and transposes: equal to the einops text exactly where the arrays are equal."""
    parsed = parse_axes(text)
    assert isinstance(parsed, AxesText)
    names = sorted({a for g in parsed.left for a in g if isinstance(a, str)})
    extents = {n: data.draw(st.integers(1, 3), label=n) for n in names}
    source = tuple(int(np.prod([extents[a] for a in g if isinstance(a, str)])) for g in parsed.left)
    array = np.arange(int(np.prod(source))).reshape(source)
    wanted = rearrange(array, text, **extents)
    m, moved = identity(source), array
    for _ in range(data.draw(st.integers(0, 4))):
        if data.draw(st.booleans()):
            shape = data.draw(
                st.sampled_from([wanted.shape, (array.size,), tuple(reversed(moved.shape)), (1, *moved.shape)])
            )
            step = reshape(m, shape)
            moved = moved.reshape(shape)
        else:
            perm = tuple(data.draw(st.permutations(range(moved.ndim))))
            step, moved = transpose(m, perm), moved.transpose(perm)
        if step is None:
            return  # an axis begins inside a factor: no text says it
        m = step
    expected = expected_map(parsed, extents)
    same = moved.shape == wanted.shape and bool(np.array_equal(moved, wanted))
    assert (m == expected) == same
    solved = solve_axes(parsed, source, wanted.shape, extents)
    assert solved == extents


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


# ---- limits and order ----


LIBRARY = (REGION, CALL, """
rule: pair
given: {a: "real[*S]", b: "real[*S]"}
match:
  - {variant: add, pattern: "y = Sigmoid(a) + Tanh(b)"}
  - {variant: mul, pattern: "y = (a * b) + a"}
emit:
  - {kernel: map, args: {x: [a, b]}}
""", """
rule: single
given: {x: "real[*S]"}
match:
  - {variant: any, pattern: "y = unary[op](x)"}
emit:
  - {kernel: map, args: {x: [x]}, attrs: {expr: op}}
""")  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[str, tuple[int, ...]]], list[int]]:
    """Operators over earlier values (0 and 1 are the inputs), and an order of the nodes to be made topological."""
    nodes = []
    for i in range(draw(st.integers(2, 10))):
        op = draw(st.sampled_from(["Sigmoid", "Tanh", "Add", "Mul", "Exp"]))
        arity = 2 if op in ("Add", "Mul") else 1
        nodes.append((op, tuple(draw(st.integers(0, i + 1)) for _ in range(arity))))
    return nodes, draw(st.permutations(range(len(nodes))))


def ordered(nodes: list[tuple[str, tuple[int, ...]]], preference: list[int]) -> View:
    """The graph with its nodes in the topological order nearest to the preference."""
    done: set[int] = {0, 1}
    sequence: list[int] = []
    while len(sequence) < len(nodes):
        nxt = next(i for i in preference if i not in sequence and set(nodes[i][1]) <= done)
        sequence.append(nxt)
        done.add(nxt + 2)
    made = [
        ViewNode(k, nodes[i][0], tuple(f"v{j}" for j in nodes[i][1]), (f"v{i + 2}",), {}, (f"n{i}",))
        for k, i in enumerate(sequence)
    ]
    used = {j for _, operands in nodes for j in operands}
    outputs = tuple(f"v{i + 2}" for i in range(len(nodes)) if i + 2 not in used)
    return hand_made(made, {f"v{i}": (3,) for i in range(len(nodes) + 2)}, ("v0", "v1"), outputs)


def summary(v: View, rules_order: int) -> set[tuple[object, ...]]:
    rules = rules_of(*LIBRARY)
    if rules_order:
        rules = replace(rules, rules=tuple(reversed(rules.rules)))
    result = run(v, rules, KERNELS, explain=False)
    return {
        (c.rule, c.variant, c.emit, c.calls[0].operands, c.calls[0].attrs, c.produces, c.consumes,
         frozenset(v.nodes[i].origins for i in c.nodes))
        for c in result.candidates
    }  # fmt: skip


@given(graphs())
def test_independent_of_node_and_rule_order(drawn: tuple[list[tuple[str, tuple[int, ...]]], list[int]]) -> None:
    nodes, preference = drawn
    first = summary(ordered(nodes, list(range(len(nodes)))), 0)
    assert first == summary(ordered(nodes, preference), 0) == summary(ordered(nodes, preference), 1)
    assert len([n for n in nodes if n[0] in ("Sigmoid", "Tanh", "Exp")]) == len(
        {c[5] for c in first if c[0] == "single"}
    )


def test_order_of_candidates_is_that_of_the_nodes() -> None:
    v = view_of("t (float[3] x) => (float[3] y) { a = Sigmoid(x)\n b = Tanh(a)\n y = Exp(b) }")
    assert fired(run(v, rules_of(LIBRARY[-1]), KERNELS)) == ["single.any/0"] * 3


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
