"""FusedGraph: buffers and kernel calls, the seam between the fusion engine and the tiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

AttrScalar = int | float | str
CallAttr = AttrScalar | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Quantisation:
    """real = scale * (stored - zero). One scale and zero per tensor, or one per index of `axis`."""

    scale: tuple[float, ...]
    zero: tuple[int, ...]
    axis: int | None = None

    @classmethod
    def of(cls, scale: np.ndarray, zero: np.ndarray | None, axis: int) -> Quantisation:
        """What the constants of QuantizeLinear or DequantizeLinear say; `axis` counts where there are several."""
        scales = tuple(_numbers(scale, np.float64))
        zeros = (0,) * len(scales) if zero is None else tuple(_numbers(zero, np.int64))
        return cls(scales, zeros, axis) if len(scales) > 1 else cls(scales, zeros[:1])


def _numbers(array: np.ndarray, kind: type[np.number[Any]]) -> list[Any]:
    """As Python's own; ml_dtypes' kinds by way of numpy's."""
    if array.ndim == 0 and array.dtype.kind in "fiu":
        return [array.item()]
    return (array if array.dtype.kind in "fiu" else array.astype(kind)).ravel().tolist()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Why something is there: the rule and variant, what it trusted, and the nodes of the file it stands for."""

    rule: str
    variant: str
    evidence: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alias:
    """The buffer's bytes are bytes of buffer `of`, seen differently.

    Exactly one of:
    * `reshape`: same elements in logical row-major sequence, other extents;
    * `perm`: transposition, `self[i0, i1, ...] = of[...]` with self axis a = axis `perm[a]` of `of`;
    * `start`: a box of `of` beginning at `start`, taking every `step`-th element (slice: read through it;
      concat: the calls that make the parts write through it).
    """

    of: str
    reshape: bool = False
    perm: tuple[int, ...] | None = None
    start: tuple[int, ...] | None = None
    step: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A tensor with storage: logical ONNX shape always; `order` is the storage order (outermost axis first).

    `data` is the logical (unpermuted) value of a constant. `alias` makes it a view of another buffer, without `order`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    quantisation: Quantisation | None = None
    order: tuple[int, ...] | None = None
    data: np.ndarray | None = None
    alias: Alias | None = None
    provenance: Provenance | None = None

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize

    @property
    def storage_order(self) -> tuple[int, ...]:
        return self.order if self.order is not None else tuple(range(len(self.shape)))


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel call. `operands` maps the kernel's input names to buffer names (absent optional inputs left out,
    variadic ones numbered x0, x1, ...); `results` maps its output names to buffer names."""

    name: str
    kernel: str
    operands: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, str], ...]
    attrs: tuple[tuple[str, CallAttr], ...]
    provenance: Provenance


@dataclass(frozen=True)
class FusedGraph:
    """Calls in execution order. `inputs`/`outputs` are buffer names, equal to the ONNX graph's names, in its order.

    A buffer is a constant (`data`), an input, a view (`alias`), or written: by the one call that has it as result, or,
    when other buffers are views of it (of parts, by `start`) and are written by calls, by those (together covering it).
    """

    name: str
    buffers: tuple[Buffer, ...]
    calls: tuple[Call, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @cached_property
    def buffer(self) -> Mapping[str, Buffer]:
        return {b.name: b for b in self.buffers}

    @cached_property
    def makers(self) -> Mapping[str, tuple[Call, ...]]:
        """The calls that write into each buffer that owns bytes: several where its parts are made in their place."""
        found: dict[str, dict[str, Call]] = {}
        for call in self.calls:
            for _, name in call.results:
                found.setdefault(self.root(name), {})[call.name] = call
        return {root: tuple(calls.values()) for root, calls in found.items()}

    def root(self, name: str) -> str:
        """The buffer that owns the bytes of `name`, aliases followed down."""
        while (alias := self.buffer[name].alias) is not None:
            name = alias.of
        return name

    def storage(self, name: str) -> Storage:
        """Where the elements of a buffer lie: see `Storage`. Raises ViewError where no strides can express it."""
        return resolve_storage(self.buffer, name)


class ViewError(ValueError):
    """A reshape that moves bytes under the storage order of its source."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Element (i0, i1, ...) of the buffer lies at element `offset + sum(i * strides)` of buffer `root`."""

    root: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def dense_strides(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Element strides per logical axis of a dense tensor stored in `order` (outermost first)."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def resolve_storage(buffers: Mapping[str, Buffer], name: str) -> Storage:
    """Follow aliases down to the buffer that owns the bytes."""
    b = buffers[name]
    if b.alias is None:
        return Storage(b.name, 0, b.shape, dense_strides(b.shape, b.storage_order))
    base = resolve_storage(buffers, b.alias.of)
    if b.alias.perm is not None:
        return Storage(base.root, base.offset, b.shape, tuple(base.strides[p] for p in b.alias.perm))
    if b.alias.start is not None:
        step = b.alias.step or (1,) * len(b.shape)
        offset = base.offset + sum(s * st for s, st in zip(b.alias.start, base.strides, strict=True))
        strides = tuple(st * k for st, k in zip(base.strides, step, strict=True))
        return Storage(base.root, offset, b.shape, strides)
    strides_or_none = reshape_strides(base.shape, base.strides, b.shape)
    if strides_or_none is None:
        raise ViewError(f"{name}: reshape of {base.shape} with strides {base.strides} to {b.shape} moves bytes")
    return Storage(base.root, base.offset, b.shape, strides_or_none)


def reshape_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], new_shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides of `new_shape` over the same bytes in row-major logical sequence, or None if there are none."""
    if prod(shape) != prod(new_shape):
        return None
    if prod(shape) == 0:
        return dense_strides(new_shape, tuple(range(len(new_shape))))
    old = [(d, s) for d, s in zip(shape, strides, strict=True) if d != 1]
    result: list[int] = []
    position = 0
    remaining, stride = 1, 1  # of the merged run of old axes being split
    for extent in new_shape:
        if extent == 1:
            result.append(0)
            continue
        while remaining % extent or remaining < extent:
            if position == len(old):
                return None
            d, s = old[position]
            if remaining != 1 and stride != d * s:
                return None
            remaining, stride = remaining * d, s
            position += 1
        remaining //= extent
        result.append(remaining * stride)
    return tuple(result)
