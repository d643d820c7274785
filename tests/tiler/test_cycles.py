"""The `cycles` formulas rank tiles as counted instructions do. Where valgrind is: skipped elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.call_makers import KernelCall
from benchmarks.cycles import measured_calls, ranking
from benchmarks.instructions import Measured, NoValgrindError
from benchmarks.measured_calls import CALLS
from fusion_engine.kernels.descriptor import Kernel
from gap_fuse.proof.tiles import bind_kernel
from tests.tiler.networks import KERNELS


@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if k.implementations])
def test_formulas_rank_tiles_as_instructions_do(name: str) -> None:
    """Formulas that shared rows where the C shares pixels, and in pairs of them, had ranks that meant little (tau 0.2
    to 0.6), and liked tiles of a few pixels; those of elementwise kernels did not know that cores take rows, or 16
    elements of one (0 to 0.25); those with partial sums charged the ending of the last tile in every one (0.69)."""
    if name not in CALLS:
        pytest.skip(f"no call of {name}: add one to benchmarks/measured_calls.py")
    for implementation, measured in _measured(KERNELS[name]):
        found = ranking(measured)
        assert found.tau is None or found.tau >= 0.8 or found.wrong == 0, (implementation, found)
        assert found.lost <= 1.1, (implementation, found)


def test_every_shipped_kernel_is_measured() -> None:
    assert {n for n, k in KERNELS.items() if k.implementations} == set(CALLS)


def _measured(kernel: Kernel) -> list[tuple[str, list[Measured]]]:
    """The last call, and those before it until every implementation has taken one."""
    calls: list[KernelCall] = []
    left = {i.name for i in kernel.implementations}
    for make in reversed(CALLS[kernel.name]):
        call = make(kernel.name)
        taken = {i.name for i in kernel.implementations if _takes(kernel, i.name, call)} & left
        calls += [call] if taken else []
        left -= taken
    assert not left
    try:
        found: list[Mapping[str, list[Measured]]] = list(measured_calls(kernel, calls, tilings=8))
    except NoValgrindError as e:
        pytest.skip(str(e))
    return [(name, measured) for of_call in found for name, measured in of_call.items()]


def _takes(kernel: Kernel, name: str, call: KernelCall) -> bool:
    implementation = next(i for i in kernel.implementations if i.name == name)
    bound = bind_kernel(kernel, implementation, call.operands, call.attrs, orders=call.orders, dtypes=call.dtypes)
    return not isinstance(bound, str)
