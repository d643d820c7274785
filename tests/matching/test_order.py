"""What is found does not depend on the order of nodes or rules."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.view import View, ViewNode
from tests.matching.given import fired, rules_of, run, view_of
from tests.matching.test_forms import CALL, KERNELS, REGION, hand_made

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
