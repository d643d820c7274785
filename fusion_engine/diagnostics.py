"""Errors as values with a place: what every loader and stage of gap-fuse reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

LONGEST = 200  # characters of a source line that are shown


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A place in a text file: 1-based line and columns, `end` exclusive on the same line.

    `line == 0` names the file as a whole.
    """

    file: str
    line: int = 0
    col: int = 0
    end: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: a sentence, where it is, and what would help.

    `source` is the text of the line at `span`, kept so that the message prints without reading the file again. A
    warning is no error: what it is about works, but hardly as meant.
    """

    message: str
    span: Span | None = None
    help: str | None = None
    source: str | None = None
    notes: tuple[str, ...] = field(default=())
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        what = f"{self.severity}: {self.message}"
        head = f"{self.span}: {what}" if self.span else what
        return "\n".join([head, *excerpt(self.span, self.source), *self._tail()])

    def _tail(self) -> list[str]:
        notes = [f"  note: {note}" for note in self.notes]
        return [*notes, f"  help: {self.help}"] if self.help else notes


def excerpt(span: Span | None, source: str | None) -> list[str]:
    """The line with a caret under the span; nothing where the line is not known."""
    if span is None or source is None or not span.line:
        return []
    gutter = f"{span.line:>5} | "
    shown, before = _window(source, span.col - 1)
    width = max(1, min(span.end - span.col, len(shown) - before))
    return [gutter + shown, " " * (len(gutter) - 2) + "| " + " " * before + "^" * width]


def _window(source: str, at: int) -> tuple[str, int]:
    """The line, or of a very long one the part around column `at` (0-based); and where that column is in it."""
    if len(source) <= LONGEST:
        return source, at
    begin = max(0, min(at, len(source)) - LONGEST // 2)
    cut = source[begin : begin + LONGEST]
    lead = "..." if begin else ""
    return f"{lead}{cut}{'...' if begin + LONGEST < len(source) else ''}", len(lead) + at - begin


class GapFuseError(Exception):
    """Bad input, or a request that cannot be met: carries every diagnostic found, in file order."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic | str) -> None:
        if isinstance(diagnostics, str):
            diagnostics = Diagnostic(diagnostics)
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


def counted(n: int, noun: str) -> str:
    """A number and its noun."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A help sentence naming the closest known word, or None when nothing is close."""
    import difflib

    words = list(known)
    close = [k for k in words if k.lower() == word.lower()] or difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else None


def near_file(path: Path) -> str | None:
    """The same for a path that is not there, among its neighbours."""
    try:
        return did_you_mean(path.name, sorted(p.name for p in path.parent.iterdir()))
    except OSError:
        return None
