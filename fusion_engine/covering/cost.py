"""What a kernel call costs before tiling: cycles of the best implementation, plus bytes of what it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, prod

import numpy as np

from fusion_engine.covering.types import Candidate
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.fitting import whole_cycles, why_not
from fusion_engine.kernels.sizes import Sizes

VIEW = 1.0  # a view moves nothing, but one fewer is better


def call_cost(cores: int = 8, isa: Sequence[str] = ()) -> Callable[[Kernel, Sizes], float]:
    """The price of one call on `cores` cores with instruction sets `isa`: cycles, every axis whole, and result bytes.

    Infinite where no implementation takes the call: the cover then leaves the candidate out.
    """

    def price(kernel: Kernel, sizes: Sizes) -> float:
        if kernel.view is not None:
            return VIEW
        fitting = [i for i in kernel.implementations if why_not(i, sizes, isa) is None]
        written = sum(prod(s) * np.dtype(sizes.dtypes[n]).itemsize for n, s in sizes.shapes.items())
        return min((whole_cycles(kernel, i, sizes, cores) for i in fitting), default=inf) + written

    return price


def kernel_calls(kernels: Mapping[str, Kernel]) -> Callable[[Candidate], int]:
    """Counts the calls of a candidate that run code; views do not."""
    known: dict[Candidate, int] = {}  # a candidate that repeats another has its kernels

    def count(candidate: Candidate) -> int:
        made = candidate if candidate.like is None else candidate.like
        found = known.get(made)
        if found is None:
            found = known[made] = sum(1 for kernel in made.kernels if kernels[kernel].view is None)
        return found

    return count
