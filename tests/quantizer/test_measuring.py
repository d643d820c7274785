"""gap-fuse stats: bounded streaming, any executor, shards, marks of other tools, what cannot be seen."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import onnx.parser
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from gap_fuse.cli import main
from gap_fuse.measuring import measure, observable, unobservable
from gap_fuse.recordings import batches, open_ports, open_recording
from quantizer import TensorStatistics, known_ranges, known_statistics, statistics_of

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
SCHEMA = ROOT / "docs" / "schemas" / "tensor-statistics.schema.json"


def model(shape: str = "N,3") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[{shape}] x) => (float[{shape}] y) <float two = {{2.0}}> {{
          c = Neg(two)
          h = Mul(x, c)
          y = Relu(h)
        }}"""
    )


@given(st.integers(1, 9), st.integers(1, 12), st.sampled_from(["N,3", "1,3", "3"]), st.booleans())
def test_batches_are_the_samples_whatever_the_batch(count: int, size: int, shape: str, compressed: bool) -> None:
    x = np.random.default_rng(count).standard_normal((count, 3)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.npz"
        (np.savez_compressed if compressed else np.savez)(file, x=x)
        recording = open_recording(file, open_ports(model(shape)))
        seen = [b["x"].reshape(-1, 3) for b in batches(recording, size)]
    assert recording.stacked == (shape == "N,3")
    assert max(map(len, seen)) <= (size if recording.stacked else 1)
    assert np.array_equal(np.concatenate(seen), x)


def test_memory_does_not_grow_with_the_samples(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros((20_000, 1024), np.float32))
    recording = open_recording(tmp_path / "x.npz", open_ports(model("N,1024")))
    tracemalloc.start()
    assert sum(len(b["x"]) for b in batches(recording, 8)) == 20_000
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.ones((2, 3), np.float32)}, "no array for the graph input `x`; the file holds z"),
        ({"x": np.ones((2, 3))}, "`x` is float64; the model takes float32"),
        ({"x": np.ones((2, 4), np.float32)}, r"`x` has shape \[2, 4\]; the model takes \[\?, 3\]"),
        ({"x": np.array([None, 1])}, "pickled objects"),
        ({"x": np.ones((0, 3), np.float32)}, "no samples"),
    ],
)
def test_samples_that_do_not_fit_are_located_errors(tmp_path: Path, arrays: dict, message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(GapFuseError, match=message):
        measure(model(), [tmp_path / "x.npz"])


def test_any_executor_and_any_cut_give_the_same_statistics() -> None:
    whole = measure(DIGITS / "digits_fp32.onnx", [DIGITS / "test_images.npz"], samples=20, batch=3)
    with ThreadPoolExecutor(2) as executor:
        parts = measure(
            DIGITS / "digits_fp32.onnx", [DIGITS / "test_images.npz"], samples=20, executor=executor, shards=3
        )
    assert {n: t.populations for n, t in whole.tensors.items()} == {n: t.populations for n, t in parts.tensors.items()}


def test_a_dask_cluster_is_an_executor() -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is absent: Dask not tested")
    whole = measure(DIGITS / "digits_fp32.onnx", [DIGITS / "test_images.npz"], samples=8)
    with distributed.Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as client:
        parts = measure(
            DIGITS / "digits_fp32.onnx",
            [DIGITS / "test_images.npz"],
            samples=8,
            executor=client.get_executor(),
            shards=2,
        )
    assert whole == parts


def test_constants_are_not_measured_and_bodies_are_said_to_be_hidden() -> None:
    assert observable(model()) == ("x", "h", "y")
    branch = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (bool b, float[2] x) => (float[2] y) {
          y = If(b) <
            then_branch = t () => (float[2] p) { p = Relu(x) },
            else_branch = e () => (float[2] q) { r = Neg(x)  q = Abs(r) }
          >
        }"""
    )
    assert observable(branch) == ("b", "x", "y")
    assert set(unobservable(branch)) == {"p", "q", "r"}
    function = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 17, "my" : 1]>
        g (float[2] x) => (float[2] y) { ["block"] y = my.F(x) }
        <domain: "my", opset_import: ["" : 17]> F (a) => (b) { c = Constant <value = float {2.0}> ()  b = Mul(a, c) }"""
    )
    assert observable(function) == ("x", "y")
    assert unobservable(function) == ("block/b",)


