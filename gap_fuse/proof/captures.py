"""Tensors drawn for what a pattern captures: element types, shapes and values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_engine.language.types import CaptureType
from gap_fuse.proof.draft import Draft
from gap_fuse.proof.sizes import capture_shape

INTEGERS = ("int64", "int32", "uint8", "int8", "uint32")
ANY_DTYPES = ("float32", "int8", "int32", "uint8", "int64", "bool")


def capture(draft: Draft, name: str) -> str:
    """The tensor that a capture is, as the rule's `given` has it."""
    draft.names[name] = tensor(draft, name, draft.rule.given.get(name))
    return name


def tensor(draft: Draft, name: str, given: CaptureType | None) -> str:
    """A constant or a graph input of that name and type (None: any)."""
    dtype = dtype_of(draft, given)
    shape = capture_shape(draft, name, given)
    if given is None or given.const or (given.dtype == "int" and draft.choices.chance(name)):
        draft.constants[name] = _values(draft, dtype, shape, given)
    else:
        draft.inputs[name] = (dtype, shape)
        if given.low is not None and given.high is not None and "int" in dtype:
            draft.limits[name] = (int(given.low), int(given.high))
    return name


def dtype_of(draft: Draft, given: CaptureType | None) -> str:
    """numpy's name of the element type."""
    if given is None or given.dtype == "real":
        return "float32"
    return {"any": draft.dtype, "int": "int64" if given.const else draft.integer}.get(given.dtype, given.dtype)


def _values(draft: Draft, dtype: str, shape: tuple[int, ...], given: CaptureType | None) -> np.ndarray:
    rng = draft.choices.values
    if given is not None and given.low is not None and given.high is not None:
        return rng.uniform(given.low, given.high, shape).astype(dtype)
    return draw_values(rng, np.dtype(dtype), shape)


def draw_values(
    rng: np.random.Generator, dtype: np.dtype, shape: Sequence[int], limits: tuple[int, int] | None = None
) -> np.ndarray:
    """Values of a tensor: floats around 0, small integers all over their range, others -50..50 unless limited."""
    if dtype.kind == "f":
        return np.asarray(rng.standard_normal(shape), dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    least = 0 if dtype.kind == "u" else -50
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize == 1 else (least, 50)
    low, high = limits or (int(low), int(high))
    return np.asarray(rng.integers(low, high + 1, shape), dtype)
