"""Pads as placement: the padded tensor owns the bytes, what it frames is made inside it, and calls fill the frame.

Works on a graph whose storage orders stand, so that whether everything that reads or writes the framed tensor still
takes it is seen, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_engine.graph import Alias, Buffer, Call, CallAttr, FusedGraph, ViewError
from fusion_engine.joins import turned
from fusion_engine.kernels.descriptor import Kernel
from tiler.binding import bind


@dataclass(frozen=True, slots=True)
class Box:
    """A part of the frame: every `step`-th index of each axis from `start`, `shape` of them."""

    start: tuple[int, ...]
    step: tuple[int, ...]
    shape: tuple[int, ...]


def border(inner: Sequence[int], pads: Sequence[int]) -> list[Box]:
    """The frame around a tensor of shape `inner` in boxes that do not meet; `pads` has the begins, then the ends.

    Single lines at both ends of an axis are one box.
    """
    rank = len(inner)
    shape = [n + pads[a] + pads[rank + a] for a, n in enumerate(inner)]
    at, boxes = [0] * rank, list[Box]()
    for a in range(rank):
        for start, step, count in _ends(inner[a], pads[a], pads[rank + a]):
            boxes.append(Box(_with(at, a, start), _with([1] * rank, a, step), _with(shape, a, count)))
        at[a], shape[a] = pads[a], inner[a]  # the axes that follow leave this one's ends alone
    return boxes


def _ends(inner: int, before: int, after: int) -> list[tuple[int, int, int]]:
    """(start, step, count) of the indices of one axis before and after the inner ones."""
    if before == after == 1:
        return [(0, inner + 1, 2)]
    return [(start, 1, count) for start, count in ((0, before), (before + inner, after)) if count]


def _with(values: Sequence[int], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])


def framing(graph: FusedGraph, kernels: Mapping[str, Kernel]) -> list[Call]:
    """The calls that frame a tensor."""
    return [c for c in graph.calls if kernels[c.kernel].frame is not None]


def with_frame(graph: FusedGraph, kernels: Mapping[str, Kernel], call: Call) -> FusedGraph | str:
    """The graph where `call`'s operand is made inside its result and only the frame is filled; or why that cannot be.

    What else reads the operand then reads it there.
    """
    frame = kernels[call.kernel].frame
    assert frame is not None
    if frame.fill not in kernels:
        return f"there is no kernel {frame.fill}"
    inner, whole = graph.buffer[dict(call.operands)[frame.of]], graph.buffer[call.results[0][1]]
    reason = _why_not_inside(graph, inner)
    if reason is not None:
        return reason
    pads = _numbers(dict(call.attrs)["pads"])
    place = Alias(whole.name, start=pads[: len(inner.shape)])
    found = turned(dict(graph.buffer), inner.name, lambda _: 1, lambda _: True) or {inner.name: inner}
    made = {n: replace(b, order=None) for n, b in found.items()} | {
        inner.name: replace(found[inner.name], order=None, alias=place)
    }
    fills, parts = _fills(graph, call, frame.fill, whole, border(inner.shape, pads))
    buffers = [made.get(b.name, b) for b in graph.buffers]
    at = graph.calls.index(call)
    calls = (*graph.calls[:at], *fills, *graph.calls[at + 1 :])
    result = replace(graph, buffers=(*buffers, *parts), calls=calls)
    return _why_not_taken(graph, result, kernels, inner.name) or result


def _why_not_inside(graph: FusedGraph, inner: Buffer) -> str | None:
    root = graph.buffer[graph.root(inner.name)]
    if root.name in graph.inputs or root.data is not None:
        return f"{root.name} is {'an input' if root.data is None else 'a constant'}: it is there before"
    if root.name in graph.outputs:
        return f"{root.name} is an output: it owns its bytes"
    b = inner
    while b.alias is not None:
        if b.alias.start is not None:
            return f"{b.name} lies inside {b.alias.of}"
        b = graph.buffer[b.alias.of]
    return None


def _fills(
    graph: FusedGraph, call: Call, kernel: str, whole: Buffer, boxes: Sequence[Box]
) -> tuple[list[Call], list[Buffer]]:
    """A call for each box, and the views of the whole that they write."""
    calls, parts = list[Call](), list[Buffer]()
    names = _unused(graph, kernel)
    origin = replace(
        call.provenance, evidence=f"{call.provenance.evidence}; made in place: {call.name} fills the frame"
    )
    for number, box in enumerate(boxes):
        part = replace(
            whole,
            name=f"{whole.name}.{call.name}.frame{number}",
            shape=box.shape,
            order=None,
            alias=Alias(whole.name, start=box.start, step=box.step),
            provenance=origin,
        )
        attrs: dict[str, CallAttr] = {"shape": box.shape, "value": dict(call.attrs)["value"]}
        calls.append(Call(next(names), kernel, (), (("y", part.name),), tuple(attrs.items()), origin))
        parts.append(part)
    return calls, parts


def _unused(graph: FusedGraph, kernel: str) -> Iterator[str]:
    """Names of calls that are not there."""
    number, taken = 0, {c.name for c in graph.calls}
    while True:
        if f"{kernel}_{number}" not in taken:
            yield f"{kernel}_{number}"
        number += 1


def _why_not_taken(before: FusedGraph, after: FusedGraph, kernels: Mapping[str, Kernel], moved: str) -> str | None:
    """Which call does not take the operand where it lies now, if one does not."""
    root = before.root(moved)
    for call in after.calls:
        names = [n for _, n in (*call.operands, *call.results) if n in before.buffer and before.root(n) == root]
        try:
            for n in names:
                after.storage(n)
        except ViewError:
            return f"{call.name} reads it reshaped"
        kernel = kernels[call.kernel]
        if names and all(isinstance(bind(kernel, i, after, call, ()), str) for i in kernel.implementations):
            return f"{call.name} does not take it with gaps between its rows"
    return None


def _numbers(value: CallAttr) -> tuple[int, ...]:
    assert isinstance(value, tuple)
    return tuple(int(v) for v in value)
