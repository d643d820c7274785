"""Who is right where the C and onnxruntime differ: float64 decides, and only where it can be believed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gap_fuse
from gap_fuse.comparing import Agreement, agreement
from gap_fuse.precise import in_float64

TOLERANCE = 1e-4
TRUTH = np.array([1.0, 5e-6, 0.25])


def _judged(got: float, runtime: float, truth: float | None) -> Agreement:
    exact = None if truth is None else TRUTH * truth
    return agreement(TRUTH * got, TRUTH * runtime, TOLERANCE, lambda: exact)


@given(error=st.floats(-0.9, 0.9))
def test_onnxruntime_in_error_does_not_fail_the_c(error: float) -> None:
    assert _judged(1.0, 1.0 + error, 1.0).passed


@given(error=st.floats(2e-4, 0.9), sign=st.sampled_from([-1, 1]))
def test_the_c_in_error_fails(error: float, sign: int) -> None:
    assert not _judged(1.0 + sign * error, 1.0, 1.0).passed
    assert not _judged(1.0 + sign * error, 1.0, None).passed


def test_twice_onnxruntimes_own_error_is_allowed() -> None:
    assert _judged(1 + 9e-4, 1 - 5e-4, 1.0).passed
    assert not _judged(1 + 12e-4, 1 - 5e-4, 1.0).passed


def test_a_reference_far_from_both_excuses_nobody() -> None:
    """onnx's reference evaluator had BatchNormalization 9 wrong: twice onnxruntime's `error` would allow anything."""
    assert not _judged(1.2, 1.0, 2.0).passed


def test_indices_equal_onnxruntimes_or_float64s() -> None:
    """Off by one of 5,000 is within no tolerance, even where onnxruntime is off by one itself."""
    exact, runtime = np.array([4999, 17]), np.array([4999, 18])
    assert agreement(exact, runtime, 0.0, lambda: exact).passed
    assert not agreement(runtime - 2, runtime, 0.0, lambda: exact).passed
    assert not agreement(exact, runtime, 0.0, lambda: None).passed


SIGMOID = """<ir_version: 8, opset_import: ["" : 17]> t (float[1,4] x) => (float[1,4] y) {
  a = MatMul(x, w)
  y = Sigmoid(a)
}"""


def _far_sigmoid() -> onnx.ModelProto:
    model = onnx.parser.parse_model(SIGMOID)
    w = np.eye(4, dtype=np.float32) * np.float32(-13.37)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    return model


def _verify_ones(folder: Path) -> gap_fuse.Verdict:
    np.savez(folder / "ones.npz", x=np.ones((1, 1, 4), np.float32))
    return gap_fuse.verify(folder, folder / "ones.npz")


def test_a_sigmoid_of_minus_13_is_judged_by_float64(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sigmoid(-13.37) = 1.56e-6: onnxruntime's answer is a multiple of 2^-25, a percent off."""
    monkeypatch.setenv("OPT", "-O1")
    gap_fuse.compile(_far_sigmoid()).write(tmp_path)
    verdict = _verify_ones(tmp_path)
    assert verdict.passed, str(verdict)
    assert verdict.outputs[0].model.relative > 10 * TOLERANCE
    assert "against float64 the C is off by" in str(verdict)


def test_the_same_sigmoid_a_thousandth_off_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The absolute allowance of before, 2^-23, was 8 percent of this value."""
    monkeypatch.setenv("OPT", "-O1")
    model = _far_sigmoid()
    gap_fuse.compile(model).write(tmp_path)
    model.graph.node.append(onnx.helper.make_node("Mul", ["y_", "gain"], ["y"]))
    model.graph.node[1].output[0] = "y_"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1.001]), "gain"))
    onnx.save(model, tmp_path / "model.onnx")  # now the C lacks a factor
    verdict = _verify_ones(tmp_path)
    assert not verdict.passed, str(verdict)


def test_float64_sees_what_float32_rounds_away() -> None:
    feeds = {"x": np.ones((1, 4), np.float32)}
    answers = in_float64(_far_sigmoid(), ["y"], feeds)
    assert answers is not None
    np.testing.assert_allclose(answers["y"], 1 / (1 + np.exp(np.float64(np.float32(13.37)))), rtol=1e-12)


def test_batch_normalization_of_an_old_opset_is_right_in_float64() -> None:
    text = """<ir_version: 5, opset_import: ["" : 9]>
    t (float[1,2,1,1] x) => (float[1,2,1,1] y)
    <float[2] g = {1.0, 2.0}, float[2] b = {0.5, 0.0}, float[2] m = {1.0, 3.0}, float[2] v = {4.0, 0.25}> {
      y = BatchNormalization<epsilon = 0.0>(x, g, b, m, v)
    }"""
    answers = in_float64(onnx.parser.parse_model(text), ["y"], {"x": np.ones((1, 2, 1, 1), np.float32)})
    assert answers is not None
    np.testing.assert_allclose(answers["y"].ravel(), [0.5, -8.0], rtol=1e-12)
