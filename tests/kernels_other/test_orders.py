"""Storage orders: copies between any two, elementwise kernels in any common one, and what once went wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import bind_kernel, run_tiled, tilings
from tests.kernels_compute.cases import Case, kernel
from tests.kernels_other.drawn import bytes_, clamp, floats, zero
from tests.kernels_other.test_tiled import expected

TYPES = ["int8", "int16", "float32", "int64"]


@given(data=st.data())
def test_copy_between_any_two_orders(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shape = tuple(int(v) for v in rng.integers(1, data.draw(st.sampled_from([4, 40])), rng.integers(1, 5)))
    x = rng.integers(0, 100, shape).astype(rng.choice(TYPES))
    orders = {name: tuple(int(i) for i in rng.permutation(len(shape))) for name in ("x", "y")}
    chosen = kernel("copy").implementations[0]
    bound = bind_kernel(kernel("copy"), chosen, {"x": x}, {}, orders=orders)
    assert not isinstance(bound, str), bound
    tiles, cores = data.draw(tilings(bound[1])), data.draw(st.integers(1, 8))
    result = run_tiled(kernel("copy"), chosen, {"x": x}, {}, tiles, cores, orders=orders)["y"]
    np.testing.assert_array_equal(result, x)


def test_copy_of_six_axes() -> None:
    x = np.random.default_rng(0).integers(0, 100, (2, 3, 4, 2, 3, 5)).astype(np.int8)
    orders = {"x": (0, 1, 2, 3, 4, 5), "y": (5, 3, 1, 4, 2, 0)}
    chosen = kernel("copy").implementations[0]
    np.testing.assert_array_equal(run_tiled(kernel("copy"), chosen, {"x": x}, {}, cores=3, orders=orders)["y"], x)


@pytest.mark.parametrize("name", ["add_i8", "add_f32", "requantize_i8", "pad_i8"])
@given(data=st.data())
def test_any_common_order(name: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shape = tuple(int(v) for v in rng.integers(2, 6, 4))
    case = {
        "add_i8": lambda: Case(
            {"a": bytes_(rng, shape), "b": bytes_(rng, shape)},
            {"ma": 2**30, "mb": 2**29 + 1, "shift": 31, "a_zero": zero(rng), "b_zero": 3} | clamp(rng, True),
        ),
        "add_f32": lambda: Case({"a": floats(rng, shape), "b": floats(rng, shape)}, clamp(rng, False)),
        "requantize_i8": lambda: Case({"x": bytes_(rng, shape)}, {"mul": 2**30 + 5, "shift": 30, "x_zero": zero(rng)}),
        "pad_i8": lambda: Case(
            {"x": bytes_(rng, shape)}, {"pads": tuple(int(v) for v in rng.integers(0, 3, 8)), "value": 7}
        ),
    }[name]()
    order = tuple(int(i) for i in rng.permutation(4))
    k = kernel(name)
    orders = {o.name: order for o in k.operands}
    bound = bind_kernel(k, k.implementations[0], case.operands, case.attrs, orders=orders)
    assert not isinstance(bound, str), bound
    tiles, cores = data.draw(tilings(bound[1])), data.draw(st.integers(1, 8))
    result = run_tiled(k, k.implementations[0], case.operands, case.attrs, tiles, cores, orders=orders)["y"]
    filled = Case(case.operands, dict(bound[1].attrs))
    np.testing.assert_array_equal(result, expected(name, filled))


@pytest.mark.parametrize("name", ["pad_i8", "pad_f32"])
def test_a_tile_wholly_in_the_frame(name: str) -> None:
    """More columns are missing in front of such a tile than it has: it once wrote behind its line."""
    x = np.ones((1, 1, 2, 2), np.int8 if name == "pad_i8" else np.float32)
    attrs = {"pads": (0, 0, 0, 3, 0, 0, 0, 3), "value": 5}
    result = run_tiled(kernel(name), kernel(name).implementations[0], {"x": x}, attrs, {"q": 1}, cores=1)["y"]
    np.testing.assert_array_equal(result, expected(name, Case({"x": x}, attrs)))
