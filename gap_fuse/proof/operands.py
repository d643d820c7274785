"""Operands that are no data but say what an operator does (axes, pads, shapes, indices), drawn to be legal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gap_fuse.proof.choices import Choices
from gap_fuse.proof.draft import Draft

RECURRENT = ("GRU", "LSTM", "RNN")
Shape = tuple[int, ...]
Made = np.ndarray | None


def settings(
    draft: Draft, op: str, at: int, inputs: list[str | None], dtype: str | None = None
) -> Callable[[], Made] | None:
    """How to draw operand `at` of `op` behind its first `inputs`; None where that operand is data. `dtype` is the
    element type that the rule gives it."""
    if not inputs or inputs[0] is None:
        return None
    first, shape = inputs[0], draft.shape(inputs[0])
    earlier = [draft.constants.get(name) if name else None for name in inputs]
    if op in ("QuantizeLinear", "DequantizeLinear"):
        return lambda: _scale(draft, shape) if at == 1 else _zero(draft, op, first, earlier[1], dtype)
    draw = DRAWN.get(("Reduce" if op.startswith("Reduce") else op, at))
    return None if draw is None else lambda: draw(draft.choices, shape, earlier)


def index_limits(draft: Draft, op: str, inputs: list[str | None], axis: int) -> tuple[int, int] | None:
    """Between which values a second operand lies: indices, and how far bits are shifted."""
    if op == "BitShift":
        return 0, 7
    if op != "Gather" or not inputs or inputs[0] is None:
        return None
    shape = draft.shape(inputs[0])
    extent = shape[axis] if -len(shape) <= axis < len(shape) else 1
    return -extent, extent - 1


def _ints(values: list[int]) -> np.ndarray:
    return np.asarray(values, np.int64)


def _axes(c: Choices, shape: Shape, _: list[Made]) -> Made:
    if not shape:
        return _ints([])
    first = c.below(len(shape))
    return _ints([a - len(shape) if c.chance() else a for a in range(first, c.between(first, len(shape) - 1) + 1)])


def _one_axes(_choices: Choices, shape: Shape, _: list[Made]) -> Made:
    """Axes of extent 1, for Squeeze."""
    return _ints([i for i, d in enumerate(shape) if d == 1])


def _new_axes(c: Choices, shape: Shape, _: list[Made]) -> Made:
    return _ints([c.between(0, len(shape))])


def _reshaped(c: Choices, shape: Shape, _: list[Made]) -> Made:
    """Two neighbouring axes merged, one split, or all flattened."""
    if len(shape) < 2 or c.chance():
        total = int(np.prod(shape))
        part = c.pick([d for d in range(1, total + 1) if total % d == 0])
        return _ints([part, total // part])
    at = c.below(len(shape) - 1)
    return _ints([*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]])


def _expanded(c: Choices, shape: Shape, _: list[Made]) -> Made:
    wider = [c.between(1, 3) if d == 1 else d for d in shape]
    return _ints([*(c.between(1, 3) for _ in range(c.below(2))), *wider])


def _repeats(c: Choices, shape: Shape, _: list[Made]) -> Made:
    return _ints([c.between(1, 3) if d == 1 else 1 for d in shape])


def _pads(c: Choices, shape: Shape, _: list[Made]) -> Made:
    """Of the last two axes, not all zero where one has two elements; now and then some that cut off."""
    least = -1 if c.below(4) == 0 else 0

    def side() -> list[int]:
        ends = [(least if d > 2 else 0, min(2, d - 1)) if i >= len(shape) - 2 else (0, 0) for i, d in enumerate(shape)]
        return [c.between(low, high) for low, high in ends]

    pads = [*side(), *side()]
    wide = [i for i, d in enumerate(shape) if i >= len(shape) - 2 and d > 1]
    if wide and not any(pads):
        pads[len(shape) + c.pick(wide)] = 1
    return _ints(pads)


def _starts(c: Choices, shape: Shape, _: list[Made]) -> Made:
    return _ints([c.between(-d, d - 1) for d in shape])


def _ends(c: Choices, shape: Shape, earlier: list[Made]) -> Made:
    starts = earlier[1] if len(earlier) > 1 and earlier[1] is not None else _ints([0] * len(shape))
    whole = [int(s) + d if s < 0 else int(s) for s, d in zip(starts, shape, strict=True)]
    return _ints([c.pick([d, 2**62]) if s + 1 >= d else c.between(s + 1, d) for s, d in zip(whole, shape, strict=True)])


def _all_axes(_choices: Choices, shape: Shape, _: list[Made]) -> Made:
    return _ints(list(range(len(shape))))


def _steps(c: Choices, shape: Shape, _: list[Made]) -> Made:
    return _ints([c.between(1, 2) for _ in shape])


def _parts(c: Choices, shape: Shape, _: list[Made]) -> Made:
    """Sizes of Split: refused by inference unless they add up along its axis, which is drawn as 0."""
    whole = shape[0] if shape else 1
    parts: list[int] = []
    count = c.between(1, min(whole, 8))
    for left in range(count - 1, 0, -1):
        parts.append(c.between(1, whole - sum(parts) - left))
    return _ints([*parts, whole - sum(parts)])


def _scales(c: Choices, shape: Shape, _: list[Made]) -> Made:
    factors = [1.0] * (len(shape) - 2) + [c.pick([2.0, 1.0, 3.0, 0.5]) for _ in range(2)]
    return np.asarray([f if d * f >= 1 else 1.0 for f, d in zip(factors, shape, strict=True)], np.float32)


def _resized(c: Choices, shape: Shape, earlier: list[Made]) -> Made:
    if len(earlier) > 2 and earlier[2] is not None:
        return None
    return _ints([*shape[:-2], *(c.between(1, 2 * d) for d in shape[-2:])])


def _scale(draft: Draft, shape: Shape) -> np.ndarray:
    """One step, or one for each index of the axis that `axis` will name."""
    axis = draft.choices.below(len(shape)) if shape else 0
    draft.sizes["axis"] = axis
    extents = draft.choices.pick([(), (shape[axis],)] if shape else [()], "scale")
    return (draft.choices.values.integers(5, 50, extents) / 100).astype(np.float32)


def _zero(draft: Draft, op: str, operand: str, scale: Made, given: str | None) -> np.ndarray:
    extents = () if scale is None else scale.shape
    dtype = draft.inputs[operand][0] if operand in draft.inputs else "int8"
    if op == "QuantizeLinear":
        dtype = given or draft.choices.pick(("int8", "int16", "uint16", "uint8"), "zero")
    if dtype not in ("int8", "uint8", "int16", "uint16"):
        return np.zeros(extents, dtype)
    info = np.iinfo(dtype)
    values = draft.choices.values.integers(info.min, int(info.max) + 1, extents)
    return np.where(values % 4 == 0, info.min, values).astype(dtype)  # the least step, as behind a Relu, now and then


def _whole_steps(c: Choices, shape: Shape, _: list[Made]) -> Made:
    """The lengths of sequences that are all whole, or none."""
    return np.full(shape[1], shape[0], np.int32) if len(shape) == 3 and c.chance() else None


# What the standard wants of rank 0: onnxruntime refuses some of these as [1].
SCALARS = frozenset((*(("Clip", at) for at in (1, 2)), ("Pad", 2), *(("Range", at) for at in range(3)), ("Trilu", 1)))

DRAWN: Mapping[tuple[str, int], Callable[[Choices, Shape, list[Made]], Made]] = {
    ("Reduce", 1): _axes,
    ("Squeeze", 1): _one_axes,
    ("Unsqueeze", 1): _new_axes,
    ("Reshape", 1): _reshaped,
    ("Expand", 1): _expanded,
    ("Tile", 1): _repeats,
    ("Pad", 1): _pads,
    ("Slice", 1): _starts,
    ("Slice", 2): _ends,
    ("Slice", 3): _all_axes,
    ("Slice", 4): _steps,
    ("Split", 1): _parts,
    ("Resize", 2): _scales,
    ("Resize", 3): _resized,
    **{(op, 4): _whole_steps for op in RECURRENT},
}
