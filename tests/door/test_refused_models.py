"""Models that onnxruntime does not load are verified all the same: by their normal form, or by onnx's evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import gap_fuse
from fusion_engine import GapFuseError
from gap_fuse.oracle import answers
from gap_fuse.proving import CallProof
from gap_fuse.verdict import Verdict

SHIFTED = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,4,3,3] x) => (float[1,4,3,3] y) <float[4,1,1] m = {3., 5., 7., 9.}, float[4,1,1] b = {1., 2., 3., 4.}> {
  y = RequantShift<div = 8.0, n_levels_out = 256., signed = 0>(x, m, b)
}"""


def test_an_operator_of_another_tool_is_verified_by_its_normal_form(tmp_path: Path) -> None:
    """A network of Deeploy compiled, and verify ended with exit 2: nothing was compared with anything."""
    gap_fuse.compile(_saved(tmp_path, SHIFTED)).write(tmp_path / "out")
    verdict = gap_fuse.verify(tmp_path / "out")
    assert verdict.passed
    assert "onnxruntime does not run this model" in str(verdict)
    assert "onnxruntime on the normal form y: all 144 values equal" in str(verdict)


@pytest.mark.parametrize("width", [3, 4])
def test_one_multiplier_per_channel_is_of_axis_1(tmp_path: Path, width: int) -> None:
    """[C] was taken for the last axis: a Mul of our own did not fit, or, of that extent, scaled columns."""
    text = SHIFTED.replace("4,3,3]", f"4,3,{width}]").replace("float[4,1,1]", "float[4]")
    gap_fuse.compile(_saved(tmp_path, text)).write(tmp_path / "out")
    x = np.arange(12 * width, dtype=np.float32).reshape(1, 1, 4, 3, width)
    np.savez(tmp_path / "in.npz", x=x)
    (y,) = gap_fuse.run(tmp_path / "out", tmp_path / "in.npz", tmp_path / "out.npz").values()
    m, b = (np.asarray(v, np.float32).reshape(4, 1, 1) for v in ((3, 5, 7, 9), (1, 2, 3, 4)))
    np.testing.assert_array_equal(y, np.clip(np.floor((x * m + b + 4) / 8), 0, 255))


def test_a_multiplier_that_does_not_fit(tmp_path: Path) -> None:
    text = SHIFTED.replace("float[4,1,1] m = {3., 5., 7., 9.}", "float[3] m = {3., 5., 7.}").replace(
        "y = R", "[rq] y = R"
    )
    with pytest.raises(GapFuseError) as caught:
        gap_fuse.compile(_saved(tmp_path, text))
    assert "node `rq` (RequantShift) has `mul` of shape [3, 1, 1], which does not fit its input [1, 4, 3, 3]" in str(
        caught.value
    )


def test_what_nothing_runs_is_said() -> None:
    unrun = CallProof("f:1", "y", None, None)
    said = str(Verdict("net", 1, 1, {}, (), [unrun], (), (), "onnxruntime does not run this model: why"))
    assert "f:1 -> y: nothing runs its nodes" in said
    assert "not compared with the model" in said
    assert said.endswith("net: verified against the kernels' references only on 1 sample")


RUN = [
    ("s = Slice(x, b, b) y = ArgMax(s)", "ArgMax: it does not say why, as of tensors without an element", False),
    ("y = Gather(x, i)", "idx=77 must be within", True),
]


@pytest.mark.parametrize(("body", "said", "drawn"), RUN)
def test_help_is_of_the_error_at_hand(body: str, said: str, drawn: bool) -> None:
    """An empty slice got the help of indices out of range, and a sentence without words."""
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[1,3,4] x, int64[1] i) => (y) <int64[1] b = {1}>'
    with pytest.raises(GapFuseError) as caught:
        answers(onnx.parser.parse_model(f"{head} {{ {body} }}"), {"x": np.ones((1, 3, 4), "f4"), "i": np.array([77])})
    assert said in str(caught.value)
    assert ("drawn inputs may be out of range" in str(caught.value)) == drawn


def test_how_many_samples_the_references_saw(tmp_path: Path) -> None:
    """Of many samples the first four go through the references; it said "verified on 9 samples" alone."""
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }'
    gap_fuse.compile(_saved(tmp_path, text)).write(tmp_path / "out")
    said = str(gap_fuse.verify(tmp_path / "out", samples=9))
    assert "references  1 buffer of the first 4 of 9 samples, 36 values: equal bit for bit" in said
    assert "on equal inputs, the first sample: " in said
    assert "references  1 buffer of 2 samples, 18 values" in str(gap_fuse.verify(tmp_path / "out", samples=2))


@pytest.mark.shared
def test_a_network_of_deeploy(shared: Path, tmp_path: Path) -> None:
    gap_fuse.compile(shared / "models/deeploy_minimobilenet/network.onnx").write(tmp_path / "out")
    verdict = gap_fuse.verify(tmp_path / "out", samples=1)
    assert verdict.passed
    assert verdict.outputs


def _saved(folder: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(text), folder / "m.onnx")
    return folder / "m.onnx"