def test_marks_of_other_tools_are_known_ranges() -> None:
    marked = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g (float[4] x) => (float[4] y)
        <float s = {0.5}, int8 z = {-128}, float s2 = {0.25}, uint16 z2 = {100}> {
          q = QuantizeLinear(x, s, z)
          d = DequantizeLinear(q, s, z)
          h = Relu(d)
          r = QuantizeLinear<output_dtype = 4>(h, s2)
          m = com.microsoft.QuantizeLinear(d, s2, z2)
          y = DequantizeLinear(r, s2)
        }"""
    )
    note = marked.graph.quantization_annotation.add(tensor_name="d")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s2")
    ranges = known_ranges(marked)
    assert (ranges["x"].low, ranges["x"].high, ranges["x"].source) == ((0.0,), (127.5,), "QuantizeLinear")
    assert (ranges["d"].low, ranges["d"].source) == ((-32.0,), "quantization_annotation")
    assert (ranges["h"].high, ranges["h"].dtype) == ((0.25 * 65535,), "uint16")
    assert known_statistics(marked)["x"].count == 0
    assert "range [0, 127.5] by QuantizeLinear" in str(known_statistics(marked)["x"])


def test_every_value_of_a_quantised_network_has_a_known_range() -> None:
    ranges = known_ranges(onnx.load(DIGITS / "digits_int8.onnx"))
    assert len(ranges) > 10
    assert all(r.high[0] > r.low[0] for r in ranges.values())


def test_the_command_measures_merges_writes_shows_and_plots(tmp_path: Path) -> None:
    images, source = str(DIGITS / "test_images.npz"), str(DIGITS / "digits_fp32.onnx")
    shards = [str(tmp_path / f"{k}.npz") for k in range(2)]
    for shard in shards:
        assert ok("stats", source, "--inputs", images, "--samples", "4", "-o", shard).endswith("14 tensors\n")
    assert "of 2 shards" in ok("stats", "merge", *shards, "-o", str(tmp_path / "all.npz"))
    joined = ok("stats", source, "--from", str(tmp_path / "all.npz"), "-o", str(tmp_path / "s.onnx"), "--show")
    assert ok("stats", str(tmp_path / "s.onnx")) == joined.partition("\n")[2]
    full = ok("stats", str(tmp_path / "s.onnx"), "--tensor", "relu", "--tensor", "classify.weight")
    assert "weak_outliers" in full
    assert "channels.std" in full
    ok("stats", str(tmp_path / "s.onnx"), "--plot", str(tmp_path / "s.png"))
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    carried = statistics_of(onnx.load(tmp_path / "s.onnx"))
    assert carried["relu"].channel_axis == 1
    assert carried["relu"].count == 2 * 4 * 1024


def test_files_after_one_inputs_option_are_inputs_too(tmp_path: Path) -> None:
    images, source = str(DIGITS / "test_images.npz"), str(DIGITS / "digits_fp32.onnx")
    ok("stats", source, "--inputs", images, images, "-o", str(tmp_path / "s.onnx"))
    assert statistics_of(onnx.load(tmp_path / "s.onnx"))["image"].count == 2 * 360 * 64


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["stats", "{model}", "x.npz"], "samples or shards?"),
        (["stats", "{model}", "--inputs", "a.npz", "--from", "b.npz"], "measure to a shard first"),
        (["stats", "{model}", "--inputs", "{images}", "-o", "out.txt"], "out.txt must end in .onnx or .npz"),
        (["stats", "{model}", "--tensor", "relv"], "no statistics and no constant of the name 'relv'"),
        (["stats", "{images}"], "not an ONNX file"),
        (["stats", "merge", "{images}", "-o", "x.npz"], "not a shard"),
    ],
)
def test_the_command_says_what_is_wrong(args: list[str], message: str) -> None:
    files = {"model": DIGITS / "digits_fp32.onnx", "images": DIGITS / "test_images.npz"}
    result = command(*[a.format(**files) for a in args])
    assert result.exit_code == 2
    assert message in result.output


def test_carried_statistics_quantise_as_measured_ones_do(tmp_path: Path) -> None:
    images, source = DIGITS / "test_images.npz", DIGITS / "digits_fp32.onnx"
    ok("stats", str(source), "--inputs", str(images), "--samples", "50", "-o", str(tmp_path / "s.onnx"))
    gap_fuse.quantize(tmp_path / "s.onnx", None, tmp_path / "a.onnx")
    gap_fuse.quantize(source, images, tmp_path / "b.onnx", samples=50)
    a, b = onnx.load(tmp_path / "a.onnx"), onnx.load(tmp_path / "b.onnx")
    assert a.graph.node == b.graph.node
    assert list(a.graph.initializer) == list(b.graph.initializer)
    with pytest.raises(GapFuseError, match="carries no tensor statistics"):
        gap_fuse.quantize(source, None, tmp_path / "c.onnx")


def test_the_published_schema_is_the_classes_own() -> None:
    schema = json.loads(SCHEMA.read_text())
    assert schema == TensorStatistics.model_json_schema(), "rewrite it: python -m quantizer.statistics > " + str(
        SCHEMA.relative_to(ROOT)
    )
    jsonschema.validate(json.loads(TensorStatistics(count=0).model_dump_json()), schema)


def ok(*args: str) -> str:
    result = command(*args)
    assert result.exit_code == 0, result.output
    return result.output


def command(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))
