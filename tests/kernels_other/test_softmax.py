"""Softmax of masked rows: -inf leaves an element out, a row of -inf has no answer, and neither warns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.kernels_compute.cases import Case, kernel
from tests.kernels_other.onnx_model import run_operator
from tests.kernels_other.test_tiled import expected, run_tiled

ROWS = np.array([[1, -np.inf, 2, -np.inf], [-np.inf] * 4, [-np.inf, 5, -np.inf, -np.inf], [np.inf, 1, 0, 1]])


@pytest.mark.parametrize(("name", "op"), [("softmax_f32", "Softmax"), ("log_softmax_f32", "LogSoftmax")])
def test_masked_rows_are_as_in_onnx(name: str, op: str) -> None:
    x = ROWS.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reference = expected(name, Case({"x": x}, {}))
    made = run_tiled(kernel(name), kernel(name).implementations[0], {"x": x}, {})["y"]
    np.testing.assert_allclose(made, reference, rtol=1e-5)
    np.testing.assert_allclose(reference[[0, 2]], run_operator(op, {"x": x}, axis=-1)[[0, 2]], rtol=1e-5)
    assert np.isnan(reference[1]).all()
