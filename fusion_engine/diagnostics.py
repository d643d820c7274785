"""Errors as values with a place: what every loader and stage of gap-fuse reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


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

    `source` is the text of the line at `span`, kept so that the message prints without reading the file again.
    """

    message: str
    span: Span | None = None
    help: str | None = None
    source: str | None = None
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        head = f"{self.span}: error: {self.message}" if self.span else f"error: {self.message}"
        return "\n".join([head, *self._excerpt(), *self._tail()])

    def _excerpt(self) -> list[str]:
        if self.span is None or self.source is None or not self.span.line:
            return []
        gutter = f"{self.span.line:>5} | "
        width = max(1, self.span.end - self.span.col)
        caret = " " * (len(gutter) - 2) + "| " + " " * (self.span.col - 1) + "^" * width
        return [gutter + self.source, caret]

    def _tail(self) -> list[str]:
        notes = [f"  note: {note}" for note in self.notes]
        return [*notes, f"  help: {self.help}"] if self.help else notes


class GapFuseError(Exception):
    """Bad input, or a request that cannot be met: carries every diagnostic found, in file order."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic | str) -> None:
        if isinstance(diagnostics, str):
            diagnostics = Diagnostic(diagnostics)
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A help sentence naming the closest known word, or None when nothing is close."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else None
