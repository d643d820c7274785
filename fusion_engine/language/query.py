"""A pattern typed on its own (`gap-fuse match`) as a rule that matches and emits nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean
from fusion_engine.language.checks import bound_names
from fusion_engine.language.expressions import expression_names
from fusion_engine.language.types import Rule, RuleSet
from fusion_engine.language.variants import Library, read_conditions, read_variant
from fusion_engine.marked_yaml import Marked

FILE = "<pattern>"


def read_query(pattern: str, conditions: Sequence[str], library: Library) -> RuleSet:
    """One rule named `query`. Raises GapFuseError with every mistake at its line and column of the pattern.

    A text of one line may leave out `y =`.
    """
    text = pattern.strip("\n")
    if not text.strip():
        raise GapFuseError(Diagnostic("the pattern is empty", Span(FILE), "for example `y = Relu(Conv(x, w, _))`"))
    if "=" not in text.split("(")[0] and "\n" not in text.strip():
        text = f"y = {text.strip()}"
    mark = Marked("map", Span(FILE), "", entries=((_scalar("pattern", ""), _scalar(text, FILE)),))
    variant = read_variant(mark, library, frozenset(), None, None)
    problems: list[Diagnostic] = []
    where = tuple(
        c for i, t in enumerate(conditions) for c in read_conditions(_scalar(t, f"<where {i + 1}>"), problems)
    )
    rule = Rule("query", "", {}, {}, (variant,), (), (), Span(FILE))
    known = sorted(bound_names(rule, variant))
    for text_, condition in where:
        for name in expression_names(condition):
            if name.name not in known:
                hint = did_you_mean(name.name, known) or "it binds: " + ", ".join(known)
                problems.append(Diagnostic(f"the pattern binds no `{name.name}`", name.span, hint, text_))
    if problems:
        raise GapFuseError(problems)
    asked = replace(rule, variants=(replace(variant, where=where),))
    return RuleSet((asked,), library.classes, sources={FILE: tuple(text.split("\n"))})


def _scalar(text: str, file: str) -> Marked:
    """A block scalar whose first line is line 1 of `file`."""
    lines = tuple(text.split("\n"))
    return Marked("scalar", Span(file, 0, 1, 2), lines[0], text=text, style="|", lines=lines)
