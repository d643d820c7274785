"""Whole networks at many sizes of L1 and L2, run on the hostile port: results equal the references bit for bit under
every timing of the copies, AddressSanitizer, UBSan and, with threads, TSan watching; counters equal the plan per call.

A sample in the usual profile, the MLPerf Tiny networks at every size with GAP_FUSE_PROFILE=nightly. A size that is too
small must say which would do, and that one is run instead.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from gap_fuse.arrays import draw_samples
from gap_fuse.compiling import Result, read_compiled
from gap_fuse.running import Build, execute, ports
from tests.conftest import ROOT, SHARED

NIGHTLY = os.environ.get("GAP_FUSE_PROFILE") == "nightly"
NAMES = ("dscnn", "autoencoder", "resnet8", "mobilenetv1_025")
KILO = 1024
L1 = (8, 16, 32, 64, 128)
L2 = (64, 128, 256, 512, 1536)
SAMPLE = [("digits", 4, 512), ("digits", 8, 64), ("digits", 2, 6)]
WHOLE = [(n, a, 512) for n in NAMES for a in L1] + [(n, 32, b) for n in NAMES for b in L2 if b != 512]
SMALLEST = 8 * KILO  # L1 that the MLPerf Tiny networks need at most


def _path(name: str) -> Path:
    if name == "digits":
        return ROOT / "examples" / "digits" / "digits_int8.onnx"
    return SHARED / "bench" / "models" / f"{name}_int8_qdq.onnx"


def _compiled(name: str, l1: int, l2: int) -> Result:
    """The network at these sizes, or at the smallest that the error names."""
    for _ in range(3):
        try:
            return gap_fuse.compile(_path(name), l1=l1, l2=l2)
        except GapFuseError as e:
            found = re.search(r"--(l[12]) (\d+)", str(e))
            assert found is not None, str(e)
            assert found[1] != "l1" or int(found[2]) <= SMALLEST
            l1, l2 = (int(found[2]), l2) if found[1] == "l1" else (l1, int(found[2]))
    raise AssertionError(f"{name}: the sizes named do not do")


@cache
def _outputs(_name: str) -> dict[str, bytes]:
    """What the first size gave: every other must give the same."""
    return {}


@pytest.mark.parametrize(("name", "l1", "l2"), SAMPLE + (WHOLE if NIGHTLY else []))
def test_the_c_of_every_size_is_the_network(name: str, l1: int, l2: int, tmp_path: Path) -> None:
    if not _path(name).is_file():
        pytest.skip(f"{_path(name)} is absent")
    result = _compiled(name, l1 * KILO, l2 * KILO)
    folder = result.write(tmp_path)
    verdict = gap_fuse.verify(folder, samples=1, sanitize=True)
    assert verdict.passed, str(verdict)
    assert not verdict.counters
    compiled = read_compiled(folder)
    samples = draw_samples(ports(compiled, compiled.graph.inputs), 1, 0)
    got = execute(compiled, samples, Build("thread", threads=True)).outputs
    for output, value in got.items():
        assert _outputs(name).setdefault(output, np.ascontiguousarray(value).tobytes()) == value.tobytes()
