"""Affine sums: their C text means what they are, and intervals of index maps contain exactly the values reached."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.expr import Expr, evaluate, parse_expr
from tiler.emit.affine import Affine, greatest, interval, least, number, term, times
from tiler.emit.boxes import AxisRange, operand_box
from tiler.schedule import BoundOperand

NAMES = {"p": 7, "q": -3, "r": 11}
C = {
    "GF_MIN": min,
    "GF_MAX": max,
    "gf_floordiv": lambda a, b: a // b,
}


def c_value(text: object, names: dict[str, int]) -> int:
    """The value of emitted C, which within these operators is Python."""
    return int(eval(str(text), {"__builtins__": {}}, {**C, **names}))


@st.composite
def sums(draw: st.DrawFn) -> tuple[Affine, int]:
    """An Affine and its value at NAMES."""
    const = draw(st.integers(-9, 9))
    result, value = number(const), const
    for name in draw(st.lists(st.sampled_from(sorted(NAMES)), max_size=4)):
        factor = draw(st.integers(-5, 5))
        result, value = result + term(name) * factor, value + factor * NAMES[name]
    return result, value


@given(sums(), sums(), st.integers(-4, 4))
def test_text_and_value_agree(a: tuple[Affine, int], b: tuple[Affine, int], k: int) -> None:
    (x, v), (y, w) = a, b
    for got, want in [
        (x + y, v + w), (x - y, v - w), (x * k, v * k), (times(x, y), v * w),
        (least(x, y), min(v, w)), (greatest(x, y), max(v, w)),
    ]:  # fmt: skip
        assert c_value(got, NAMES) == want
    assert x - x == number(0)


@pytest.mark.parametrize(
    ("text", "c"),
    [
        (term("p") * 2 - 1, "2 * p - 1"),
        (number(1) - term("p"), "1 - p"),
        (number(-1) - term("p"), "-p - 1"),
        (term("q") - term("p"), "q - p"),
        (number(0), "0"),
        (least(term("p") + 3, term("p") + 1), "p + 1"),
    ],
)
def test_text_is_short(text: Affine, c: str) -> None:
    assert str(text) == c


MAPS = [
    "p", "p * 2 + r * 3 - 1", "p // 4", "(p * 2 + 1) // 3", "clamp((3 * p + 1) // 2, 0, 9)", "2 - p + 0 * r",
    "min(p, 5) + max(r, 2)", "4 * p // 4", "5",
]  # fmt: skip


@given(st.sampled_from(MAPS), st.integers(0, 12), st.integers(1, 6), st.integers(0, 4), st.integers(1, 3))
def test_interval_is_exact_and_its_text_too(text: str, p: int, p_n: int, r: int, r_n: int) -> None:
    index = parse_expr(text)
    reached = _values(index, p, p_n, r, r_n)
    for ranges, names in [
        ({"p": (number(p), number(p + p_n - 1)), "r": (number(r), number(r + r_n - 1))}, {}),
        (
            {"p": (term("p"), term("p") + term("p_n") - 1), "r": (number(r), number(r + r_n - 1))},
            {"p": p, "p_n": p_n},
        ),
    ]:
        low, high = interval(index, ranges)
        assert (c_value(low, names), c_value(high, names)) == (min(reached), max(reached))


def _values(index: Expr, p: int, p_n: int, r: int, r_n: int) -> list[int]:
    return [int(evaluate(index, {"p": a, "r": b})) for a, b in itertools.product(range(p, p + p_n), range(r, r + r_n))]


def test_a_product_of_axes_is_no_index_map() -> None:
    with pytest.raises(GapFuseError, match="multiplies axes"):
        interval(parse_expr("p * r"), {"p": (number(0), number(1)), "r": (number(0), number(1))})


@given(
    st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 12), st.integers(1, 9)
)
def test_box_is_the_part_inside(p_all: int, r_all: int, stride: int, pad: int, extent: int, tile: int) -> None:
    """Start, extent and what is missing before and after, for every tile, however far it hangs over."""
    index = parse_expr(f"p * {stride} + r - {pad}")
    operand = BoundOperand("x", "", "", "in", "int8", 1, ("h",), (index,), (extent,), 0, (1,), "border")
    axes = {"p": p_all, "r": r_all}
    symbolic = operand_box(operand, _ranges(term("p"), term("p_n"), r_all), axes)[0]
    for p in range(0, p_all, tile):
        n = min(tile, p_all - p)
        exact = operand_box(operand, _ranges(number(p), number(n), r_all), axes)[0]
        rows = np.array(_values(index, p, n, 0, r_all))
        span = np.arange(rows.min(), rows.max() + 1)
        inside = span[(span >= 0) & (span < extent)]
        for box in (exact, symbolic):
            start, count, before, after = (
                c_value(v, {"p": p, "p_n": n}) for v in (box.start, box.extent, box.before, box.after)
            )
            assert count == len(inside)
            assert not len(inside) or start == inside[0]
            assert 0 <= start <= extent
            assert before == max(0, -int(span[0]))
            assert after == max(0, int(span[-1]) + 1 - extent)


def _ranges(at: Affine, n: Affine, r_all: int) -> dict[str, AxisRange]:
    return {"p": AxisRange(at, n), "r": AxisRange(number(0), number(r_all))}


def test_no_clip_where_none_is_needed() -> None:
    operand = BoundOperand("x", "", "", "in", "int8", 1, ("h",), (parse_expr("p + r"),), (10,), 0, (1,), "border")
    box = operand_box(operand, _ranges(term("p"), number(4), 3), {"p": 8, "r": 3})[0]
    assert not re.search("GF_", f"{box.start}{box.extent}{box.before}{box.after}")
