"""Concatenations as placement: which parts are made in their place, and tensors turned into views of what they become.

A part that a call makes is made inside the whole. So that more parts can be: parts that are all slices of one tensor
are that tensor again; a run of parts that is itself a concatenation elsewhere lies there once, as a part of the longer
one; and where only transposed or reshaped views of a tensor are wanted, the view owns the bytes and the tensor sees
them the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fusion_engine.graph import Alias, Buffer, Provenance

Free = Callable[[str], bool]  # whether a buffer may lie inside another one


@dataclass(frozen=True, slots=True)
class Join:
    """A concatenation met: its parts are placed when all readers are known."""

    axis: int
    parts: tuple[str, ...]
    result: str
    position: int  # how many calls stand before it
    provenance: Provenance


def fewer_parts(joins: Sequence[Join], buffers: Mapping[str, Buffer], free: Free) -> list[Join]:
    """The same concatenations of as few parts as can be."""
    whole = [replace(j, parts=_unsplit(j, buffers, free)) for j in joins]
    result, inside = list[Join](), set[str]()
    for number, join in enumerate(whole):
        parts = join.parts
        for other in sorted(whole[:number], key=lambda j: -len(j.parts)):
            at = _run(parts, other.parts)
            if other.axis == join.axis and at is not None and other.result not in inside and free(other.result):
                parts = (*parts[:at], other.result, *parts[at + len(other.parts) :])
                inside.add(other.result)
        result.append(replace(join, parts=parts))
    return result


def _run(parts: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where `wanted` stands in `parts` without a gap."""
    starts = range(len(parts) - len(wanted) + 1)
    return next((i for i in starts if len(wanted) > 1 and parts[i : i + len(wanted)] == wanted), None)


def _unsplit(join: Join, buffers: Mapping[str, Buffer], free: Free) -> tuple[str, ...]:
    """Consecutive slices that are all of a tensor, in their order, as that tensor."""
    parts, i = list[str](), 0
    while i < len(join.parts):
        source, count = _all_of_one(join.parts[i:], join.axis, buffers)
        if source is not None and free(source):
            parts.append(source)
            i += count
        else:
            parts.append(join.parts[i])
            i += 1
    return tuple(parts)


def _all_of_one(parts: Sequence[str], axis: int, buffers: Mapping[str, Buffer]) -> tuple[str | None, int]:
    """The tensor that the first few parts cover in their order along an axis, and how many they are."""
    alias = buffers[parts[0]].alias
    if alias is None or alias.start is None:
        return None, 0
    of, at = buffers[alias.of], 0
    for count, name in enumerate(parts, 1):
        b = buffers[name]
        start = tuple(at if a == axis else 0 for a in range(len(of.shape)))
        same = all(n == m for a, (n, m) in enumerate(zip(b.shape, of.shape, strict=True)) if a != axis)
        if b.alias is None or b.alias.of != of.name or b.alias.start != start or not same or _skips(b.alias):
            return None, 0
        at += b.shape[axis]
        if at == of.shape[axis]:
            return of.name, count
    return None, 0


def _skips(alias: Alias) -> bool:
    return alias.step is not None and any(k != 1 for k in alias.step)


def turned(
    buffers: Mapping[str, Buffer], name: str, used: Callable[[str], int], free: Free
) -> dict[str, Buffer] | None:
    """The buffers on the way from `name`, a transposed or reshaped view of some tensor, to that tensor, each now a view
    of the one before, `name` owning the bytes. None where the tensor cannot be a view, or is used (`used` counts
    readers and views) otherwise, too: what suits this view need not suit the others."""
    chain = [buffers[name]]
    while (alias := chain[-1].alias) is not None:
        if alias.start is not None:
            return None
        chain.append(buffers[alias.of])
    if len(chain) == 1 or not free(chain[-1].name) or any(used(b.name) != 1 for b in chain[1:]):
        return None
    result = {name: replace(chain[0], alias=None)}
    for view, of in pairwise(chain):
        assert view.alias is not None
        result[of.name] = replace(of, alias=_inverse(view.alias, view.name))
    return result


def _inverse(alias: Alias, name: str) -> Alias:
    if alias.perm is None:
        return Alias(name, reshape=True)
    return Alias(name, perm=tuple(alias.perm.index(a) for a in range(len(alias.perm))))
