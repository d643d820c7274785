"""Every implementation of the kernels over sequences, compiled, at random tilings and team sizes, against its
reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fusion_engine.kernels import reference as load_reference
from tests.harness import bind_kernel, run_tiled, tilings
from tests.kernels_compute.cases import Case, kernel
from tests.kernels_sequence.cases import CASES
from tests.tolerances import close_sums

IMPLEMENTATIONS = [(name, i.name) for name in CASES for i in kernel(name).implementations]


def expected(name: str, case: Case) -> dict[str, np.ndarray]:
    """By result; several come as a tuple."""
    absent = {o.name: None for o in kernel(name).inputs if o.optional}
    made = load_reference(kernel(name))(**(absent | case.operands), **case.attrs)
    results = made if isinstance(made, tuple) else (made,)
    return {o.name: r for o, r in zip(kernel(name).outputs, results, strict=True)}


@pytest.mark.parametrize(("name", "implementation"), IMPLEMENTATIONS)
@given(data=st.data())
def test_c_equals_reference_at_any_tiling(name: str, implementation: str, data: st.DataObject) -> None:
    case = CASES[name](np.random.default_rng(data.draw(st.integers(0, 2**32))))
    chosen = next(i for i in kernel(name).implementations if i.name == implementation)
    orders = {o: data.draw(st.permutations(range(4))) for o, order in chosen.orders.items() if order == "any"}
    bound = bind_kernel(kernel(name), chosen, case.operands, case.attrs, orders=orders)
    assume(not isinstance(bound, str))
    tiles, cores = data.draw(tilings(bound[1])), data.draw(st.integers(1, 8))
    found = run_tiled(kernel(name), chosen, case.operands, case.attrs, tiles, cores, orders=orders)
    for result, reference in expected(name, case).items():
        assert found[result].shape == reference.shape
        magnitude = max(1.0, *(_largest(v) for v in (*case.operands.values(), reference)))
        assert close_sums(found[result], reference, magnitude)


def _largest(v: np.ndarray) -> float:
    return float(np.abs(v[np.isfinite(v)]).max(initial=0.0)) if v.dtype.kind == "f" else 1.0
