"""gap-fuse stats on values that are no plain float tensor; and on a real network, in shards and in bounded memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from click.testing import CliRunner

from fusion_engine.diagnostics import GapFuseError
from gap_fuse.cli import main
from gap_fuse.measuring import measure
from quantizer import annotate, join, read_shard, statistics_of, write_shard

ODD = """<ir_version: 10, opset_import: ["" : 20]>
g (float[N, 4] x, bool[N, 4] flags) => (float[N, 4] y)
<float huge = {1e9}, int64[1] zero = {0}, int64[1] axis = {0}> {
  whole = Cast <to = 7> (x)
  text = Cast <to = 8> (whole)
  root = Log(x)
  nothing = Slice(x, zero, zero, axis)
  of_nothing = Relu(nothing)
  total = ReduceSum <keepdims = 0> (x)
  seldom = Greater(total, huge)
  chosen = If(seldom) <then_branch = t () => (float[N, 4] p) { never = Exp(x)  p = Exp(never) },
                       else_branch = e () => (float[N, 4] q) { q = Neg(x) }>
  places = NonZero(x)
  pair = SequenceConstruct(x, chosen)
  length = SequenceLength(pair)
  both = Not(flags)
  y = Identity(chosen)
}"""
X = np.array([[-1.0, 0.0, 2.0, 3.0], [0.0, 0.0, 5.0, -7.0], [np.nan, np.inf, 1.0, 1.0]], np.float32)


@pytest.fixture
def odd(tmp_path: Path) -> tuple[Path, Path]:
    onnx.save(onnx.parser.parse_model(ODD), tmp_path / "odd.onnx")
    np.savez(tmp_path / "x.npz", x=X, flags=X > 0)
    return tmp_path / "odd.onnx", tmp_path / "x.npz"


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_every_kind_of_value_is_counted_or_says_why_not(odd: tuple[Path, Path], batch: int) -> None:
    got = measure(odd[0], [odd[1]], batch=batch).published()
    assert (got["x"].count, got["x"].nan, got["x"].positive_infinity) == (10, 1, 1)
    assert (got["root"].count, got["root"].nan, got["root"].negative_infinity) == (5, 3, 3)
    assert (got["flags"].count, got["flags"].mean) == (12, pytest.approx(6 / 12))
    assert (got["both"].count, got["both"].zero_fraction) == (12, pytest.approx(6 / 12))
    assert got["whole"].count == 12
    assert got["length"].min == got["length"].max == 2
    assert got["places"].count > 0  # of another shape in each batch
    for name, why in (("text", "not numbers"), ("pair", "not a tensor (list)")):
        assert (got[name].count, got[name].min) == (0, None)
        assert why in (got[name].note or "")
    for name in ("nothing", "of_nothing"):
        assert (got[name].count, got[name].mean, got[name].quantiles) == (0, None, ())
        assert "empty" in (got[name].note or "")


def test_a_branch_never_taken_is_said_and_its_result_counted(odd: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "s.onnx"
    said = CliRunner().invoke(main, ["stats", str(odd[0]), "--inputs", str(odd[1]), "-o", str(out)])
    assert said.exit_code == 0, said.output
    assert "not observed: 3 values inside functions, If, Loop or Scan bodies" in said.output
    carried = statistics_of(onnx.load(out))
    assert (carried["chosen"].count, carried["chosen"].max) == (10, 7.0)
    assert not {"never", "p", "q"} & set(carried)
    onnx.checker.check_model(onnx.load(out), full_check=True)


def test_odd_statistics_survive_the_model_and_the_shard(odd: tuple[Path, Path], tmp_path: Path) -> None:
    seen = measure(odd[0], [odd[1]])
    write_shard(seen, tmp_path / "s.npz")
    again = read_shard(tmp_path / "s.npz")
    assert again.published() == seen.published()
    assert statistics_of(annotate(onnx.load(odd[0]), seen.published())) == seen.published()
    assert join(again, again).published()["x"].nan == 2


def test_texts_are_no_samples(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 20]> g (string[N] x) => (string[N] y) { y = Identity(x) }'
    np.savez(tmp_path / "x.npz", x=np.array(["a", "b"]))
    with pytest.raises(GapFuseError, match=r"`x` is <U1"):
        measure(onnx.parser.parse_model(text), [tmp_path / "x.npz"])


@pytest.mark.shared
def test_keyword_spotting_in_shards_is_the_whole_to_the_bit(shared: Path, tmp_path: Path) -> None:
    """276 clips of speech, in three files measured apart and merged by the command."""
    model = shared / "models" / "mlperf_kws" / "kws_ref_model_float32.tf2onnx.onnx"
    with np.load(shared / "data" / "kws_calibration_v1" / "mfcc.npz") as file:
        clips = file["mfcc"].astype(np.float32)[..., None]
    assert len(clips) == 276
    shards = []
    for k, part in enumerate(np.split(clips, [50, 51])):
        np.savez(tmp_path / f"x{k}.npz", input_1=part)
        shards.append(str(tmp_path / f"s{k}.npz"))
        write_shard(measure(model, [tmp_path / f"x{k}.npz"], batch=7 + k), Path(shards[-1]))
    merged = CliRunner().invoke(main, ["stats", "merge", *shards, "-o", str(tmp_path / "merged.npz")])
    assert merged.exit_code == 0, merged.output
    np.savez(tmp_path / "x.npz", input_1=clips)
    tracemalloc.start()
    whole = measure(model, [tmp_path / "x.npz"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    write_shard(whole, tmp_path / "whole.npz")
    assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert peak < 80_000_000
