"""The dims of one operand before they are bound: their tokens and names, orders of them, blocks of packed constants."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusion_engine.expr import Apply, Expr, Num
from fusion_engine.kernels.descriptor import OperandType
from tiler.groups import FoldedAxis, GroupMember, axis_index


@dataclass(frozen=True, slots=True)
class OperandDim:
    """One dim of an operand before ordering: token in `orders`, name, coordinate, extent and far stride (elements)."""

    token: str
    name: str
    index: Expr | None
    extent: int
    stride: int
    logical: tuple[str, ...]  # names of the logical axes it stands for, outermost first
    grouped: bool = False


def by_tokens(dims: list[OperandDim], tokens: tuple[str, ...]) -> list[OperandDim]:
    """Dims in the order of `tokens`, a blocked dim where its outer token stands, literal extents in their own
    sequence."""
    left = list(dims)
    result: list[OperandDim] = []
    for token in tokens:
        split = _block(token)
        if split is not None and split[1] == "%":
            continue
        base = split[0] if split is not None else token
        if base.startswith("*"):
            taken = [d for d in left if d.grouped and (base == "*" or d.token == base)]
        else:
            taken = [d for d in left if d.token == base][:1]
        result.extend(taken)
        left = [d for d in left if d not in taken or (d.grouped and d not in result)]
    return [*left, *result]


def _block(token: str) -> tuple[str, str, int] | None:
    m = re.fullmatch(r"(\w+)([/%])(\d+)", token)
    return None if m is None else (m[1], m[2], int(m[3]))


def logical_names(o: OperandType, rank: int) -> tuple[str, ...]:
    """Distinct names of an operand's logical axes: its dims (a literal extent by its place), d0, d1, ... inside a
    group."""
    lead = next((i for i, d in enumerate(o.dims) if d.startswith("*")), None)
    if lead is None:
        return tuple(f"d{i}" if d.isdigit() else d.lower() for i, d in enumerate(o.dims))
    tail = len(o.dims) - lead - 1
    named = [*o.dims[:lead], *[""] * (rank - lead - tail), *o.dims[lead + 1 :]]
    return tuple(f"d{i}" if not d or d[0] in "*0123456789" else d.lower() for i, d in enumerate(named))


def group_dim(member: GroupMember, token: str, folded: FoldedAxis, name: str, logical: tuple[str, ...]) -> OperandDim:
    index = axis_index(member, folded, name)
    if index is None:
        return OperandDim(token, name, Num(0), 1, 0, (), True)
    own = [member.axes[j].axis for j in folded.parts]
    stood_for = tuple(logical[i] for i in own if i is not None)
    return OperandDim(token, name, index, folded.extent, member.axes[folded.parts[-1]].stride, stood_for, True)


def packed_dims(dims: list[OperandDim], tokens: tuple[str, ...]) -> list[OperandDim]:
    """A constant's dims as `tokens` pack them: a blocked dim becomes two, a literal extent of 1 none."""
    parts = [_of_token(dims, t) for t in tokens] if any(map(_block, tokens)) else dims
    return [d for d in parts if not (d.token.isdigit() and d.extent == 1)]


def _of_token(dims: list[OperandDim], token: str) -> OperandDim:
    split = _block(token)
    if split is None:
        return next(d for d in dims if d.token == token)
    base, kind, size = split
    d = next(x for x in dims if x.token == base)
    if kind == "%":
        return OperandDim(token, token, None, size, 0, (token,))
    index = None if d.index is None else Apply("//", (d.index, Num(size)))
    return OperandDim(token, token, index, -(-d.extent // size), 0, (token,))
