"""What a candidate costs: cycles of its calls, untiled, plus bytes of what they write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from fusion_engine.covering.calls import call_sizes
from fusion_engine.covering.types import Candidate, EmittedCall
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.fitting import whole_cycles, why_not
from fusion_engine.view.types import View


def candidate_cost(
    view: View, kernels: Mapping[str, Kernel], candidate: Candidate, cores: int = 8, isa: Sequence[str] = ()
) -> float | str:
    """Cycles of the best implementation of each call on `cores` cores, plus bytes of the results; views cost nothing.

    Returns the reason where a call fits no implementation.
    """
    total = 0.0
    for call in candidate.calls:
        price = call_cost(view, kernels, candidate, call, cores, isa)
        if isinstance(price, str):
            return price
        total += price
    return total


def call_cost(
    view: View,
    kernels: Mapping[str, Kernel],
    candidate: Candidate,
    call: EmittedCall,
    cores: int,
    isa: Sequence[str],
) -> float | str:
    """One call's cycles and result bytes, or the reason why no implementation takes it."""
    solved = call_sizes(view, kernels, candidate, call)
    if isinstance(solved, str):
        return solved
    sizes, types = solved
    kernel = kernels[call.kernel]
    if kernel.view is not None:
        return 0.0
    reasons = [(i, why_not(i, sizes, isa)) for i in kernel.implementations]
    fitting = [i for i, reason in reasons if reason is None]
    if not fitting:
        return f"no implementation of {kernel.name} fits: " + "; ".join(r for _, r in reasons if r)
    written = sum(prod(s) * np.dtype(sizes.dtypes[n]).itemsize for n, s in sizes.shapes.items())
    return min(whole_cycles(kernel, i, sizes, types.shapes, cores) for i in fitting) + written


def kernel_calls(kernels: Mapping[str, Kernel], candidate: Candidate) -> int:
    """How many of the candidate's calls run code; views do not."""
    return sum(1 for c in candidate.calls if c.kernel in kernels and kernels[c.kernel].view is None)
