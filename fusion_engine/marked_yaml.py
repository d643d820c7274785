"""YAML with places: what rule, kernel and target files are read through.

A file is composed, never constructed: every scalar stays text until a reader converts it by the type it expects, so
`1e-5`, `on`, `null` and `1_0` cannot surprise. Every value knows its span. Anchors are allowed but bounded; duplicate
keys, tabs in the indentation, files that are too large or not UTF-8, and nesting without end are located errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import yaml

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean, near_file

MAX_BYTES = 1_000_000
MAX_VALUES = 100_000
MAX_DEPTH = 60


@dataclass(frozen=True, eq=False)
class Marked:
    """A scalar (`text`), a list (`items`) or a map (`entries`, in file order) with its span.

    `style` is None for a plain scalar, else the quote or `|`, `>`; `line` is the source line at the span.
    """

    kind: Literal["scalar", "list", "map"]
    span: Span
    line: str
    text: str = ""
    style: str | None = None
    items: tuple[Marked, ...] = ()
    entries: tuple[tuple[Marked, Marked], ...] = ()
    lines: tuple[str, ...] = ()  # of the whole file

    @cached_property
    def _by_key(self) -> Mapping[str, Marked]:
        return {key.text: value for key, value in self.entries}

    @property
    def is_null(self) -> bool:
        """A plain empty scalar, `~` or `null`."""
        return self.kind == "scalar" and self.style is None and self.text in ("", "~", "null")

    def get(self, key: str) -> Marked | None:
        """The value at `key` of a map, or None."""
        return self._by_key.get(key)

    def error(self, message: str, help: str | None = None) -> Diagnostic:
        """A diagnostic at this value."""
        return Diagnostic(message, self.span, help, self.line)

    def error_at(self, row: int, col: int, end: int, message: str, help: str | None = None) -> Diagnostic:
        """A diagnostic inside a scalar's text: 0-based row of the text and columns of that row."""
        span = self.place(row, col, end)
        source = self.lines[span.line - 1] if 0 < span.line <= len(self.lines) else self.line
        return Diagnostic(message, span, help, source)

    def place(self, row: int, col: int, end: int) -> Span:
        """The span in the file of columns [col, end) of row `row` of this scalar's text (all 0-based)."""
        end = max(end, col + 1)
        if self.style in ("|", ">"):
            number = self.span.line + 1 + row
            source = self.lines[number - 1] if number <= len(self.lines) else ""
            rows = self.text.split("\n")
            shown = rows[row].lstrip() if row < len(rows) else ""
            inner = len(rows[row]) - len(shown) if row < len(rows) else 0
            indent = max(0, source.find(shown) - inner) if shown else 0
            return Span(self.span.file, number, indent + col + 1, indent + end + 1)
        start = self.span.col + (1 if self.style else 0)
        return Span(self.span.file, self.span.line, start + col, start + end)


def read_yaml(path: Path) -> tuple[Marked, ...]:
    """Every document of a YAML file. Raises GapFuseError: not readable, not UTF-8, too large, or not such YAML."""
    try:
        raw = path.read_bytes()
    except OSError as e:
        said = f"cannot read the file: {e.strerror or e}"
        raise GapFuseError(Diagnostic(said, Span(str(path)), near_file(path))) from e
    if len(raw) > MAX_BYTES:
        raise GapFuseError(Diagnostic(f"the file has {len(raw)} bytes; the limit is {MAX_BYTES}", Span(str(path))))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = raw[: e.start].count(b"\n") + 1
        raise GapFuseError(Diagnostic("the file is not UTF-8 text", Span(str(path), line, 1, 2))) from e
    return parse_yaml(text, str(path))


def parse_yaml(text: str, file: str) -> tuple[Marked, ...]:
    """Every document of `text`; `file` names it in messages. Empty documents are left out. Raises GapFuseError."""
    lines = tuple(text.splitlines())
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    _check_depth(text, file, lines)
    try:
        roots = list(yaml.compose_all(text, Loader=loader))
    except yaml.MarkedYAMLError as e:
        raise GapFuseError(_syntax_error(e, file, lines)) from e
    except yaml.YAMLError as e:
        raise GapFuseError(Diagnostic(f"not YAML: {e}", Span(file))) from e
    except RecursionError as e:
        raise GapFuseError(Diagnostic("nested too deeply", Span(file))) from e
    build = _Builder(file, lines)
    documents = tuple(build.value(root, ()) for root in roots if root is not None)
    if build.problems:
        raise GapFuseError(build.problems)
    return tuple(d for d in documents if not d.is_null)


def _check_depth(text: str, file: str, lines: tuple[str, ...]) -> None:
    """Refuse runaway nesting before the composer, which recurses, sees it."""
    for number, line in enumerate(lines, 1):
        opened = line.count("[") + line.count("{")
        dashes = line.replace(" ", "")
        lead = len(dashes) - len(dashes.lstrip("-?:"))
        if opened > 4 * MAX_DEPTH or lead > MAX_DEPTH or len(line) - len(line.lstrip(" ")) > 8 * MAX_DEPTH:
            raise GapFuseError(Diagnostic("nested too deeply", Span(file, number, 1, 2), source=line[:200]))
    if text.count("[") + text.count("{") - text.count("]") - text.count("}") > MAX_DEPTH:
        raise GapFuseError(Diagnostic("brackets are opened and never closed", Span(file)))


