"""Rewrites whose nodes would wait for each other or for what was taken away: numbers stay, or they are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fusion_engine.rewriting import rewrite
from tests.matching.given import rules_of, view_of
from tests.rewriting.test_rewrite import evaluate

INSTEAD = """
rule: instead
given: {{x: "real[*S]"}}
measure: {{Tanh: 99}}
match: {{pattern: "y = Tanh(x)"}}
rewrite: y = {}
"""
TWO_RESULTS = """
rule: two
given: {{w: "real[*S]"}}
measure: {{Tanh: 9}}
match:
  - pattern: |
      s = Sigmoid(_)
      y = Tanh(s)
      z = s * w
rewrite: |
  y = {}
  z = Neg(w)
"""


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {"Neg": np.negative, "Abs": np.abs, "Exp": np.exp}
INFIX = {"+": np.add, "-": np.subtract, "*": np.multiply}


def expressions() -> st.SearchStrategy[str]:
    """What a line of a rewrite may say of x, nested as it likes."""
    unary = st.sampled_from(sorted(UNARY))
    infix = st.sampled_from(sorted(INFIX))
    return st.recursive(
        st.just("x"),
        lambda e: st.builds("{}({})".format, unary, e) | st.builds("({} {} {})".format, e, infix, e),
        max_leaves=6,
    ).filter(lambda text: text != "x")


@settings(max_examples=60)
@given(expressions())
@example("Neg(Abs(Exp(x)))")  # in `MaxPool(QuantizeLinear(Relu(x)))` Relu and Q had one name, and Q read itself
@example("((x + (x * x)) * ((x - x) + x))")
def test_operators_in_operators_in_operators(text: str) -> None:
    v = view_of("t (float[3] x) => (float[3] y) { y = Tanh(x) }")
    found = rewrite(v, rules_of(INSTEAD.format(text)))
    x = np.array([0.5, -1.25, 2.0], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_allclose(evaluate(found.view, x)[0], eval(text, {**UNARY, "x": x}), rtol=1e-5)
    assert len(found.steps) == 1


@pytest.mark.parametrize("made", ["Exp(w)", "w"])
def test_an_operand_that_is_the_other_result_is_refused(made: str) -> None:
    """`w` is `y` itself here, and y = Exp(w) would read itself."""
    v = view_of("t (float[3] x) => (float[3] z) { s = Sigmoid(x)\n y = Tanh(s)\n z = Mul(s, y) }")
    found = rewrite(v, rules_of(TWO_RESULTS.format(made)))
    assert found.view is v
    (decline,) = found.declines
    assert decline.cause.reason == "the rewrite is refused: a result flows back into an operand"


def test_an_operand_inside_the_match_stays() -> None:
    """`w` is `s`, which nothing else reads: it was taken away, and what stands instead read what nobody makes."""
    text = "t (float[3] x) => (float[3] y, float[3] z) { s = Sigmoid(x)\n y = Tanh(s)\n z = Mul(s, s) }"
    found = rewrite(view_of(text), rules_of(TWO_RESULTS.format("Exp(w)")))
    x = np.array([0.5, -1.25, 2.0], np.float32)
    s = 1 / (1 + np.exp(-x))
    y, z = evaluate(found.view, x)
    np.testing.assert_allclose(y, np.exp(s), rtol=1e-6)
    np.testing.assert_allclose(z, -s, rtol=1e-6)


def test_an_operand_inside_the_match_of_one_result_stays() -> None:
    """The same with one result: in Tanh(n) * w the factor is n."""
    rule = """
rule: gate
given: {w: "real[*S]"}
measure: {Tanh: 9}
match: {pattern: "y = Tanh(Neg(_)) * w"}
rewrite: y = Exp(w)
"""
    v = view_of("t (float[3] x) => (float[3] y) { n = Neg(x)\n t = Tanh(n)\n y = Mul(t, n) }")
    found = rewrite(v, rules_of(rule))
    assert [n.op for n in found.view.nodes] == ["Neg", "Exp"]
    x = np.array([0.5, -1.25, 2.0], np.float32)
    np.testing.assert_allclose(evaluate(found.view, x)[0], np.exp(-x), rtol=1e-6)
