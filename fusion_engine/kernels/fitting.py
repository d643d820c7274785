"""Which implementations take a call, and what it costs untiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from fusion_engine.expr import Expr, evaluate, names, parse_expr
from fusion_engine.kernels.descriptor import Implementation, Kernel, OperandType
from fusion_engine.kernels.sizes import Shape, Sizes


def why_not(implementation: Implementation, sizes: Sizes, isa: Sequence[str] = ()) -> str | None:
    """Why the implementation does not take this call (its instruction set, its `when`), or None."""
    lacking = [i for i in implementation.isa if i not in isa]
    if lacking:
        return f"{implementation.name} needs the instruction set {lacking[0]}"
    for text, condition in implementation.when:
        if not evaluate(condition, sizes.environment):
            return f"{implementation.name} needs {text}"
    return None


def whole_cycles(kernel: Kernel, implementation: Implementation, sizes: Sizes, cores: int) -> float:
    """The `cycles` formula with every axis whole, on `cores` cores; an axis with a greatest tile counts its tiles."""
    env: dict[str, Any] = {**sizes.environment, "cores": cores}
    for operand in kernel.operands:
        env.update(_operand_extents(operand, sizes))
    for axis, extent in kernel.axes:
        env.update(axis_extents(axis, extent, implementation, sizes))
    tiles = 1
    for axis, rule in (implementation.tile or {}).items():
        if rule.max is not None and axis in env:
            most = max(1, int(evaluate(rule.max, env)))
            tiles *= -(-env[axis] // most)
            env[axis] = min(env[axis], most)
    return tiles * float(evaluate(implementation.cycles, env))


def attributes_read(kernel: Kernel) -> frozenset[str]:
    """The attributes that sizes, conditions or costs depend on; of a view kernel all, since they say what is seen."""
    attrs = frozenset(a.name for a in kernel.attrs)
    if kernel.view is not None:
        return attrs
    extents = [_parsed(extent) for _, extent in kernel.axes if not extent.startswith("*")]
    read: list[Expr] = [*extents, *(e for _, e in (*kernel.sizes, *kernel.where))]
    for i in kernel.implementations:
        tiles = [e for rule in (i.tile or {}).values() for e in (rule.step, rule.max) if e is not None]
        read += [i.cycles, *(e for _, e in i.when), *(s.bytes for s in i.scratch), *tiles]
    return attrs & frozenset(("axis",)).union(*(names(e) for e in read))


def axis_extents(axis: str, extent: str, implementation: Implementation, sizes: Sizes) -> dict[str, int]:
    """The extents an axis stands for: of a group `i`, those of i0, i1, ... (padded or merged in front to `rank`) and
    their product as `i`."""
    if not extent.startswith("*"):
        return {axis: int(evaluate(_parsed(extent), sizes.environment))}
    shape = tuple(sizes.sizes[extent[1:]])
    return {axis: prod(shape), **{f"{axis}{n}": d for n, d in enumerate(_to_rank(shape, implementation.rank))}}


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Expr:
    return parse_expr(text)


def _to_rank(shape: Shape, rank: int | None) -> Shape:
    if rank is None:
        return shape
    padded = (1,) * (rank - len(shape)) + shape
    surplus = len(padded) - rank
    return (prod(padded[: surplus + 1]), *padded[surplus + 1 :])


def _operand_extents(operand: OperandType, sizes: Sizes) -> dict[str, int]:
    """`x_h` for named dims, whole; those of groups are known only after binding."""
    known = {d: sizes.sizes.get(d) for d in operand.dims}
    return {f"{operand.name}_{d.lower()}": v for d, v in known.items() if isinstance(v, int)}
