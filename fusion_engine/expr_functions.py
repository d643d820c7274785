"""What expressions of kernel descriptors compute with: operators, and functions of extents and shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Number = Any  # int, float, or a numpy array of them: formulas are evaluated vectorised


def pool_out(
    extent: Number, kernel: Number, stride: Number, dilation: Number, before: Number, after: Number, ceil_mode: Number
) -> Number:
    """Output extent of ONNX pooling; with ceil_mode the last window starts inside the input or its leading padding."""
    span = extent + before + after - dilation * (kernel - 1) - 1
    floor = span // stride + 1
    ceil = -(-span // stride) + 1
    ceil = np.where((ceil - 1) * stride >= extent + before, ceil - 1, ceil)
    chosen = np.where(np.asarray(ceil_mode) != 0, ceil, floor)
    return int(chosen) if chosen.ndim == 0 else chosen


ROW, LINE = (
    4,
    16,
)  # elements that beginning a row costs; elements that cores take together: GF_ROW, GF_LINE of gf_rows.h


def rows(count: Number, extent: Number, cores: Number) -> Number:
    """Elements of the busiest core where `count` rows of `extent` are shared as `gf_rows_share` does, a row begun
    counted as four more."""
    whole = -(-count // cores) * (extent + ROW)
    split = count * (-((-extent // LINE) // cores) * LINE + ROW)
    return fold(np.minimum, min, (whole, split))


# Shapes (tuples of ints) of groups: `sizes: {"*Y": broadcast(A, B)}`.


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The numpy way: aligned right, 1 gives way; a variadic group is a tuple of shapes. ValueError: a misfit."""
    flat = [t for s in shapes for t in (s if s and isinstance(s[0], tuple) else (s,))]
    return tuple(int(d) for d in np.broadcast_shapes(*flat))


def permute(shape: tuple[int, ...], perm: tuple[int, ...]) -> tuple[int, ...]:
    if sorted(perm) != list(range(len(shape))):
        raise ValueError(f"{list(perm)} is no permutation of {len(shape)} axes")
    return tuple(shape[p] for p in perm)


def pad_shape(shape: tuple[int, ...], pads: tuple[int, ...]) -> tuple[int, ...]:
    """Extents after ONNX `pads` (all begins, then all ends)."""
    rank = len(shape)
    return tuple(d + pads[i] + pads[i + rank] for i, d in enumerate(shape))


def slice_shape(
    shape: tuple[int, ...], starts: tuple[int, ...], ends: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[int, ...]:
    """Extents of the box [start, end) taking every step-th element: one entry per axis, clipped, steps positive."""
    return tuple(max(0, -(-(e - s) // k)) for _, s, e, k in zip(shape, starts, ends, steps, strict=True))


def concat_shape(shapes: tuple[tuple[int, ...], ...], axis: int) -> tuple[int, ...]:
    """The shape of parts joined along `axis`. Raises ValueError where the parts differ elsewhere."""
    axis = axis % len(shapes[0])
    rest = {(*s[:axis], *s[axis + 1 :]) for s in shapes}
    if len(rest) != 1:
        raise ValueError(f"parts of shapes {shapes} do not join along axis {axis}")
    return (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])


def _equal(a: Number, b: Number) -> Number:
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        return tuple(a) == tuple(b)
    return a == b


def _all(*args: Number) -> Number:
    result: Number = True
    for a in args:
        result = np.logical_and(result, a) if isinstance(a, np.ndarray) else (result and a)
    return result


FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "==": _equal,
    "!=": lambda a, b: np.logical_not(_equal(a, b)) if isinstance(a, np.ndarray) else not _equal(a, b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": _all,
    "or": lambda *args: (
        np.logical_or.reduce([np.asarray(a) for a in args])
        if any(isinstance(a, np.ndarray) for a in args)
        else any(args)
    ),
    "not": lambda a: np.logical_not(a) if isinstance(a, np.ndarray) else not a,
    "ifelse": lambda cond, a, b: np.where(cond, a, b) if isinstance(cond, np.ndarray) else (a if cond else b),
    "ceildiv": lambda a, b: -(-a // b),
    "min": lambda *args: fold(np.minimum, min, args),
    "max": lambda *args: fold(np.maximum, max, args),
    "clamp": lambda v, lo, hi: fold(np.minimum, min, (fold(np.maximum, max, (v, lo)), hi)),
    "align": lambda v, to: -(-v // to) * to,
    "pool_out": pool_out,
    "rows": rows,
    "broadcast": broadcast,
    "permute": permute,
    "pad_shape": pad_shape,
    "slice_shape": slice_shape,
    "concat_shape": concat_shape,
    "numel": lambda shape: int(np.prod(shape, dtype=np.int64)),
    "rank": len,
    "sum": lambda items: sum(items),
}


def fold(vector: Callable[[Any, Any], Any], scalar: Callable[..., Any], args: tuple[Number, ...]) -> Number:
    if len(args) == 1:
        return args[0]
    if not any(isinstance(a, np.ndarray) for a in args):
        return scalar(*args)
    result = args[0]
    for a in args[1:]:
        result = vector(result, a)
    return result
