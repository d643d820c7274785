"""Whether every tile of a call makes one unbroken part of each result: what a tile stores is a box."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from fusion_engine.expr import Expr, evaluate, names
from tiler.bound import BoundAxis
from tiler.schedule import BoundOperand


def why_torn(result: BoundOperand, axes: tuple[BoundAxis, ...]) -> str | None:
    """Why a tile may make scattered elements of the result, or None: two axes move one dim, as in `y[g*8 + k]`, and the
    inner one can be cut while a tile has several of the outer one."""
    by_name = {a.name: a for a in axes}
    for dim, index in zip(result.dims, result.index, strict=True):
        moving = [by_name[n] for n in sorted(names(index) & by_name.keys())] if index is not None else []
        wide = [a for a in moving if a.extent > 1]
        if index is None or len(wide) < 2:
            continue
        wide.sort(key=lambda a: _slope(index, a.name, by_name))
        for inner, outer in combinations(wide, 2):
            if not inner.whole and outer.limit != 1:
                return (
                    f"a tile of {inner.name} and {outer.name} makes no one part of {result.name} along {dim}: "
                    f"the kernel needs `whole: [{inner.name}]` or `tile: {{{outer.name}: {{max: 1}}}}`"
                )
    return None


def _slope(index: Expr, axis: str, axes: Mapping[str, BoundAxis]) -> int:
    zero = dict.fromkeys(axes, 0)
    return abs(int(evaluate(index, {**zero, axis: 1})) - int(evaluate(index, zero)))
