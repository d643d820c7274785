"""Statistics: any split joins to one pass, channels to tensors; numpy in float64 agrees; odd values are counted."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fusion_engine.diagnostics import GapFuseError
from quantizer import (
    Statistics,
    Tally,
    TensorStatistics,
    annotate,
    channel_axes,
    collect,
    constant_statistics,
    count,
    join,
    read_shard,
    statistics_of,
    write_shard,
)
from quantizer.statistics.populations import empty, merge, pooled, tally
from quantizer.statistics.published import LEVELS, published

FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)
EPS = np.finfo(np.float64).eps
BIN = 1 / 16
ROUNDED = 2.0**-24
DTYPES = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_]


def arrays(dtype: type, low: int = 0) -> st.SearchStrategy[np.ndarray]:
    shapes = st.tuples(st.integers(low, 4), st.integers(1, 3), st.integers(low, 5))
    return shapes.flatmap(lambda shape: hnp.arrays(dtype, shape))


@given(st.sampled_from(DTYPES).flatmap(arrays), st.lists(st.integers(0, 4), max_size=4), st.sampled_from([None, 1]))
@example(np.zeros((0, 2, 3), np.float32), [0], 1)
@example(np.array([[[1e30, 1.0, -1e30]]], np.float32), [1], None)  # float sums would lose the 1
def test_joining_any_split_equals_one_pass(values: np.ndarray, cuts: list[int], axis: int | None) -> None:
    total = empty(1 if axis is None else values.shape[axis])
    for part in np.split(values, sorted(cuts)):
        total = merge(total, tally(part, axis))
    assert total == tally(values, axis)


@given(st.sampled_from(DTYPES).flatmap(arrays))
def test_channels_pool_to_the_tensor(values: np.ndarray) -> None:
    assert pooled(tally(values, 1)) == tally(values)


@given(hnp.arrays(np.float32, st.integers(1, 300), elements=FLOATS))
@example(np.array([-1.0, -1.0625], np.float32))
@example(np.array([3.4028235e38, -3.4028235e38], np.float32))
@example(np.array([1e-45, 0.0, -0.0], np.float32))
def test_numpy_agrees(values: np.ndarray) -> None:
    got = published(tally(values))
    wide = values.astype(np.float64)
    x = wide[np.isfinite(wide)]
    assert (got.count, got.nan) == (x.size, np.isnan(wide).sum())
    assert (got.positive_infinity, got.negative_infinity) == ((wide == np.inf).sum(), (wide == -np.inf).sum())
    if not x.size:
        assert got.min is got.mean is got.std is got.weak_outliers is None
        return
    assert (got.min, got.max) == (x.min(), x.max())
    assert got.zero_fraction == (x == 0).mean()
    peak = np.abs(x).max()
    assert got.mean == pytest.approx(x.mean(), abs=4 * x.size * EPS * peak)
    assert got.std == pytest.approx(x.std(), abs=1e-7 * peak)  # numpy's own rounding: ours is exact
    assert got.mean_absolute_deviation == pytest.approx(
        np.abs(x - x.mean()).mean(), abs=2 * BIN * abs(got.mean) + 1e-9 * peak
    )
    for level, value in got.quantiles:
        low, high = np.quantile(x, level, method="lower"), np.quantile(x, level, method="higher")
        assert low - BIN * abs(low) - 1e-300 <= value <= high + BIN * abs(high) + 1e-300


@given(hnp.arrays(np.float32, st.integers(1, 200), elements=st.floats(-1e6, 1e6, width=32)))
def test_outliers_are_counted_exactly_at_fences_near_tukeys(values: np.ndarray) -> None:
    got = published(tally(values))
    for outliers, reach in ((got.weak_outliers, 1.5), (got.strong_outliers, 3.0)):
        assert outliers is not None
        by_bins = zip(got.histogram.bins, got.histogram.counts, strict=True)
        assert outliers.below + outliers.above <= sum(n for _, n in by_bins)
        assert (values < outliers.low).sum() <= outliers.below <= (values <= outliers.low).sum()
        assert (values > outliers.high).sum() <= outliers.above <= (values >= outliers.high).sum()
        (q1, q3) = (v for level, v in got.quantiles if level in (0.25, 0.75))
        assert outliers.low <= q1 - reach * (q3 - q1) <= q3 + reach * (q3 - q1) <= outliers.high
    assert got.weak_outliers.below >= got.strong_outliers.below


def test_wide_numbers_are_rounded_to_24_bits_within_the_stated_bound() -> None:
    values = np.array([2**53 - 1, 12345678901, 3], np.int64)
    got = published(tally(values))
    assert got.mean == pytest.approx(values.mean(), rel=ROUNDED)
    assert got.max == 2.0**53 - 1


def test_the_greatest_doubles_stay_finite() -> None:
    got = published(tally(np.array([1.7976931348623157e308] * 3)))
    assert got.mean == pytest.approx(1.7976931348623157e308, rel=1e-6)
    assert got.std == 0


@given(hnp.arrays(np.float32, st.tuples(st.integers(0, 3), st.integers(1, 3)), elements=FLOATS))
def test_published_statistics_survive_a_model(values: np.ndarray) -> None:
    wanted = published(tally(values, 1), 1)
    model = annotate(relu(), {"x": wanted, "h": wanted, "y": published(empty())})
    assert statistics_of(onnx.ModelProto.FromString(model.SerializeToString()))["h"] == wanted
    assert set(statistics_of(model)) == {"x", "h", "y"}
    onnx.checker.check_model(model, full_check=True)


def test_annotating_again_replaces_and_keeps_other_metadata() -> None:
    model = annotate(relu(), {"h": published(tally(np.ones(3)))})
    info = next(v for v in model.graph.value_info if v.name == "h")
    info.metadata_props.add(key="author", value="me")
    again = annotate(model, {"h": published(empty())})
    kept = {p.key for v in again.graph.value_info for p in v.metadata_props}
    assert "author" in kept
    assert "tensor_statistics.mean" not in kept
    assert statistics_of(again)["h"].count == 0


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("count", "many", "tensor 'h': tensor_statistics.count: not JSON"),
        ("version", "2", "tensor_statistics.version is 2"),
        ("mean", '"x"', "tensor_statistics.mean: Input should be a valid number"),
        ("mode", "1", "tensor_statistics.mode: Extra inputs"),
    ],
)
def test_malformed_metadata_names_tensor_and_key(key: str, text: str, message: str) -> None:
    model = annotate(relu(), {"h": published(tally(np.ones(3)))})
    props = next(v for v in model.graph.value_info if v.name == "h").metadata_props
    kept = {p.key: p.value for p in props} | {f"tensor_statistics.{key}": text}
    del props[:]
    for k, v in kept.items():
        props.add(key=k, value=v)
    with pytest.raises(GapFuseError, match=message):
        statistics_of(model)


@given(st.lists(st.sampled_from(DTYPES).flatmap(arrays), max_size=3))
def test_shards_round_trip(values: list[np.ndarray]) -> None:
    statistics = Statistics({f"t/{k}": count(v, 1) for k, v in enumerate(values)} | {"s": Tally(empty(), note="why")})
    path = Path(tempfile.mkdtemp()) / "shard.npz"
    write_shard(statistics, path)
    assert read_shard(path) == statistics
    once = path.read_bytes()
    write_shard(statistics, path)
    assert path.read_bytes() == once


def test_other_files_are_no_shards(tmp_path: Path) -> None:
    for content in (b"", b"not a zip", b"PK\x03\x04"):
        (tmp_path / "x.npz").write_bytes(content)
        with pytest.raises(GapFuseError, match="not a shard"):
            read_shard(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", a=np.ones(3))
    with pytest.raises(GapFuseError, match="not a shard"):
        read_shard(tmp_path / "y.npz")


def test_channels_that_differ_between_samples_are_kept_together() -> None:
    a, b = Statistics({"x": count(np.ones((2, 3)), 1)}), Statistics({"x": count(np.ones((2, 4)), 1)})
    got = join(join(a, b), a).tensors["x"]
    assert got.axis is None
    assert got.note == "channels differ between samples: kept together"
    assert got.populations.counts == [20]


def test_a_vocabulary_is_one_population_and_strings_are_noted() -> None:
    assert count(np.ones((1, 5000)), 1).note == "5000 channels, more than 4096: kept together"
    assert count(np.array(["a"])).note == "not numbers (<U1): not counted"
    assert count([np.ones(3)]).note == "not a tensor (list): not counted"


def test_collect_counts_inputs_results_and_says_what_no_sample_reached() -> None:
    double = lambda _: lambda feeds: {"h": feeds["x"] * 2, "y": np.maximum(feeds["x"] * 2, 0)}  # noqa: E731
    batches = [{"x": np.array([[1.0, -2.0]], np.float32)}, {"x": np.array([[3.0, np.nan]], np.float32)}]
    got = collect(relu(), ["x", "h", "y"], batches, double, {"h": 1}).published()
    assert got["h"].channels is not None
    assert got["h"].channels.max == (6.0, -4.0)
    assert got["h"].nan == 1
    none = collect(relu(), ["h"], [], double).published()["h"]
    assert (none.count, none.note) == (0, "no sample was seen")
    with pytest.raises(GapFuseError, match="no tensor 'q'"):
        collect(relu(), ["q"], [], double)


def test_channel_axes_follow_the_operators() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 18]>
        g (float[1,3,8,8] x, float[4,3,1,1] w, float[1,5,6] t, float[6,2] m) => (float[1,4,8,8] y, float[1,5,2] z) {
          c = Conv(x, w)
          y = Relu(c)
          z = MatMul(t, m)
        }"""
    )
    axes = channel_axes(model)
    assert (axes["x"], axes["c"], axes["y"], axes["t"], axes["z"]) == (1, 1, 1, 2, 2)


def test_constants_on_demand() -> None:
    got = constant_statistics(np.array([[1.0, 2.0], [3.0, 5.0]], np.float32))
    assert got.channels is not None
    assert got.channels.mean == (1.5, 4.0)
    assert got.mean == 2.75
    assert constant_statistics(np.ones(3, np.float32)).channels is None


def test_prints_itself() -> None:
    text = str(Statistics({"x": count(np.array([1.0, 3.0, np.nan, np.inf]))}))
    assert text == "x: 2 in [1, 3], mean 2, std 1, 0.0 % zero, 0 outliers, 1 NaN, 1 Inf"
    assert str(TensorStatistics(count=0, nan=1, note="why")) == "no finite number, 1 NaN (why)"


def test_quantile_levels_hold_the_quartiles() -> None:
    assert {0.25, 0.5, 0.75} <= set(LEVELS)


def relu() -> onnx.ModelProto:
    return onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,2] x) => (float[N,2] y) {
          h = Add(x, x)
          y = Relu(h)
        }"""
    )
