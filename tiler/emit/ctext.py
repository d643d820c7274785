"""Lines of C with indentation, and literals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Lines:
    """C being written, two spaces a level."""

    text: list[str] = field(default_factory=list)
    depth: int = 0

    def add(self, *lines: str) -> None:
        self.text.extend("  " * self.depth + line if line else "" for line in lines)

    def open(self, line: str) -> None:
        self.add(line + " {")
        self.depth += 1

    def close(self, tail: str = "") -> None:
        self.depth -= 1
        self.add("}" + tail)

    def __str__(self) -> str:
        return "\n".join(self.text) + "\n"


def c_float(value: float) -> str:
    """A float literal that reads back to the same float32."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = f"{value:.9g}"
    return (text if any(c in text for c in ".en") else text + ".0") + "f"


def c_int(value: int) -> str:
    """An int literal; the least int32 has no literal of its own."""
    return "(-2147483647 - 1)" if value == -(2**31) else str(value)


def c_value(value: object) -> str:
    """A scalar or a braced list."""
    if isinstance(value, (tuple, list)):
        return braces([c_value(v) for v in value])
    if isinstance(value, float):
        return c_float(value)
    return c_int(value) if isinstance(value, int) else str(value)


def c_string(text: str) -> str:
    """A string literal; what is not printable ASCII becomes octal escapes of its UTF-8 bytes."""
    plain = {34: '\\"', 63: "\\?", 92: "\\\\"}
    return '"' + "".join(plain.get(b, chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in text.encode()) + '"'


def braces(items: Sequence[str]) -> str:
    return "{" + ", ".join(items) + "}"


def comment(lines: Sequence[str], width: int = 112) -> list[str]:
    """A block comment, long lines folded at blanks: under what stands behind an arrow, else under where they begin."""
    folded = [part for line in lines for part in _fold(line.replace("*/", "* /").replace("/*", "/ *"), width)]
    first = [f"/* {folded[0]}", *(f"   {line}" for line in folded[1:])]
    return [*first[:-1], f"{first[-1]} */"]


def _fold(line: str, width: int) -> list[str]:
    begin = re.match(r"\s+\S+ +(<-|->) |\s*", line)
    hang = min(begin.end() if begin else 0, width // 2)
    parts: list[str] = []
    while len(line) > width:
        cut = line.rfind(" ", hang + 1, width)
        cut = cut if cut > 0 else width
        parts.append(line[:cut].rstrip())
        line = " " * hang + line[cut:].lstrip()
    return [*parts, line]
