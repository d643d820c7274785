"""The groups of any rank of one call: folded, and every axis' name and extent."""

from __future__ import annotations

from fusion_engine.expr import Name, evaluate, parse_expr
from tiler.actuals import Actual, DeclinedError, Signature
from tiler.groups import FoldedAxis, GroupMember, axis_names, fold_group, plain_axis


class CallAxes:
    """The axes of a call. `members` and `folded` by group axis, `names` its folded axes; `extents` of all axes, in
    order."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.kernel, self.implementation, self.env = signature.kernel, signature.implementation, signature.env
        self.members = self._members()
        self.folded = self._fold()
        self.names = {g: axis_names(g, len(f)) for g, f in self.folded.items()}
        self.extents = self._extents()

    def expand(self, axes: tuple[str, ...]) -> tuple[str, ...]:
        """Group axes by the names of their folded axes."""
        return tuple(n for a in axes for n in self.names.get(a, (a,)))

    def _members(self) -> dict[str, list[GroupMember]]:
        """Per group axis, every operand that it indexes."""
        result: dict[str, list[GroupMember]] = {g: [] for g, extent in self.kernel.axes if extent.startswith("*")}
        for a in self.signature.actuals:
            for group, first, length in self._group_positions(a):
                result[group].append(self._member(a, group, first, length))
        return result

    def _group_positions(self, a: Actual) -> list[tuple[str, int, int]]:
        """(group axis, first logical axis, how many) of every group among the operand's dims."""
        result, position = [], 0
        for d, index in zip(a.type.dims, self.signature.index(a), strict=True):
            length = self.signature.length(a, d)
            if d.startswith("*"):
                if not isinstance(index, Name) or index.name not in dict(self.kernel.axes):
                    raise DeclinedError(f"the index of the group {d} of {a.name} is not an axis")
                result.append((index.name, position, length))
            position += length
        return result

    def _member(self, a: Actual, group: str, first: int, length: int) -> GroupMember:
        extents = self._group_extents(group)
        lead = len(extents) - length
        if lead < 0:
            raise DeclinedError(f"{a.name} has more axes than the group {group}")
        axes = []
        for j, extent in enumerate(extents):
            own = first + j - lead if j >= lead else None
            size = 1 if own is None else a.shape[own]
            stride = 0 if own is None else a.storage.strides[own]
            if size not in (1, extent):
                raise DeclinedError(f"{a.name} has extent {size} where the group {group} has {extent}")
            axes.append(plain_axis(own, extent, size, stride))
        return GroupMember(a.name, tuple(axes), a.constant)

    def _group_extents(self, group: str) -> tuple[int, ...]:
        return tuple(self.env[dict(self.kernel.axes)[group][1:]])

    def _fold(self) -> dict[str, tuple[FoldedAxis, ...]]:
        result = {}
        for group, members in self.members.items():
            rank = self.implementation.rank
            if rank is None:
                raise DeclinedError("it takes groups of any rank but states no `rank`")
            outputs = {a.name for a in self.signature.actuals if a.role == "out"}
            reference = next((m for m in members if m.operand in outputs), members[0])
            folded = fold_group(self._group_extents(group), members, reference, rank)
            if isinstance(folded, str):
                raise DeclinedError(folded)
            result[group] = folded
        return result

    def single(self) -> dict[str, int]:
        """Axes of one step: their only value."""
        return {
            a: 0
            for a, text in self.kernel.axes
            if not text.startswith("*") and int(evaluate(parse_expr(text), self.env)) == 1
        }

    def _extents(self) -> dict[str, int]:
        result: dict[str, int] = {}
        for axis, text in self.kernel.axes:
            if text.startswith("*"):
                names_ = self.names[axis]
                result.update({n: f.extent for n, f in zip(names_, self.folded[axis], strict=True)})
            else:
                result[axis] = int(evaluate(parse_expr(text), self.env))
        return result
