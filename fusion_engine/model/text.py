"""ONNX's text form: read, with the place of a mistake."""

from __future__ import annotations

import re

import onnx
import onnx.parser

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span

_PLACE = re.compile(r"\(line: (\d+) column: (\d+)\)")


def parse_text(text: str, file: str) -> onnx.ModelProto:
    """The model that a text in ONNX's text form describes. Raises GapFuseError at the place that the parser names."""
    try:
        return onnx.parser.parse_model(text)
    except (onnx.parser.ParseError, RuntimeError, ValueError) as error:
        raise GapFuseError(_diagnostic(_words(error), text, file)) from error


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _diagnostic(said: str, text: str, file: str) -> Diagnostic:
    what = f"not ONNX's text form: {said.strip().splitlines()[-1] if said.strip() else 'it cannot be read'}"
    place, lines = _PLACE.search(said), text.split("\n")
    if place is None or not 0 < int(place[1]) <= len(lines):
        return Diagnostic(what, Span(file))
    line, col = int(place[1]), int(place[2])
    return Diagnostic(what, Span(file, line, col, col + 1), source=lines[line - 1])
