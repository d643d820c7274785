"""Groups of any rank: brought into storage order, merged where every operand allows it, padded to a fixed rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fusion_engine.expr import Expr, Name


@dataclass(frozen=True, slots=True)
class GroupAxis:
    """One logical axis of a group as one operand sees it.

    `axis` is the operand's own logical axis (None where its shape is shorter), `index` the coordinate: the group's
    axis itself (`plain`), 0 where the operand broadcasts (`spread`), else an expression of it.
    """

    axis: int | None
    extent: int
    stride: int
    plain: bool
    spread: bool
    index: Expr | None = None


@dataclass(frozen=True, slots=True)
class GroupMember:
    """An operand's part in a group: one `GroupAxis` per logical axis. `free`: a constant, whose strides follow the
    order."""

    operand: str
    axes: tuple[GroupAxis, ...]
    free: bool


@dataclass(frozen=True, slots=True)
class FoldedAxis:
    """One axis of the folded group: the logical axes merged into it, outermost first, and its extent."""

    parts: tuple[int, ...]
    extent: int


def fold_group(
    extents: Sequence[int], members: Sequence[GroupMember], reference: GroupMember, rank: int
) -> tuple[FoldedAxis, ...] | str:
    """The group's axes in the storage order of `reference`, neighbours merged, padded in front to `rank`; or why
    not."""
    order = _storage_order(extents, members, reference)
    folded: list[FoldedAxis] = []
    for axis in order:
        if folded and all(_mergeable(m, folded[-1].parts[-1], axis) for m in members):
            last = folded.pop()
            folded.append(FoldedAxis((*last.parts, axis), last.extent * extents[axis]))
        else:
            folded.append(FoldedAxis((axis,), extents[axis]))
    if len(folded) > rank:
        return f"its operands leave {len(folded)} axes that cannot be merged, it takes {rank}"
    return (FoldedAxis((), 1),) * (rank - len(folded)) + tuple(folded)


def _storage_order(extents: Sequence[int], members: Sequence[GroupMember], reference: GroupMember) -> list[int]:
    """Axes that matter, outermost in `reference` first; extent 1 matters only to an operand with an index of its
    own."""
    kept = [j for j, e in enumerate(extents) if e > 1 or any(m.axes[j].index is not None for m in members)]
    return sorted(kept, key=lambda j: (-reference.axes[j].stride, j))


def _mergeable(m: GroupMember, outer: int, inner: int) -> bool:
    a, b = m.axes[outer], m.axes[inner]
    if a.spread and b.spread:
        return True
    if not (a.plain and b.plain):
        return False
    return m.free or a.stride == b.stride * b.extent


def in_order(member: GroupMember, folded: Sequence[FoldedAxis]) -> bool:
    """Whether the operand's elements run in the folded order, its broadcast axes aside."""
    if member.free:
        return True
    parts = [member.axes[j] for f in folded for j in f.parts]
    strides = [p.stride for p in parts if not p.spread and p.extent > 1]
    return all(a > b for a, b in pairwise(strides))


def plain_axis(axis: int | None, group_extent: int, extent: int, stride: int) -> GroupAxis:
    """An operand's axis under the plain index of the group: it broadcasts where it has extent 1 and the group more."""
    spread = axis is None or (extent == 1 and group_extent > 1)
    return GroupAxis(axis, extent, 0 if spread else stride, not spread, spread)


def axis_names(group: str, rank: int) -> tuple[str, ...]:
    """Names of the folded axes: i0, i1, ..."""
    return tuple(f"{group}{i}" for i in range(rank))


def axis_index(member: GroupMember, folded: FoldedAxis, name: str) -> Expr | None:
    """The coordinate along a folded axis: the axis, or the operand's own expression of it; None where it is always
    0."""
    if not folded.parts or member.axes[folded.parts[-1]].spread:
        return None
    return member.axes[folded.parts[-1]].index or Name(name)
