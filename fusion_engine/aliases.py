"""Buffers that see other buffers: what view kernels make, renamed, and what of it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import Alias, Buffer, Call
from fusion_engine.kernels.descriptor import Kernel


def renamed(b: Buffer, old: str, new: str) -> Buffer:
    """The buffer where what was called `old` is called `new`."""
    name = new if b.name == old else b.name
    alias = replace(b.alias, of=new) if b.alias is not None and b.alias.of == old else b.alias
    return replace(b, name=name, alias=alias)


def reachable(buffers: Mapping[str, Buffer], calls: list[Call], names: tuple[str, ...]) -> set[str]:
    """Buffers that a call, an input, an output or another kept view mentions."""
    todo = [*names, *(b for c in calls for _, b in (*c.operands, *c.results))]
    kept: set[str] = set()
    while todo:
        name = todo.pop()
        if name in kept or name not in buffers:
            continue
        kept.add(name)
        alias = buffers[name].alias
        if alias is not None:
            todo.append(alias.of)
    return kept


# ---- view kernels ----


def view_alias(kernel: Kernel, of: str, attrs: Mapping[str, object]) -> Alias:
    """How the result of a reshape, transpose or slice kernel sees the bytes of `of`."""
    if kernel.view == "reshape":
        return Alias(of, reshape=True)
    if kernel.view == "transpose":
        return Alias(of, perm=_ints(attrs["perm"]))
    if kernel.view == "slice":
        return Alias(of, start=_ints(attrs["starts"]), step=_ints(attrs["steps"]))
    raise GapFuseError(f"the kernel {kernel.name} is no view of one operand")


def _ints(value: object) -> tuple[int, ...]:
    assert isinstance(value, tuple)
    return tuple(int(v) for v in value)


def look_through(alias: Alias, data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The value of a buffer of `shape` that aliases `data` (logical arrays)."""
    if alias.perm is not None:
        return data.transpose(alias.perm)
    if alias.start is not None:
        steps = alias.step or (1,) * len(shape)
        box = tuple(slice(s, s + k * n, k) for s, n, k in zip(alias.start, shape, steps, strict=True))
        return data[box]
    return data.reshape(shape)
