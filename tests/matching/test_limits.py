"""What a search may cost: bounded per root, given up where it is always cut off, linear in the network; and said."""

from __future__ import annotations

import time

import numpy as np
import onnx

from fusion_engine.matching import match
from fusion_engine.model import read_model
from fusion_engine.view import view
from tests.matching.given import kernel, kernels_of, reasons, rules_of, view_of

KERNELS = kernels_of(kernel("one", {"x": "T[*S]"}, "T[*S]"))

DEEP = """
rule: deep
given: {x: real}
match:
  - variant: any
    pattern: |
      a = x + b2
      y = (a + b3) + (b4 + _)
emit:
  - {kernel: one, args: {x: x}, when: ["rank(b2) + rank(b3) + rank(b4) == 0"]}
"""


def test_search_is_bounded_and_says_so() -> None:
    lines = "\n".join(f" v{i} = Add(v{i - 1}, v{i - 2})" for i in range(2, 14))
    v = view_of(f"t (float[3] v0, float[3] v1) => (float[3] v13) {{ {lines} }}")
    result = match(v, rules_of(DEEP), KERNELS, cost=lambda *_: 1.0, explain=True, budget=5)
    assert result.notes
    assert "cut off" in result.notes[0]
    assert "more than 5 steps" in reasons(result)


def test_a_variant_that_is_cut_off_everywhere_is_given_up() -> None:
    lines = "\n".join(f" v{i} = Add(v{i - 1}, v{i - 2})" for i in range(2, 80))
    v = view_of(f"t (float[3] v0, float[3] v1) => (float[3] v79) {{ {lines} }}")
    result = match(v, rules_of(DEEP), KERNELS, cost=lambda *_: 1.0, budget=5)
    assert result.notes == ("rule deep, variant any: the search was cut off at 32 nodes, then given up",)


TWO_RESULTS = """
rule: pair
given: {x: "real[*S]"}
match:
  - variant: any
    pattern: |
      y = Tanh(x)
      z = Exp(Neg(x))
emit:
  - {kernel: two, args: {x: x}, results: {y: y, z: z}}
"""


Nodes = list[tuple[str, list[str], str]]


def pairs_in_a_row(n: int) -> Nodes:
    """n times both halves of the pattern on one value, added up."""
    nodes: Nodes = []
    for i in range(n):
        nodes += [("Tanh", [f"v{i}"], f"t{i}"), ("Neg", [f"v{i}"], f"n{i}"), ("Exp", [f"n{i}"], f"e{i}")]
        nodes.append(("Add", [f"t{i}", f"e{i}"], f"v{i + 1}"))
    return nodes


def many_readers(n: int) -> Nodes:
    """The first half reads a value that n other nodes read too; the second half is not there."""
    nodes: Nodes = [("Tanh", ["v0"], "t")]
    for i in range(n):
        nodes += [("Add", ["v0", f"c{i}"], f"o{i}"), ("Mul", [f"o{i}", "t" if not i else f"s{i - 1}"], f"s{i}")]
    return [*nodes, ("Neg", [f"s{n - 1}"], "n"), ("Exp", ["n"], f"v{n}")]


def timed_pairs(nodes: Nodes, n: int) -> tuple[float, int, tuple[str, ...]]:
    k = kernels_of(kernel("two", {"x": "T[*S]"}, "", outputs={"y": "T[*S]", "z": "T[*S]"}))
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, inputs, [output]) for op, inputs, output in nodes], "g",
        [info("v0", 1, [3])], [info(f"v{n}", 1, [3])],
        [onnx.numpy_helper.from_array(np.float32(i), f"c{i}") for i in range(n)],
    )  # fmt: skip
    v = view(read_model(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])))
    start = time.process_time()
    result = match(v, rules_of(TWO_RESULTS), k, cost=lambda *_: 1.0)
    return time.process_time() - start, len(result.candidates), result.notes


def test_several_results_are_found_in_linear_time() -> None:
    short, found, _ = timed_pairs(pairs_in_a_row(200), 200)
    long, more, notes = timed_pairs(pairs_in_a_row(2000), 2000)
    assert (found, more, notes) == (200, 2000, ())
    assert long < 40 * short + 0.3


def test_the_walk_from_a_shared_value_is_bounded_and_says_so() -> None:
    _, found, notes = timed_pairs(many_readers(400), 400)
    assert found == 0
    assert notes == ("rule pair, variant any: the search was cut off at 1 node",)
