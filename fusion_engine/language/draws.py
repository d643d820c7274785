"""The `draw:` of a rule: what its tests draw sizes and attributes from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fusion_engine.diagnostics import Diagnostic
from fusion_engine.marked_yaml import Marked, pairs

_NAME = re.compile(r"[A-Za-z_]\w*")
_RANGE = re.compile(r"\s*(\d+)\s*\.\.\s*(\d+)\s*")


def read_draw(document: Marked, problems: list[Diagnostic]) -> dict[str, object]:
    """Drawing ranges as plain values: texts such as `1..8`, or lists of texts."""
    mark, found = document.get("draw"), dict[str, object]()
    read = [t.text for key in ("given", "match") if (m := document.get(key)) is not None for t in _texts(m)]
    drawn = [t.text for _, value in (mark.entries if mark is not None else ()) for t in _texts(value)]
    names = {name for text in (*read, *drawn) for name in _NAME.findall(text)}
    groups = {name for text in read for name in re.findall(r"\*([A-Z]\w*)", text)}
    for key, value in pairs(mark, "draw", problems):
        found[key.text] = tuple(i.text for i in value.items) if value.kind == "list" else value.text
        if key.text not in names:
            problems.append(key.error(f"nothing of the rule is named `{key.text}`"))
        if key.text in groups and "dims of" not in value.text:
            problems.append(value.error(f"`*{key.text}` is a group of axes", "write `1..3 dims of 1..9`"))
        problems.extend(_empty_ranges(value))
    return found


def _empty_ranges(value: Marked) -> Iterator[Diagnostic]:
    for mark in _texts(value):
        for part in mark.text.split(" dims of "):
            ends = _RANGE.fullmatch(part)
            if ends is not None and int(ends[1]) > int(ends[2]):
                yield mark.error(f"the range `{part.strip()}` is empty", f"write `{ends[2]}..{ends[1]}`")


def _texts(mark: Marked) -> Iterator[Marked]:
    """Every scalar, keys of maps included."""
    if mark.kind == "scalar":
        yield mark
    for item in (*mark.items, *(part for entry in mark.entries for part in entry)):
        yield from _texts(item)