def _syntax_error(e: yaml.MarkedYAMLError, file: str, lines: tuple[str, ...]) -> Diagnostic:
    mark = e.problem_mark or e.context_mark
    problem = e.problem or e.context or "not YAML"
    if mark is None:
        return Diagnostic(f"not YAML: {problem}", Span(file))
    source = lines[mark.line] if mark.line < len(lines) else ""
    tab = "\t" in source[: len(source) - len(source.lstrip())] or "\\t" in problem
    hint = "indent with spaces: YAML allows no tabs there" if tab else None
    return Diagnostic(f"not YAML: {problem}", Span(file, mark.line + 1, mark.column + 1, mark.column + 2), hint, source)


class _Builder:
    """Converts composed nodes, counting them, so that anchors cannot multiply without end."""

    def __init__(self, file: str, lines: tuple[str, ...]) -> None:
        self.file, self.lines, self.count = file, lines, 0
        self.problems: list[Diagnostic] = []

    def value(self, node: yaml.Node, path: tuple[int, ...]) -> Marked:
        self.count += 1
        span = self._span(node)
        line = self.lines[span.line - 1] if span.line <= len(self.lines) else ""
        if self.count > MAX_VALUES:
            raise GapFuseError(Diagnostic(f"more than {MAX_VALUES} values: anchors multiply", span, source=line))
        if id(node) in path or len(path) > MAX_DEPTH:
            raise GapFuseError(Diagnostic("nested too deeply, or an anchor inside itself", span, source=line))
        inner = (*path, id(node))
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.value(n, inner) for n in node.value)
            return Marked("list", span, line, items=items, lines=self.lines)
        if isinstance(node, yaml.MappingNode):
            entries = tuple((self.value(k, inner), self.value(v, inner)) for k, v in node.value)
            self._check_map_keys(entries)
            return Marked("map", span, line, entries=entries, lines=self.lines)
        return Marked(
            "scalar", span, line, text=node.value, style=getattr(node, "style", None) or None, lines=self.lines
        )

    def _check_map_keys(self, entries: tuple[tuple[Marked, Marked], ...]) -> None:
        seen: dict[str, Marked] = {}
        for key, _ in entries:
            if key.kind != "scalar":
                self.problems.append(key.error("a key must be a word"))
            elif key.text in seen:
                self.problems.append(
                    key.error(f"the key `{key.text}` is there twice", f"first on line {seen[key.text].span.line}")
                )
            seen.setdefault(key.text, key)

    def _span(self, node: yaml.Node) -> Span:
        start, end = node.start_mark, node.end_mark
        stop = end.column + 1 if end.line == start.line else start.column + 2
        return Span(self.file, start.line + 1, start.column + 1, max(stop, start.column + 2))


# ---- reading by expected type; each returns None and adds a diagnostic where the value is of another type ----

Problems = list[Diagnostic]


def check_map(value: Marked, what: str, known: Iterable[str], problems: Problems, required: Iterable[str] = ()) -> bool:
    """Whether `value` is a map; unknown and missing keys become diagnostics, a misspelt key as unknown alone."""
    if value.kind != "map":
        problems.append(value.error(f"{what} must be a map"))
        return False
    names = tuple(known)
    for key, _ in value.entries:
        if key.text not in names:
            hint = did_you_mean(key.text, names) or "known keys: " + ", ".join(names)
            problems.append(key.error(f"unknown key `{key.text}` in {what}", hint))
    problems.extend(value.error(f"{what} lacks the key `{k}`") for k in required if lacks(value, k, names))
    return True


def lacks(value: Marked, key: str, known: Iterable[str]) -> bool:
    """Whether a map lacks `key`, and no unknown key of it looks like that one misspelt."""
    names = tuple(known)
    meant = (did_you_mean(k.text, names) for k, _ in value.entries if k.text not in names)
    return value.get(key) is None and did_you_mean(key, (key,)) not in meant


def pairs(value: Marked | None, what: str, problems: Problems) -> Iterator[tuple[Marked, Marked]]:
    """The entries of an optional map with free keys."""
    if value is None or value.is_null:
        return
    if value.kind != "map":
        problems.append(value.error(f"{what} must be a map"))
        return
    yield from value.entries


def as_text(value: Marked | None, what: str, problems: Problems) -> str | None:
    """A scalar's text, stripped."""
    if value is None:
        return None
    if value.kind != "scalar":
        problems.append(value.error(f"{what} must be text"))
        return None
    return value.text.strip()


def as_int(value: Marked | None, what: str, problems: Problems) -> int | None:
    """A decimal integer."""
    text = as_text(value, what, problems)
    if value is None or text is None:
        return None
    try:
        return int(text, 10)
    except ValueError:
        problems.append(value.error(f"{what} must be an integer, not `{text}`"))
        return None


def as_choice(value: Marked | None, what: str, choices: Iterable[str], problems: Problems) -> str | None:
    """One of a closed list of words."""
    text, known = as_text(value, what, problems), tuple(choices)
    if value is None or text is None:
        return None
    if text not in known:
        hint = did_you_mean(text, known) or "one of: " + ", ".join(known)
        problems.append(value.error(f"{what} cannot be `{text}`", hint))
        return None
    return text


def as_list(value: Marked | None, what: str, problems: Problems) -> tuple[Marked, ...]:
    """The items of an optional list; a lone scalar is a list of one."""
    if value is None or value.is_null:
        return ()
    if value.kind == "map":
        problems.append(value.error(f"{what} must be a list"))
        return ()
    return value.items if value.kind == "list" else (value,)


def as_texts(value: Marked | None, what: str, problems: Problems) -> tuple[str, ...]:
    """The texts of an optional list of scalars."""
    texts = (as_text(item, what, problems) for item in as_list(value, what, problems))
    return tuple(t for t in texts if t is not None)
