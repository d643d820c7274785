"""Every implementation of the kernels without weights, compiled, at random tilings and team sizes, against its
reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fusion_engine.kernels import load_kernels
from fusion_engine.kernels import reference as load_reference
from tests.harness import bind_kernel, run_tiled, tilings
from tests.kernels_compute.cases import FAMILIES, ROOM, Case, kernel
from tests.kernels_other.cases import CASES
from tests.kernels_sequence.cases import CASES as SEQUENCES
from tests.tolerances import close_sums

IMPLEMENTATIONS = [(name, i.name) for name in CASES for i in kernel(name).implementations]


def expected(name: str, case: Case) -> np.ndarray | tuple[np.ndarray, ...]:
    if any(o.variadic for o in kernel(name).inputs):
        return load_reference(kernel(name))(x=tuple(case.operands.values()), **case.attrs)
    absent = {o.name: None for o in kernel(name).inputs if o.optional}
    return load_reference(kernel(name))(**(absent | case.operands), **case.attrs)


def result_dtypes(case: Case) -> dict[str, str]:
    return {"y": str(case.attrs["to"])} if "to" in case.attrs else {}


def magnitude(case: Case, result: np.ndarray) -> float:
    """Nothing in these kernels sums more than the operands' and the result's largest values."""
    arrays = [*case.operands.values(), result]
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in arrays if a.dtype.kind == "f"), default=0.0)


@pytest.mark.parametrize(("name", "implementation"), IMPLEMENTATIONS)
@given(data=st.data())
def test_c_equals_reference_at_any_tiling(name: str, implementation: str, data: st.DataObject) -> None:
    case = CASES[name](np.random.default_rng(data.draw(st.integers(0, 2**32))))
    chosen = next(i for i in kernel(name).implementations if i.name == implementation)
    bound = bind_kernel(kernel(name), chosen, case.operands, case.attrs, dtypes=result_dtypes(case))
    assume(not isinstance(bound, str))
    tiles, cores = data.draw(tilings(bound[1])), data.draw(st.integers(1, 8))
    results = run_tiled(kernel(name), chosen, case.operands, case.attrs, tiles, cores, dtypes=result_dtypes(case))
    answers = expected(name, case)
    references = answers if isinstance(answers, tuple) else (answers,)
    for operand, reference in zip(kernel(name).outputs, references, strict=True):
        assert_equal(case, results[operand.name], reference)


def assert_equal(case: Case, result: np.ndarray, reference: np.ndarray) -> None:
    assert result.shape == reference.shape
    assert result.dtype == reference.dtype
    if result.dtype.kind == "f":
        assert close_sums(result, reference, magnitude(case, reference))
    else:
        np.testing.assert_array_equal(result, reference)


def test_every_kernel_with_c_is_tested() -> None:
    compiled = {name for name, k in load_kernels([ROOM]).items() if k.view is None}
    dense = {f"{family}_{t}" for family in FAMILIES for t in ("f32", "i8")}
    assert compiled - dense - set(CASES) - set(SEQUENCES) == set()
