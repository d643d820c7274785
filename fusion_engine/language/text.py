"""Lines of rule text read as Python syntax (never executed), with every part's place in the YAML file."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.marked_yaml import Marked

MAX_TEXT = 20_000

Place = ast.expr | ast.stmt | ast.keyword


@dataclass(frozen=True, eq=False)
class RuleText:
    """Text inside a YAML scalar.

    `row` and `col` say where the text begins inside the scalar (0-based); `shift` is how many columns were put in front
    of its first row for Python's parser.
    """

    mark: Marked
    text: str
    row: int = 0
    col: int = 0
    shift: int = 0

    def span(self, node: Place) -> Span:
        """The place of a syntax node in the file."""
        row = node.lineno - 1
        begin = self._column(row, node.col_offset)
        same_row = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = self._column(row, node.end_col_offset) if same_row and node.end_col_offset is not None else begin + 1
        return self.mark.place(self.row + row, begin, end)

    def error(self, node: Place, message: str, help: str | None = None) -> GapFuseError:
        """The error to raise at a syntax node."""
        span = self.span(node)
        lines = self.mark.lines
        source = lines[span.line - 1] if 0 < span.line <= len(lines) else self.mark.line
        return GapFuseError(Diagnostic(message, span, help, source))

    def _column(self, row: int, offset: int) -> int:
        """Characters of a row before a byte offset of Python's parser, in columns of the scalar."""
        before = self.col - self.shift if row == 0 else 0
        if self.text.isascii():
            return offset + before
        rows = self.text.split("\n")
        line = rows[row] if row < len(rows) else ""
        chars = len(line.encode()[:offset].decode(errors="ignore")) if offset <= len(line.encode()) else offset
        return chars + before


def scalar_text(mark: Marked, what: str) -> RuleText:
    """The text of a scalar. Raises GapFuseError where there is none."""
    if mark.kind != "scalar":
        raise GapFuseError(mark.error(f"{what} must be text"))
    if mark.is_null or not mark.text.strip():
        raise GapFuseError(mark.error(f"{what} is empty", "a text with a comma needs quotes inside { } and [ ]"))
    if len(mark.text) > MAX_TEXT:
        raise GapFuseError(mark.error(f"{what} is longer than {MAX_TEXT} characters"))
    return RuleText(mark, mark.text)


def parse_one(text: RuleText, what: str) -> ast.expr:
    """The one expression that the text is. Raises GapFuseError at the place Python's parser names."""
    code = text.text.strip()
    before = text.text[: len(text.text) - len(text.text.lstrip())]
    row, lead = text.row + before.count("\n"), len(before) - (before.rfind("\n") + 1)
    begin = text.col + lead if row == text.row else lead
    if "\n" in code:  # a text of several lines is still one expression
        return _parse(RuleText(text.mark, f"({code})", row, begin, text.shift + 1), what, "eval").body  # type: ignore[attr-defined, no-any-return]
    moved = RuleText(text.mark, code, row, begin, text.shift)
    return _parse(moved, what, "eval").body  # type: ignore[attr-defined, no-any-return]


def parse_lines(text: RuleText, what: str) -> list[ast.stmt]:
    """The statements of the text. Raises GapFuseError."""
    return _parse(text, what, "exec").body  # type: ignore[attr-defined, no-any-return]


def _parse(text: RuleText, what: str, mode: str) -> ast.AST:
    try:
        return ast.parse(text.text, mode=mode)
    except SyntaxError as e:
        raise _syntax_error(text, what, e) from e
    except (ValueError, RecursionError, MemoryError) as e:
        raise GapFuseError(text.mark.error(f"{what} is nested too deeply or not readable")) from e


def _syntax_error(text: RuleText, what: str, e: SyntaxError) -> GapFuseError:
    row = max(0, (e.lineno or 1) - 1)
    begin = max(0, (e.offset or 1) - 1) + (text.col - text.shift if row == 0 else 0)
    same_row = e.end_lineno == e.lineno and e.end_offset is not None and e.end_offset > (e.offset or 1)
    end = begin + (e.end_offset - (e.offset or 1) if same_row and e.end_offset is not None else 1)
    reason = (e.msg or "invalid syntax").removesuffix(". Perhaps you forgot a comma?").lower()
    return GapFuseError(text.mark.error_at(text.row + row, begin, end, f"{what}: {reason}"))


def outside_strings(text: str) -> list[bool]:
    """For each character, whether it lies outside quotes and comments."""
    result, quote, comment = [], "", False
    for c in text:
        if c == "\n":
            comment = False
        elif not quote and c == "#":
            comment = True
        inside = bool(quote) or comment
        if not comment and not quote and c in "\"'":
            quote, inside = c, True
        elif quote and c == quote:
            quote = ""
        result.append(not inside)
    return result


def arrows_to_shifts(text: str) -> str:
    """`->` outside strings becomes `>>`, which Python's parser reads, without moving a column."""
    free = outside_strings(text)
    chars = list(text)
    for i in range(len(chars) - 1):
        if free[i] and chars[i] == "-" and chars[i + 1] == ">":
            chars[i] = ">"
    return "".join(chars)
