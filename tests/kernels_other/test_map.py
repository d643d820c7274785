"""The elementwise vocabulary: every function's C against its numpy, and what is no expression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.kernels.references import load_module
from tests.harness import run_tiled
from tests.kernels_compute.cases import Case, kernel
from tests.kernels_other.drawn import floats
from tests.kernels_other.test_tiled import expected
from tests.tolerances import close_sums

MAP = load_module((kernel("map_f32").folder / "map.py").resolve())
SAFE = {"acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.9, 0.9), "acosh": (1, 9), "log": (0.01, 9), "sqrt": (0, 9)}
SAFE |= {"rsqrt": (0.01, 9), "log1p": (-0.9, 9), "tan": (-1.4, 1.4), "reciprocal": (0.1, 9)}


def run(expr: str, operands: dict[str, np.ndarray]) -> np.ndarray:
    return run_tiled(kernel("map_f32"), kernel("map_f32").implementations[0], operands, {"expr": expr})["y"]


def agree(expr: str, operands: dict[str, np.ndarray]) -> None:
    ours, reference = run(expr, operands), expected("map_f32", Case(operands, {"expr": expr}))
    assert np.array_equal(np.isnan(ours), np.isnan(reference))
    finite = np.isfinite(reference)
    assert np.array_equal(ours[~finite & ~np.isnan(ours)], reference[~finite & ~np.isnan(reference)])
    assert close_sums(ours[finite], reference[finite], np.maximum(np.abs(reference[finite]), 1.0))


@pytest.mark.parametrize("function", sorted(MAP.FUNCTIONS))
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32))
def test_c_equals_numpy(function: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arity = abs(MAP.FUNCTIONS[function].arity) if MAP.FUNCTIONS[function].arity > 0 else 2
    lo, hi = SAFE.get(function, (-4, 4))
    x = rng.uniform(lo, hi, 40).astype(np.float32)
    x[:6] = np.clip(np.array([0, 0.5, 1.5, -0.5, 2.5, -2.5]), lo, hi)
    x = np.abs(x) if function == "pow" else x
    others = {f"x{i}": rng.choice([0.25, 0.5, 2.0, 3.0], 40).astype(np.float32) for i in range(1, arity)}
    name = f"{function}_" if function in ("and", "or", "not") else function
    agree(f"{name}({', '.join(f'x{i}' for i in range(arity))})", {"x0": x} | others)


@pytest.mark.parametrize(
    "function", ["relu", "clip", "max", "min", "add", "neg", "leakyrelu", "isnan", "isinf", "sign"]
)
def test_what_is_no_number_stays_none(function: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0], np.float32)
    more = {"clip": ", -1.0, 2.0", "max": ", 0.5", "min": ", 0.5", "add": ", 1.0", "leakyrelu": ", 0.5"}.get(
        function, ""
    )
    agree(f"{function}(x0{more})", {"x0": x})


@settings(max_examples=10)
@given(values=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4))
def test_constants_reach_c_exactly(values: list[float]) -> None:
    x = {"x0": np.zeros(3, np.float32)}
    for value in values:
        result = run(f"where(x0, 0.0, {value!r})", x)
        np.testing.assert_array_equal(result, np.full(3, value, np.float32))


def test_equal_subtrees_are_computed_once() -> None:
    text = MAP.generate({"expr": "add(exp(x0), mul(exp(x0), exp(x0)))"}, "f", 1)
    assert text.count("expf(") == 1


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        ("sigmoyd(x0)", "no elementwise function `sigmoyd`"),
        ("exp(x0, x1)", "`exp` takes 1 argument, not 2"),
        ("exp(", "is not an expression"),
        ("__import__('os')", "no elementwise function"),
        ("x0.real", "neither an operand"),
        ("add()", "at least 1"),
        ("x0 + 1", "neither an operand"),
    ],
)
def test_what_is_no_expression_says_so(expr: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MAP.parse(expr)


def test_an_operand_that_the_call_lacks() -> None:
    with pytest.raises(ValueError, match="reads x1, but the call has 1 operand"):
        MAP.generate({"expr": "add(x0, x1)"}, "f", 1)


def test_a_deep_tree() -> None:
    expr = "x0"
    for _ in range(60):
        expr = f"tanh({expr})"
    agree(expr, {"x0": floats(np.random.default_rng(0), (9,))})
