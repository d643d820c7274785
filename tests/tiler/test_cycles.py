"""The `cycles` formulas rank tiles as counted instructions do. Where valgrind is: skipped elsewhere."""

from __future__ import annotations

import pytest

from benchmarks.cycles import rankings
from benchmarks.instructions import NoValgrindError
from benchmarks.measured_calls import CALLS
from tests.tiler.networks import KERNELS

# The second call of each: small, of odd extents. The benchmark has the others, and every kernel of CALLS.
NAMES = ("pointwise_i8", "depthwise_i8", "matmul_f32", "maxpool_i8", "softmax_f32", "add_i8")


@pytest.mark.parametrize("name", NAMES)
def test_formulas_rank_tiles_as_instructions_do(name: str) -> None:
    """Formulas that shared rows where the C shares pixels, and in pairs of them, had ranks that meant little (tau 0.2
    to 0.6), and liked tiles of a few pixels."""
    call = CALLS[name][1](name)
    try:
        found = dict(rankings(KERNELS[name], [call], tilings=10))
    except NoValgrindError as e:
        pytest.skip(str(e))
    for implementation, of_calls in found.items():
        for r in of_calls:
            assert r.tau is None or r.tau >= 0.6, implementation
            assert r.lost <= 1.1, implementation
