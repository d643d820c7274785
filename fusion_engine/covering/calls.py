"""Shapes and element types of a candidate's calls, and whether kernels take them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from fusion_engine.covering.types import Candidate, Constant, EmittedCall, Operand
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.sizes import Shape, Sizes, solve_sizes
from fusion_engine.view.types import View


@dataclass(frozen=True, slots=True)
class CallTypes:
    """Shapes and dtypes of the operands and results that are known, by the kernel's names."""

    shapes: Mapping[str, Shape]
    dtypes: Mapping[str, str]


Solved = dict[Hashable, Sizes | str]


def call_types(view: View, candidate: Candidate, call: EmittedCall) -> CallTypes | str:
    """What the call's operands and results are; or why that is not known."""
    temporaries = {t.name: t for t in candidate.temporaries}
    shapes: dict[str, Shape] = {}
    dtypes: dict[str, str] = {}
    named: list[tuple[str, Operand | str]] = [*call.operands, *call.results]
    for name, what in named:
        if isinstance(what, Constant):
            shapes[name], dtypes[name] = tuple(what.data.shape), what.data.dtype.name
            continue
        value = what if isinstance(what, str) else what.name
        if value in temporaries:
            shapes[name], dtypes[name] = temporaries[value].shape, temporaries[value].dtype
            continue
        known = view.values.get(value)
        if known is None or known.static_shape is None or known.dtype is None:
            return f"the shape of {value} is not known"
        shapes[name], dtypes[name] = known.static_shape, known.dtype
    return CallTypes(shapes, dtypes)


def call_sizes(
    view: View, kernels: Mapping[str, Kernel], candidate: Candidate, call: EmittedCall, solved: Solved
) -> tuple[Sizes, CallTypes] | str:
    """The solved signature of one call; or why the kernel does not take it. `solved` keeps equal ones."""
    kernel = kernels.get(call.kernel)
    if kernel is None:
        return f"there is no kernel {call.kernel}"
    types = call_types(view, candidate, call)
    if isinstance(types, str):
        return types
    key = (kernel.name, tuple(types.shapes.items()), tuple(types.dtypes.items()), call.attrs)
    if key not in solved:
        solved[key] = solve_sizes(kernel, types.shapes, types.dtypes, dict(call.attrs))
    sizes = solved[key]
    return sizes if isinstance(sizes, str) else (sizes, types)
