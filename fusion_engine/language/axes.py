"""The einops texts of `rearrange`: which axes of one tensor become which of another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

Shape = tuple[int, ...]
Axis = str | int
Side = tuple[tuple[Axis, ...], ...]


@dataclass(frozen=True, slots=True)
class AxesText:
    """`s b (h d) -> b h s d`: the axes of either side, each a group of names and 1s."""

    left: Side
    right: Side

    @property
    def names(self) -> tuple[str, ...]:
        """Every axis name, in the sequence of the left side."""
        return _names(self.left)


def parse_axes(text: str) -> AxesText | str:
    """The text read; or what keeps it from saying where every element goes."""
    parts = text.split("->")
    if len(parts) != 2:
        return "an einops text has one `->`"
    sides = [_side(part) for part in parts]
    if sides[0] is None or sides[1] is None:
        return "an axis is a name, 1, or a group of names in parentheses"
    left, right = (sorted(_names(side)) for side in (sides[0], sides[1]))
    for names in (left, right):
        twice = [n for n in names if names.count(n) > 1]
        if twice:
            return f"the axis `{twice[0]}` stands twice on one side"
    lone = [n for n in (*left, *right) if n not in left or n not in right]
    if lone:
        return f"the axis `{lone[0]}` stands on one side only"
    return AxesText(sides[0], sides[1])


def _names(side: Side) -> tuple[str, ...]:
    return tuple(a for group in side for a in group if isinstance(a, str))


def _side(text: str) -> Side | None:
    tokens = re.findall(r"\(|\)|[A-Za-z_]\w*|1\b|\S+", text)
    groups: list[tuple[Axis, ...]] = []
    inner: list[Axis] | None = None
    for token in tokens:
        if token == "(" and inner is None:
            inner = []
        elif token == ")" and inner is not None:
            groups.append(tuple(inner))
            inner = None
        elif re.fullmatch(r"[A-Za-z_]\w*|1", token):
            axis: Axis = 1 if token == "1" else token
            if inner is None:
                groups.append((axis,))
            else:
                inner.append(axis)
        else:
            return None
    return tuple(groups) if inner is None else None


def solve_axes(text: AxesText, source: Shape, result: Shape, known: Mapping[str, int]) -> dict[str, int] | str:
    """The extent of every axis name, or why there is none."""
    if len(source) != len(text.left) or len(result) != len(text.right):
        return f"ranks {len(source)} and {len(result)} do not fit the text"
    extents = {name: known[name] for g in text.left for name in g if isinstance(name, str) and name in known}
    equations = [*zip(text.left, source, strict=True), *zip(text.right, result, strict=True)]
    for _ in range(len(equations) + 1):
        for group, extent in equations:
            reason = _solve_one(group, extent, extents)
            if reason is not None:
                return reason
    open_names = [a for g in text.left for a in g if isinstance(a, str) and a not in extents]
    return f"the extent of `{open_names[0]}` is not determined" if open_names else extents


def _solve_one(group: tuple[Axis, ...], extent: int, extents: dict[str, int]) -> str | None:
    unknown = [a for a in group if isinstance(a, str) and a not in extents]
    product = prod(extents[a] for a in group if isinstance(a, str) and a in extents)
    if len(unknown) > 1:
        return None
    if not unknown:
        return None if product == extent else f"({' '.join(map(str, group))}) is {product}, not {extent}"
    if product == 0 or extent % product:
        return f"({' '.join(map(str, group))}) does not divide {extent}"
    extents[unknown[0]] = extent // product
    return None
