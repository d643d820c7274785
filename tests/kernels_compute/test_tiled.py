"""Every implementation of the dense kernels, compiled, at random tilings and team sizes, against its reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fusion_engine.expr import evaluate
from fusion_engine.kernels import reference as load_reference
from fusion_engine.kernels.sizes import fill_attrs
from tests.harness import bind_kernel, run_tiled, tilings
from tests.kernels_compute.cases import FAMILIES, Case, cases, is_float, kernel, sums
from tests.tolerances import close_sums

NAMES = [f"{family}_{t}" for family in FAMILIES for t in ("f32", "i8")]
IMPLEMENTATIONS = [(name, i.name) for name in NAMES for i in kernel(name).implementations]


def expected(name: str, case: Case) -> np.ndarray:
    return load_reference(kernel(name))(**case.operands, **fill_attrs(kernel(name), case.attrs))


def drawn(name: str) -> st.SearchStrategy[Case]:
    """Calls of every form: convolutions also with an addend."""
    adds = any(o.name == "addend" for o in kernel(name).inputs)
    return cases(name) | sums(name) if adds else cases(name)


def magnitude(name: str, case: Case) -> np.ndarray:
    """The sum of the absolute values of everything that a float result adds up."""
    absolute = {n: np.abs(v) for n, v in case.operands.items() if n not in ("low", "high")}
    free = {n: np.inf * (-1 if n.endswith("lo") else 1) for n in ("lo", "hi", "sum_lo", "sum_hi")}
    attrs = fill_attrs(kernel(name), case.attrs)
    return load_reference(kernel(name))(**absolute, **(attrs | {n: v for n, v in free.items() if n in attrs}))


@pytest.mark.parametrize(("name", "implementation"), IMPLEMENTATIONS)
@given(data=st.data())
def test_c_equals_reference_at_any_tiling(name: str, implementation: str, data: st.DataObject) -> None:
    case = data.draw(drawn(name))
    chosen = next(i for i in kernel(name).implementations if i.name == implementation)
    orders = {"x": data.draw(st.permutations(range(4)))} if chosen.orders.get("x") == "any" else None
    bound = bind_kernel(kernel(name), chosen, case.operands, case.attrs, orders=orders)
    assume(not isinstance(bound, str))
    tiles, cores = data.draw(tilings(bound[1])), data.draw(st.integers(1, 8))
    result = run_tiled(kernel(name), chosen, case.operands, case.attrs, tiles, cores, orders=orders)["y"]
    reference = expected(name, case)
    assert result.shape == reference.shape
    if is_float(name):
        assert close_sums(result, reference, magnitude(name, case))
    else:
        np.testing.assert_array_equal(result, reference)


@pytest.mark.parametrize("t", ["f32", "i8"])
def test_dense_layers_have_a_fast_implementation_that_is_the_cheapest(t: str) -> None:
    """Where layouts allow it, the model's costs prefer the vector code that measures fastest."""
    given = {"addend": 0, "low": 0, "cores": 8}
    env = given | {"n": 1, "g": 1, "k": 32, "p": 16, "q": 16, "c": 32, "r": 3, "s": 3, "CG": 32}
    cost = {i.name: evaluate(i.cycles, env) for i in kernel(f"conv2d_{t}").implementations}
    assert min(cost, key=cost.__getitem__) == "blocked"
    first = env | {"c": 1, "CG": 1, "r": 10, "s": 4, "k": 64}
    cost = {i.name: evaluate(i.cycles, first) for i in kernel(f"conv2d_{t}").implementations}
    assert min(cost, key=cost.__getitem__) == "patch"
