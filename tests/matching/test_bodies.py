"""Patterns inside If, Loop and Scan: found as straight nodes where control flow is settled, said where it is not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from fusion_engine import GapFuseError, load_kernels, load_rules, plan, read_model
from fusion_engine.bodies import bodies, inside, match_bodies
from gap_fuse.rooms import room
from tests.matching.given import fired, kernel, kernels_of, rules_of, run, view_of

PAIR = """
rule: pair
given: {x: "real[*S]"}
match: {pattern: "y = Relu(Exp(x))"}
emit: {kernel: map, args: {x: x}}
"""
KERNELS = kernels_of(kernel("map", {"x": "T[*S]"}, "T[*S]"))
BRANCH = """t (float[3] x, bool c) => (float[3] y) {
  h = Abs(x)
  y = If (c) <then_branch = t () => (float[3] p) { a = Exp(h)
    p = Relu(a) }, else_branch = e () => (float[3] q) { q = Neg(h) }>
}"""
LOOP = """t (float[3] x, int64 n, bool c) => (float[3] y) {
  y = Loop (n, c, x) <body = b (int64 i, bool go, float[3] s) => (bool on, float[3] t) {
    on = Identity(go)
    a = Exp(s)
    t = Relu(a) }>
}"""


def test_a_settled_branch_and_a_settled_loop_are_straight_nodes() -> None:
    assert fired(run(view_of(BRANCH, c=np.array(True)), rules_of(PAIR), KERNELS)) == ["pair.any/0"]
    unrolled = view_of(LOOP, n=np.int64(3), c=np.array(True))
    assert fired(run(unrolled, rules_of(PAIR), KERNELS)) == ["pair.any/0"] * 3


def test_bodies_that_stay_are_matched_apart() -> None:
    v = view_of(BRANCH)
    assert run(v, rules_of(PAIR), KERNELS).candidates == ()
    found = match_bodies(v, rules_of(PAIR), KERNELS, lambda *_: 1.0)
    assert [(b.name, [c.rule for c in r.candidates]) for b, r in found] == [
        ("else_branch", []),
        ("then_branch", ["pair"]),
    ]
    assert found[1][0].view.inputs == ("h",)
    assert found[1][0].view.values["h"].static_shape == (3,)
    node = next(n for n in v.nodes if n.op == "If")
    assert inside(node, found) == (
        "else_branch: rules would take 0 of 1 node (none)",
        "then_branch: rules would take 2 of 2 nodes (pair)",
    )


def test_constants_from_outside_are_constants_inside() -> None:
    text = BRANCH.replace("p = Relu(a)", "p = Pow(a, k)").replace("float[3] x,", "float[3] x, float k,")
    (_, then) = bodies(view_of(text, k=np.float32(2)))
    assert [n.op for n in then.view.nodes] == ["Exp", "Pow"]
    assert then.view.const(then.view.nodes[1].inputs[1]) == 2


def test_bodies_inside_bodies() -> None:
    nested = BRANCH.replace("q = Neg(h) }", "q = If (c) <then_branch = u () => (float[3] r) { r = Exp(h) }, "
                            "else_branch = w () => (float[3] s) { s = Tanh(h) }> }")  # fmt: skip
    assert [(b.name, [n.op for n in b.view.nodes]) for b in bodies(view_of(nested))] == [
        ("else_branch", ["If"]),
        ("else_branch", ["Tanh"]),
        ("then_branch", ["Exp"]),
        ("then_branch", ["Exp", "Relu"]),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BRANCH, "the If `y` stays control flow: its condition is not known at compile time"),
        (LOOP, "the Loop `y` stays control flow: its number of steps is not known at compile time"),
    ],
)
def test_planning_says_what_stays_and_what_is_inside(text: str, said: str) -> None:
    kernels = load_kernels([room("kernels")])
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    with pytest.raises(GapFuseError) as caught:
        plan(read_model(proto), load_rules([room("rules")], kernels), kernels)
    (problem,) = caught.value.diagnostics
    assert said in problem.message
    assert any("rules would take" in note for note in problem.notes)
