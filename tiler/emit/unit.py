"""One call with all that its C text is made from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fusion_engine.graph import Call
from fusion_engine.kernels.descriptor import Implementation, Kernel
from tiler.emit.affine import Affine, number, term
from tiler.emit.args import ArgMember, args_members
from tiler.emit.boxes import AxisRange, DimBox, operand_box
from tiler.emit.fill import Tile
from tiler.schedule import CallPlan, Loop, OperandPlan


@dataclass(frozen=True)
class CallUnit:
    """A call, its plan and its kernel. `name` is unique and a C identifier, `symbol` the kernel's function."""

    name: str
    call: Call
    plan: CallPlan
    kernel: Kernel
    implementation: Implementation
    symbol: str
    variadic: int
    rolled: tuple[str, int] | None = None  # in a rolled group: the axis that walks rows, its values a row
    row_bytes: Mapping[str, int] = field(default_factory=dict)  # of the roots that lie in rings
    fetches: tuple[tuple[int, int], ...] = ((0, 0),)  # at each step: fetches from L3 started and arrived

    @cached_property
    def ranges(self) -> Mapping[str, AxisRange]:
        """Where each axis stands in the current tile; unsplit axes are whole."""
        whole = {a: AxisRange(number(0), number(n)) for a, n in self.plan.axes.items()}
        if self.rolled is not None:
            axis, unit = self.rolled
            return whole | {axis: AxisRange(term("from") * unit, (term("to") - term("from")) * unit)}
        return whole | {loop.axis: AxisRange(term(loop.axis), _size(loop)) for loop in self.plan.loops}

    @cached_property
    def boxes(self) -> Mapping[str, tuple[DimBox, ...]]:
        """Per operand, the box of the current tile."""
        return {o.operand.name: operand_box(o.operand, self.ranges, self.plan.axes) for o in self.plan.operands}

    @cached_property
    def members(self) -> tuple[ArgMember, ...]:
        return args_members(self.kernel, self.implementation, self.variadic)

    @cached_property
    def tile(self) -> Tile:
        operands = {o.operand.name: o.operand for o in self.plan.operands}
        stays = frozenset(o.operand.name for o in self.plan.operands if o.level in ("l1", "ring"))
        return Tile(self.kernel, operands, self.boxes, self.ranges, self.plan.attrs, stays)  # type: ignore[arg-type]

    @property
    def inputs(self) -> tuple[OperandPlan, ...]:
        return tuple(o for o in self.plan.operands if o.operand.role != "out")

    @property
    def outputs(self) -> tuple[OperandPlan, ...]:
        return tuple(o for o in self.plan.operands if o.operand.role == "out")

    @property
    def reductions(self) -> tuple[Loop, ...]:
        """Split loops over which partial sums are kept."""
        accumulate = self.implementation.accumulate
        over = set() if accumulate is None else set(accumulate.over)
        groups = {axis for axis, extent in self.kernel.axes if extent.startswith("*")}
        members = {f"{g}{i}" for g in groups & over for i in range(self.implementation.rank or 0)}
        return tuple(loop for loop in self.plan.loops if loop.axis in over | members)

    def loops_of(self, texts: Iterable[Affine | str]) -> tuple[Loop, ...]:
        """The loops that the C texts depend on, outermost first."""
        read = words(texts)
        if self.rolled is not None:
            return tuple(Loop(word, 1, 1) for word in ("from", "to") if word in read)
        return tuple(loop for loop in self.plan.loops if loop.axis in read or f"{loop.axis}_n" in read)


def _size(loop: Loop) -> Affine:
    return number(loop.tile) if loop.extent % loop.tile == 0 else term(f"{loop.axis}_n")


def size_lines(loops: Sequence[Loop], read: Iterable[Affine | str]) -> list[str]:
    """The definition of each ragged tile's size that the texts read."""
    used = words(read)
    return [
        f"const int32_t {loop.axis}_n = GF_MIN({loop.tile}, {loop.extent} - {loop.axis});"
        for loop in loops
        if f"{loop.axis}_n" in used
    ]


def words(texts: Iterable[Affine | str]) -> frozenset[str]:
    """The C identifiers in some texts."""
    return frozenset(w for t in texts for w in re.findall(r"[A-Za-z_]\w*", str(t)))


def c_names(names: Sequence[str]) -> dict[str, str]:
    """A C identifier for each name, all different and short enough to read."""
    taken: set[str] = set()
    result: dict[str, str] = {}
    for name in names:
        base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[-48:].strip("_") or "call"
        unique, count = base, 1
        while unique in taken:
            count += 1
            unique = f"{base}_{count}"
        taken.add(unique)
        result[name] = unique
    return result
