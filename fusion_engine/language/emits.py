"""The `emit` entries of a rule: which kernel calls take the match, under which storages."""

from __future__ import annotations

import ast
import re

from fusion_engine.diagnostics import Diagnostic, GapFuseError, did_you_mean
from fusion_engine.kernels.signature import DTYPES
from fusion_engine.language.captures import read_stored_type
from fusion_engine.language.expressions import convert_expression
from fusion_engine.language.file_model import CallSection, CallsSection, OneCallSection
from fusion_engine.language.text import RuleText, parse_one
from fusion_engine.language.types import Emit, EmitEntry, StoredType, TemporaryType
from fusion_engine.language.variants import read_conditions, read_named
from fusion_engine.marked_yaml import Marked, as_int, as_list, as_text, as_texts, pairs


def read_entry(mark: Marked, problems: list[Diagnostic]) -> EmitEntry | None:
    """One entry: a call, or under `calls` a sequence. None where it cannot be read, with the reasons in `problems`."""
    sequence = mark.get("calls") if mark.kind == "map" else None
    section = CallsSection if sequence is not None else OneCallSection
    before = len(problems)
    if not section.check(mark, "an emit entry", problems):
        return None
    marks = as_list(sequence, "calls", problems) if sequence is not None else (mark,)
    calls = tuple(c for c in (_call(m, problems, m is not mark) for m in marks) if c is not None)
    if not calls and len(problems) == before:
        problems.append(mark.error("an emit entry without a call"))
    if (within := mark.get("within")) is not None:
        problems.append(within.error("`within` is not supported yet", "a kernel answers within one step of the model"))
    entry = EmitEntry(
        calls=calls,
        variants=as_texts(mark.get("for"), "for", problems),
        stored=_stored(mark.get("stored"), problems),
        inner=_inner(mark.get("inner"), problems),
        when=read_conditions(mark.get("when"), problems),
        within=as_int(mark.get("within"), "within", problems),
        span=mark.span,
    )
    return entry if len(problems) == before else None


def _call(mark: Marked, problems: list[Diagnostic], alone: bool) -> Emit | None:
    if alone and not CallSection.check(mark, "a call", problems):
        return None
    kernel = as_text(mark.get("kernel"), "kernel", problems)
    args = read_named(mark.get("args"), "args", problems)
    attrs = read_named(mark.get("attrs"), "attrs", problems)
    results, types = _results(mark.get("results"), problems)
    place = mark.get("kernel")
    return Emit(kernel, args, attrs, results, (place or mark).span, types) if kernel else None


Results = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, TemporaryType], ...]]


def _results(mark: Marked | None, problems: list[Diagnostic]) -> Results:
    """Names by output; `int32 t` and `float32[N, K] t` say the type of a temporary too."""
    names: list[tuple[str, str]] = []
    types: list[tuple[str, TemporaryType]] = []
    for key, value in pairs(mark, "results", problems):
        text = (as_text(value, "a result", problems) or "").strip()
        m = re.fullmatch(r"(?:([a-z]+\d*)?\s*(\[.*\])?\s+|(?P<only>\[.*\])\s*)?([A-Za-z_]\w*)", text)
        if m is None:
            problems.append(value.error(f"`{text}` names no result", "write `t`, `int32 t` or `float32[N, K] t`"))
            continue
        names.append((key.text.strip(), m[4]))
        dtype, dims = m[1], m[2] or m["only"]
        if dtype is not None and dtype not in DTYPES:
            problems.append(value.error(f"unknown element type `{dtype}`", did_you_mean(dtype, sorted(DTYPES))))
        try:
            shape = None if dims is None else convert_expression(*_inside(value, dims))
        except GapFuseError as e:
            problems.extend(e.diagnostics)
            continue
        if dtype is not None or shape is not None:
            types.append((key.text.strip(), TemporaryType(dtype, shape)))
    return tuple(names), tuple(types)


def _inside(mark: Marked, part: str) -> tuple[RuleText, ast.expr]:
    """A part of a scalar's text, read in its place."""
    text = RuleText(mark, part, col=mark.text.find(part))
    return text, parse_one(text, "a shape")


def _stored(mark: Marked | None, problems: list[Diagnostic]) -> dict[str, StoredType]:
    found: dict[str, StoredType] = {}
    for key, value in pairs(mark, "stored", problems):
        try:
            found.update({name.strip(): read_stored_type(value) for name in key.text.split(",")})
        except GapFuseError as e:
            problems.extend(e.diagnostics)
    return found


def _inner(mark: Marked | None, problems: list[Diagnostic]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for key, value in pairs(mark, "inner", problems):
        m = re.fullmatch(r"same_as\(\s*(\w+)\s*\)", as_text(value, "inner", problems) or "")
        if m is None:
            problems.append(value.error("what an inner quantisation may be reads `same_as(y)`"))
            continue
        found.append((key.text.strip(), m[1]))
    return tuple(found)
