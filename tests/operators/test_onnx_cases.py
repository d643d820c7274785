"""ONNX's own node tests: every case answers as the standard says, or ends in a GapFuseError; never a wrong number.

Each case is compiled twice: as it stands, and with every input but the first as a constant (what exporters write for
weights, axes and shapes). A sample in the usual profile, all of them with GAP_FUSE_PROFILE=nightly.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from fusion_engine import GapFuseError, apply, order_layouts, plan, read_model, run_reference
from tests.rules import running

STRIDE = 1 if os.environ.get("GAP_FUSE_PROFILE") == "nightly" else 12
PARTS = 8
Arrays = Mapping[str, np.ndarray]

# onnxruntime takes the rounded output length where the standard takes the unrounded one; we answer as onnxruntime does.
AS_ONNXRUNTIME = frozenset({"test_resize_downsample_scales_linear_align_corners"})


@cache
def cases() -> tuple[Any, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [c for c in collect_testcases(None) if c.model is not None]  # type: ignore[arg-type]
    tensors = [c for c in found if all(isinstance(v, np.ndarray | np.generic) for side in c.data_sets[0] for v in side)]
    return tuple(sorted((c for c in tensors if c.name not in AS_ONNXRUNTIME), key=lambda c: str(c.name)))


def constant_form(model: onnx.ModelProto, inputs: Arrays) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.ir_version = max(changed.ir_version, 4)  # constants that are no inputs
    first, *others = list(changed.graph.input)
    del changed.graph.input[:]
    changed.graph.input.append(first)
    changed.graph.initializer.extend(numpy_helper.from_array(inputs[o.name], o.name) for o in others)
    return changed


def answers(model: onnx.ModelProto, inputs: Arrays) -> Arrays:
    kernels = running.kernels()
    planned = plan(read_model(model, {}), running.rules(), kernels, 8, ())
    graph = order_layouts(apply(planned.view, planned.plan, kernels), kernels, 8, ())
    values = run_reference(graph, kernels, {n: v for n, v in inputs.items() if n in graph.inputs})
    return {o: values[o] for o in graph.outputs}


def assert_equal(case: Any, made: Arrays, expected: Arrays) -> None:
    assert set(made) == set(expected)
    for name, wanted in expected.items():
        got = made[name]
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), name
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(got, wanted)
            continue
        largest = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0))
        np.testing.assert_allclose(got, wanted, rtol=max(case.rtol, 1e-4), atol=max(case.atol, 1e-5 * largest))


def verdict(case: Any, constants: bool) -> str:
    """`covered` or `declined`; a wrong answer or any other exception fails the test."""
    names = [i.name for i in case.model.graph.input]
    inputs = {n: np.asarray(v) for n, v in zip(names, case.data_sets[0][0], strict=True)}
    outputs = [o.name for o in case.model.graph.output]
    expected = {n: np.asarray(v) for n, v in zip(outputs, case.data_sets[0][1], strict=True)}
    try:
        made = answers(constant_form(case.model, inputs) if constants else case.model, inputs)
    except GapFuseError as e:
        assert str(e).strip()
        return "declined"
    assert_equal(case, made, expected)
    return "covered"


@pytest.mark.parametrize("part", range(PARTS))
def test_every_case_is_right_or_declined(part: int) -> None:
    verdicts = []
    for case in cases()[::STRIDE][part::PARTS]:
        for constants in (False, True) if len(case.model.graph.input) > 1 else (False,):
            try:
                verdicts.append(verdict(case, constants))
            except Exception as e:
                raise AssertionError(f"{case.name} ({'constants' if constants else 'as it stands'}): {e}") from e
    assert "covered" in verdicts
