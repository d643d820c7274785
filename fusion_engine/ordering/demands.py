"""Storage orders as calls see them: what an implementation demands, and whether resolved strides meet it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion_engine.graph import Alias, Call
from fusion_engine.kernels.descriptor import Implementation, Kernel, OperandType

Shape = tuple[int, ...]
Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An order of all axes, outermost first; `loose` ones (of a group) may lie anywhere but innermost."""

    axes: Order
    loose: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Demand:
    """What an implementation wants of an operand: an order, or to run as others do (`tied` names what they share)."""

    operand: str  # the call's name of it (x, or x0 of a variadic one)
    wanted: Wanted | None
    tied: str = ""


def demands(kernel: Kernel, implementation: Implementation, call: Call, shapes: Mapping[str, Shape]) -> list[Demand]:
    """The demands on every operand and result that has a shape in `shapes` (constants are left out of it)."""
    axis = dict(call.attrs).get("axis")
    result = []
    for o in kernel.operands:
        for name in _instances(o, shapes):
            result.append(_demand(o, name, implementation.orders.get(o.name), shapes[name], axis))
    return result


def _instances(o: OperandType, shapes: Mapping[str, Shape]) -> list[str]:
    if not o.variadic:
        return [o.name] if o.name in shapes else []
    return [n for n in shapes if n.startswith(o.name) and n[len(o.name) :].isdigit()]


def _demand(o: OperandType, name: str, order: tuple[str, ...] | str | None, shape: Shape, axis: object) -> Demand:
    if isinstance(order, str):
        return Demand(name, None, o.name if order == "any" else order.removeprefix("same:"))
    if order is None:
        return Demand(name, Wanted(tuple(range(len(shape)))))
    return Demand(name, wanted_order(o, order, len(shape), axis))


def wanted_order(o: OperandType, order: Sequence[str], rank: int, axis: object = None) -> Wanted:
    """The axes of an order such as `n h w c` or `*b m k`."""
    axes_of = dim_axes(o, rank, axis)
    seen: dict[str, int] = {}
    axes: list[int] = []
    for token in order:
        choices = axes_of[token]
        at = seen.get(token, 0)
        seen[token] = at + 1
        axes.extend(choices[min(at, len(choices) - 1)])
    loose = (a for token, choices in axes_of.items() if token.startswith("*") for c in choices for a in c)
    return Wanted(tuple(axes), frozenset(loose))


def dim_axes(o: OperandType, rank: int, axis: object = None) -> dict[str, list[tuple[int, ...]]]:
    """For each dim name (lower case, `*b` for groups) the axes it stands for, one entry per occurrence."""
    groups = sum(d.startswith("*") for d in o.dims)
    spare = rank - (len(o.dims) - groups)
    lengths = [spare] if groups == 1 else [axis, spare - axis] if groups == 2 and isinstance(axis, int) else []
    result: dict[str, list[tuple[int, ...]]] = {}
    position = 0
    for d in o.dims:
        length = lengths.pop(0) if d.startswith("*") else 1
        result.setdefault(d.lower(), []).append(tuple(range(position, position + length)))
        position += length
    return result


# ---- resolved strides ----


def running_order(shape: Shape, strides: Sequence[int]) -> Order:
    """The axes of extent over 1 from the greatest stride to the least (ties: as they stand)."""
    return tuple(sorted((a for a, d in enumerate(shape) if d != 1), key=lambda a: (-abs(strides[a]), a)))


def meets(wanted: Wanted, shape: Shape, order: Order) -> bool:
    """Whether axes running in `order` (none of extent 1) are as wanted: firm ones in sequence, the innermost last."""
    real = [a for a in wanted.axes if shape[a] != 1]
    firm = [a for a in real if a not in wanted.loose]
    return [a for a in order if a not in wanted.loose] == firm and (not real or order[-1] == real[-1])


def agree(shape_a: Shape, order_a: Order, shape_b: Shape, order_b: Order) -> bool:
    """Whether two operands, aligned right as numpy broadcasts, run through their common axes in the same order."""
    a = [axis - len(shape_a) for axis in order_a]
    b = [axis - len(shape_b) for axis in order_b]
    return [x for x in a if x in b] == [x for x in b if x in a]


def canonical(shape: Shape, order: Order) -> Order:
    """The same bytes for every order that differs only in axes of extent 1: those first, ascending."""
    return (*(a for a in range(len(shape)) if shape[a] == 1), *(a for a in order if shape[a] != 1))


# ---- orders through views ----


def pull(alias: Alias, shape: Shape, of_shape: Shape, order: Order) -> Order | None:
    """The order of `of` under which its view (of `shape`) runs in `order`; None where a reshape allows none."""
    if alias.perm is not None:
        return tuple(alias.perm[a] for a in order)
    if alias.start is not None:
        return order
    groups = reshape_groups(shape, of_shape)
    return None if groups is None else _regroup(groups, shape, of_shape, order)


def reshape_groups(shape: Shape, of_shape: Shape) -> list[tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """The least runs of axes of both shapes with equal products: [(axes of the view, axes of `of`)], ones left out."""
    mine = [a for a, d in enumerate(shape) if d != 1]
    its = [a for a, d in enumerate(of_shape) if d != 1]
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = j = 0
    while i < len(mine) and j < len(its):
        first_i, first_j = i, j
        a, b = shape[mine[i]], of_shape[its[j]]
        i, j = i + 1, j + 1
        while a != b:
            if a < b and i < len(mine):
                a, i = a * shape[mine[i]], i + 1
            elif b < a and j < len(its):
                b, j = b * of_shape[its[j]], j + 1
            else:
                return None
        groups.append((tuple(mine[first_i:i]), tuple(its[first_j:j])))
    return groups if i == len(mine) and j == len(its) else None


def _regroup(
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]], shape: Shape, of_shape: Shape, order: Order
) -> Order | None:
    """Follow `order` group by group; each group must stand together, in row-major sequence."""
    running = [a for a in order if shape[a] != 1]
    result: list[int] = [a for a, d in enumerate(of_shape) if d == 1]
    position = 0
    while position < len(running):
        group = next(g for g in groups if running[position] in g[0])
        if tuple(running[position : position + len(group[0])]) != group[0]:
            return None
        result.extend(group[1])
        position += len(group[0])
    return tuple(result)
