"""A chain of Reshape and Transpose whose index map is an einops text: what a `rearrange` pattern stands for."""

from __future__ import annotations

from math import prod

import numpy as np

from gap_fuse.proof.draft import Draft, NotDrawable

Side = list[list[str]]


def draw_rearranged(draft: Draft, value: str, text: str) -> str:
    """The rearranged value: split axes, permute, merge; steps that change nothing are left out."""
    left, right = (_groups(side) for side in text.split("->"))
    shape = draft.shape(value)
    if len(shape) != len(left):
        raise NotDrawable(f"`{text}` needs rank {len(left)}")
    extents: dict[str, int] = {}
    for group, extent in zip(left, shape, strict=True):
        extents |= _split(draft, group, extent)
    flat = [n for group in left for n in group]
    wanted = [n for group in right for n in group]
    for name in (*flat, *wanted):
        if name not in extents and name != "1":
            raise NotDrawable(f"`{text}`: the extent of {name} is not known", always=True)
    value = _reshape(draft, value, [extents[n] for n in flat])
    perm = [flat.index(n) for n in wanted if n != "1"]
    if perm != sorted(perm):
        value = draft.node("Transpose", [value], {"perm": perm})
    return _reshape(draft, value, [prod(extents.get(n, 1) for n in group) for group in right])


def _groups(side: str) -> Side:
    words = side.replace("(", " ( ").replace(")", " ) ").split()
    groups: Side = []
    inside: list[str] | None = None
    for word in words:
        if word == "(":
            inside = []
        elif word == ")":
            groups.append(inside or [])
            inside = None
        elif inside is not None:
            inside.append(word)
        else:
            groups.append([] if word == "1" else [word])
    return groups


def _split(draft: Draft, group: list[str], extent: int) -> dict[str, int]:
    """Extents of the axes that one axis holds: sizes known by name, divisors for the others, the rest for the last."""
    found: dict[str, int] = {}
    rest = extent
    for i, name in enumerate(group):
        known = draft.sizes.get(name.upper())
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        if i == len(group) - 1:
            size = rest
        elif isinstance(known, int) and rest % known == 0:
            size = known
        else:
            size = draft.choices.pick(divisors)
        found[name], rest = size, rest // size
    return found


def _reshape(draft: Draft, value: str, shape: list[int]) -> str:
    if list(draft.shape(value)) == shape:
        return value
    return draft.node("Reshape", [value, draft.constant(np.asarray(shape, np.int64), "shape")])
