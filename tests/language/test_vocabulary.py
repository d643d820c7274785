"""Expressions over numpy: arithmetic, three values, the quantisation lens, and the tables of unary operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper, numpy_helper

from fusion_engine import fixed_point
from fusion_engine.covering.types import ValueRef
from fusion_engine.graph import Quantisation
from fusion_engine.language.expressions import read_expression
from fusion_engine.language.unary import UNARY
from fusion_engine.language.vocabulary import (
    FUNCTIONS,
    Binding,
    Unknown,
    as_attribute,
    as_condition,
    as_operand,
    evaluate_expression,
)
from fusion_engine.marked_yaml import parse_yaml


def ev(text: str, **env: Any) -> Any:
    (mark,) = parse_yaml("|\n" + "\n".join("  " + line for line in text.split("\n")), "e.yaml")
    return evaluate_expression(read_expression(mark, "an expression"), env)


X = Binding("x", "x", "float32", (2, "n", 4), None, "x_q", None, Quantisation((0.5,), (3,)))
W = Binding(
    "w", "w", "float32", (2, 2), np.array([[1.0, 2], [3, 4]], np.float32), "w_q", np.array([[2, 4], [6, 8]], np.int8),
    Quantisation((0.5, 0.25), (0, 0), 0),
)  # fmt: skip
PLAIN = Binding("p", "p", "float32", (2, 3))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("7 // 2 + 7 % 2", 4),
        ("2.0 ** 3", 8.0),
        ("-(3 - 5)", 2),
        ("1 < 2 <= 2", True),
        ("not 1 == 2", True),
        ("[1, 2] == [1, 2] and [1, 2] != [1, 2, 3]", True),
        ("'a' == 'a'", True),
        ("2 in [1, 2]", True),
        ("[4, 5, 6][1] + [4, 5, 6][-1]", 11),
        ("sum([4, 5, 6][1:])", 11),
        ("product([])", 1),
        ("3 if 1 > 2 else 4", 4),
        ("given(none, 7)", 7),
        ("given(2, 7)", 2),
        ("dim(x, 0) + dim(x, -1) + rank(x)", 9),
        ("size(w)", 4),
        ("broadcasts(w, 1.0)", True),
        ("broadcasts(1.0, w)", False),
        ("max(1, 5, 3) + min([4, 2])", 7),
        ("clip(7, 0, 6)", 6),
        ("round(2.5) + round(3.5)", 6.0),
        ("concat([1], [2, 3])", (1, 2, 3)),
        ("place([0, 0, 0], [2, 0], [7, 8])", (8, 0, 7)),
        ("exchange(3, 0, 2)", (2, 1, 0)),
        ("axes_last(4, [1, 0])", (2, 3, 1, 0)),
        ("lower('Mean'[1:])", "ean"),
        ("tree('Clip', 'x0', 0.5, inf)", "clip(x0, 0.5, inf)"),
        ("scale(x)", 0.5),
        ("zero(x)", 3),
        ("zero(w)", 0),
        ("quantised(-inf, x)", -128),
        ("quantised(1.25, x)", 5),
        ("quantised(1.75, x)", 7),
        ("1 +\n2", 3),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert ev(text, x=X, w=W) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x + 1", "x is not constant"),
        ("dim(x, 1)", "extent 1 of x unknown"),
        ("shape(x)", "shape of x unknown"),
        ("dim(x, 3)", "there is no axis 3 among 3"),
        ("scale(p)", "p is not quantised"),
        ("stored(p)", "p is not quantised"),
        ("absent * 2", "absent"),
        ("w < 2 and 1 < 2", "wrap it in all(...)"),
        ("multiplier(0.0)", "not computable"),
        ("1 // 0", "division by zero"),
        ("reshape(w, [3])", "not computable"),
        ("[1, 2][2]", "there is no element 2"),
        ("stored(1e9, 1e-9)", "too large for int32"),
        ("'a' + 1", "is text, not a number"),
        ("nobody", "`nobody` is not bound"),
    ],
)
def test_what_is_not_known_says_why(text: str, reason: str) -> None:
    found = ev(text, x=X, w=W, p=PLAIN, absent=None)
    assert isinstance(found, Unknown), found
    assert reason in found.reason


def test_three_values() -> None:
    """One decisive operand is enough."""
    assert ev("x > 0 and 1 > 2", x=X) is False
    assert ev("x > 0 or 2 > 1", x=X) is True
    assert isinstance(ev("x > 0 and 2 > 1", x=X), Unknown)
    assert isinstance(as_condition(Unknown("no")), Unknown)
    assert as_condition(np.array([1.0])) is True
    assert isinstance(as_condition(np.array([1.0, 2.0])), Unknown)


def test_operands_and_attributes() -> None:
    assert as_operand(ev("x", x=X)) == ValueRef("x")
    assert as_operand(ev("stored(x)", x=X)) == ValueRef("x_q")
    assert as_operand(ev("[x, p]", x=X, p=PLAIN)) == (ValueRef("x"), ValueRef("p"))
    assert as_operand(None) is None
    assert np.array_equal(as_operand(ev("stored(w)", w=W)), W.stored_const)  # type: ignore[arg-type]
    assert as_attribute(ev("shape(w)", w=W)) == (2, 2)
    assert as_attribute(ev("2.0 * 3")) == 6.0
    assert isinstance(as_attribute(ev("x", x=X)), Unknown)
    assert isinstance(as_attribute(None), Unknown)


def test_bias_is_kept_where_it_is_already_at_the_scale() -> None:
    """Large int32 biases do not survive a detour through float32."""
    big = np.array([2**30 + 1, -(2**29) - 3], np.int32)
    scale = np.array([0.25, 0.125])
    real = (big * scale).astype(np.float32)
    bias = Binding("b", "b", "float32", (2,), real, "b_q", big, Quantisation((0.25, 0.125), (0, 0), 0))
    assert np.array_equal(ev("stored(b, s)", b=bias, s=scale), big)
    near = ev("stored(b, s)", b=bias, s=scale * (1 + 1e-3))
    assert np.array_equal(near, np.rint(real.astype(np.float64) / (scale * (1 + 1e-3))).astype(np.int32))
    assert np.array_equal(ev("stored(given(n, zeros(2)), s)", n=None, s=scale), [0, 0])


@given(st.floats(1e-6, 1e5), st.integers(-(2**20), 2**20))
def test_multiplier_and_shift_are_the_factor(factor: float, acc: int) -> None:
    mul, shift = ev("multiplier(f)", f=factor), ev("shift(f)", f=factor)
    assert isinstance(mul, int)
    got = fixed_point.requantise(np.asarray(acc), np.asarray(mul), np.asarray(shift))
    assert abs(float(got) - acc * factor) <= 0.5 + abs(acc * factor) * 2.0**-30


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=4), elements=st.floats(-8, 8, width=32)))
def test_elementwise_functions_are_numpys(v: np.ndarray) -> None:
    wide = v.astype(np.float64)
    assert np.allclose(ev("exp(v)", v=v), np.exp(wide))
    assert np.allclose(ev("sqrt(abs(v))", v=v), np.sqrt(np.abs(wide)))
    assert np.allclose(ev("sum(v) + max(v) - min(v)", v=v), wide.sum() + wide.max() - wide.min())
    assert np.array_equal(ev("transpose(v, p)", v=v, p=tuple(range(v.ndim))[::-1]), wide.T)
    assert np.array_equal(ev("along(v, 1, 3)", v=wide.reshape(-1)), wide.reshape(1, -1, 1))


# ---- tables against onnxruntime ----

MISSING = {"Swish"}  # no kernel in the oracle's release


def onnxruntime_table(op: str, x: Quantisation, y: Quantisation, attrs: dict[str, float]) -> np.ndarray:
    """DequantizeLinear - op - QuantizeLinear over every int8, in float64 so that ties fall as in exact arithmetic."""
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["r"]),
        helper.make_node(op, ["r"], ["f"], **attrs),
        helper.make_node("QuantizeLinear", ["f", "sy", "zy"], ["out"]),
    ]
    constants = {
        "sx": np.float32(x.scale[0]), "zx": np.int8(x.zero[0]), "sy": np.float32(y.scale[0]), "zy": np.int8(y.zero[0]),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "t",
        [helper.make_tensor_value_info("q", TensorProto.INT8, [256])],
        [helper.make_tensor_value_info("out", TensorProto.INT8, [256])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"q": np.arange(-128, 128).astype(np.int8)})[0])


@pytest.mark.parametrize("op", sorted(set(UNARY) - MISSING - {"Clip"}))
@given(data=st.data())
def test_tables(op: str, data: st.DataObject) -> None:
    def drawn() -> Quantisation:
        return Quantisation((data.draw(st.integers(1, 64)) / 256,), (data.draw(st.integers(-128, 127)),))

    qx, qy = drawn(), drawn()
    known = onnx.defs.get_schema(op).attributes
    attrs = {a: data.draw(st.integers(1, 8)) / 4 for a in ("alpha",) if a in known}
    x = Binding("x", "x", quantisation=qx)
    y = Binding("y", "y", quantisation=qy)
    words = "".join(f", {k}={v}" for k, v in attrs.items())
    table = ev(f"table_i8({op}, x, y{words})", x=x, y=y)
    assert (table.dtype, table.shape) == (np.int8, (256,))
    real = qx.scale[0] * (np.arange(-128, 128) - qx.zero[0])
    with np.errstate(all="ignore"):
        defined = np.isfinite(np.asarray(UNARY[op](real, **attrs), dtype=np.float64))
    want = onnxruntime_table(op, qx, qy, attrs)
    differs = np.abs(table.astype(int) - want.astype(int))[defined]
    assert differs.max(initial=0) <= 1  # float32 against float64 on a tie
    assert np.count_nonzero(differs) <= 0.1 * differs.size


def test_every_word_is_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "rule-language.md").read_text()
    rows = [f"| `{f.usage}` | {f.doc} |" for f in FUNCTIONS.values()]
    assert [r for r in rows if r not in text] == []


def test_the_shape_of_a_scalar_counts_as_integers() -> None:
    """Drawn by `gap-fuse rules test`: the mean over no axes of a scalar asked for take([], []), which was of floats."""
    scalar = Binding("x", "x", "float32", (), None)
    assert ev("take(shape(x), range(rank(x)))", x=scalar) == ()
    assert ev("product(take(shape(x), range(0)))", x=scalar) == 1
