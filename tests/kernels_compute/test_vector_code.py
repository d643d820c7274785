"""The code of targets with wide vectors, which the harness' plain flags do not reach: same results, fully optimised."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gap_fuse.proof.tiles.building import FLAGS
from tests.harness import bind_kernel, run_tiled, tilings
from tests.kernels_compute.cases import is_float, kernel
from tests.kernels_compute.test_tiled import IMPLEMENTATIONS, drawn, expected, magnitude
from tests.tolerances import close_sums


@pytest.fixture(scope="module", params=["-march=native", "-mavx2"])
def flags(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The harness' flags, -O3 and the parameter; skips where this machine cannot run the result."""
    flag: str = request.param
    if flag != "-march=native" and flag.removeprefix("-m") not in cpu_flags():
        pytest.skip(f"this machine has no {flag.removeprefix('-m')}")
    return (*FLAGS, "-O3", flag)


def cpu_flags() -> str:
    return subprocess.run(["cat", "/proc/cpuinfo"], capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(("name", "implementation"), IMPLEMENTATIONS)
@settings(max_examples=10)
@given(data=st.data())
def test_vector_code_equals_reference(
    flags: tuple[str, ...], name: str, implementation: str, data: st.DataObject
) -> None:
    case = data.draw(drawn(name))
    chosen = next(i for i in kernel(name).implementations if i.name == implementation)
    bound = bind_kernel(kernel(name), chosen, case.operands, case.attrs)
    assume(not isinstance(bound, str))
    tiles, cores = data.draw(tilings(bound[1])), data.draw(st.integers(1, 8))
    result = run_tiled(kernel(name), chosen, case.operands, case.attrs, tiles, cores, flags=flags)["y"]
    if is_float(name):
        assert close_sums(result, expected(name, case), magnitude(name, case)), flags
    else:
        np.testing.assert_array_equal(result, expected(name, case), flags[-1])
