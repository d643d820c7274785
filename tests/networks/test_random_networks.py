"""Random ONNX networks through the whole road at random small memories: C against references, plan and onnxruntime;
a memory that is named as the smallest that would do does."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from tests.networks.drawing import float_models, quantise

EXAMPLES = max(12, settings().max_examples // 8 - 3)
SMALLEST = re.compile(r"the smallest L([12]) that would do is (\d+) bytes")
check = settings(max_examples=EXAMPLES // 2, suppress_health_check=list(HealthCheck))
budgets = (st.integers(300, 6000), st.integers(600, 40_000), st.integers(0, 99))


@pytest.fixture(autouse=True)
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", "-O1")


def compile_in(model: onnx.ModelProto, l1: int, l2: int) -> gap_fuse.Result:
    """Compiled under these budgets, or under the smallest that the errors name: each may be named once."""
    named: set[str] = set()
    while True:
        try:
            return gap_fuse.compile(model, l1=l1, l2=l2)
        except GapFuseError as e:
            found = SMALLEST.search(str(e))
            assert found is not None, str(e)
            level, size = found[1], int(found[2])
            assert level not in named, f"L{level} was named as enough before: {e}"
            assert size > (l1 if level == "1" else l2)
            named.add(level)
            l1, l2 = (size, l2) if level == "1" else (l1, size)


def verified(model: onnx.ModelProto, l1: int, l2: int, seed: int) -> None:
    result = compile_in(model, l1, l2)
    assert result.schedule.peaks["l1"] <= result.schedule.budgets["l1"]
    assert result.schedule.peaks["l2"] <= result.schedule.budgets["l2"]
    with tempfile.TemporaryDirectory() as folder:
        result.write(folder)
        verdict = gap_fuse.verify(Path(folder), samples=1, seed=seed)
    assert verdict.passed, str(verdict)


@check
@given(float_models(), *budgets)
def test_float_networks(model: onnx.ModelProto, l1: int, l2: int, seed: int) -> None:
    verified(model, l1, l2, seed)


@check
@given(float_models(), *budgets)
def test_integer_networks(model: onnx.ModelProto, l1: int, l2: int, seed: int) -> None:
    verified(quantise(model, seed), l1, l2, seed)
