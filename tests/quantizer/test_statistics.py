"""Statistics: any split merges to one pass; what is not finite is counted; JSON gives the same value back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fusion_engine.diagnostics import GapFuseError
from quantizer import Statistics, Summary, merge, summarise

FLOATS = st.lists(st.floats(-1e6, 1e6) | st.sampled_from([np.nan, np.inf, -np.inf]), max_size=60)
EPS = np.finfo(np.float64).eps


@given(FLOATS, st.lists(st.integers(0, 60), max_size=5))
@example([], [0, 0])
@example([1e6, 1e6 - 1e-6], [1])
def test_merging_any_split_equals_one_pass(values: list[float], cuts: list[int]) -> None:
    whole = summarise(np.array(values))
    total = Statistics()
    for part in np.split(np.array(values), sorted(cuts)):
        total = merge(total, Statistics({"x": summarise(part)}))
    got = total.tensors["x"]
    assert (got.count, got.min, got.max, got.nans, got.infs) == (
        whole.count,
        whole.min,
        whole.max,
        whole.nans,
        whole.infs,
    )
    peak, n = max((abs(v) for v in values if np.isfinite(v)), default=0.0), len(values)
    assert abs(got.mean - whole.mean) <= 4 * n * EPS * peak
    assert abs(got.m2 - whole.m2) <= 8 * n * n * EPS * peak * peak


@given(FLOATS)
def test_json_round_trip(values: list[float]) -> None:
    statistics = Statistics({"x": summarise(np.array(values)), "y": Summary()})
    assert Statistics.from_json(statistics.to_json()) == statistics


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "tensors": {}}', '{"version": 1, "tensors": {"x": {"q": 1}}}']
)
def test_other_json_is_an_error(text: str) -> None:
    with pytest.raises(GapFuseError, match="not tensor statistics"):
        Statistics.from_json(text)


def test_prints_itself() -> None:
    text = str(Statistics({"x": summarise(np.array([1.0, 3.0, np.nan, np.inf]))}))
    assert text == "x: 2 in [1, 3], mean 2, std 1, 1 NaN, 1 Inf"
