"""One rule file into a Rule: structure here, patterns in variants.py, calls in emits.py, cross-checks in checks.py."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.language.captures import read_capture_type
from fusion_engine.language.draws import read_draw
from fusion_engine.language.emits import read_entry
from fusion_engine.language.file_model import RuleFile, TestSection
from fusion_engine.language.rewrites import read_rewrites, read_weights
from fusion_engine.language.types import CaptureType, EmitEntry, Rule, RuleTest, Variant
from fusion_engine.language.variants import Library, read_variant
from fusion_engine.marked_yaml import Marked, as_int, as_list, as_text, as_texts, lacks, pairs


def read_rule(document: Marked, library: Library, problems: list[Diagnostic]) -> Rule | None:
    """The rule of one file; None where it cannot be read, with every reason added to `problems`."""
    before = len(problems)
    if (kernel := document.get("kernel")) is not None and document.get("rule") is None:
        problems.append(kernel.error("this is a kernel, not a rule", "name its folder with --kernels"))
        return None
    if not RuleFile.check(document, "a rule", problems):
        return None
    rewrite = document.get("rewrite")
    if rewrite is not None and document.get("emit") is not None:
        problems.append(rewrite.error("a rule has `emit` or `rewrite`, not both", "write two rules"))
    if all(lacks(document, key, RuleFile.keys()) for key in ("emit", "rewrite")):
        problems.append(document.error("a rule lacks the key `emit`", "or `rewrite`"))
    if (priority := document.get("priority")) is not None and priority.text != "0":
        problems.append(priority.error("`priority` is not supported yet", "the cheapest cover is chosen"))
    given = _given(document.get("given"), problems)
    rule = Rule(
        name=as_text(document.get("rule"), "rule", problems) or "",
        summary=as_text(document.get("summary"), "summary", problems) or "",
        given=given,
        draw=read_draw(document, problems),
        variants=_variants(document, library, given, problems),
        emit=_entries(document, problems),
        tests=_tests(document, problems),
        span=document.span,
        version=hashlib.sha256("\n".join(document.lines).encode()).hexdigest()[:16],
        priority=as_int(document.get("priority"), "priority", problems) or 0,
        rewrite=read_rewrites(rewrite, problems),
        weights=read_weights(document.get("measure"), problems),
    )
    return rule if len(problems) == before else None


def _given(mark: Marked | None, problems: list[Diagnostic]) -> dict[str, CaptureType]:
    """Types by capture. `gamma, beta: T` is one key; in `{q, k: T}` YAML reads `q` without a value: it shares k's."""
    found: dict[str, CaptureType] = {}
    waiting: list[Marked] = []
    for key, value in pairs(mark, "given", problems):
        if value.is_null:
            waiting.append(key)
            continue
        try:
            type_ = read_capture_type(value)
        except GapFuseError as e:
            problems.extend(e.diagnostics)
            waiting = []
            continue
        for name in [*(w.text for w in waiting), *key.text.split(",")]:
            found[name.strip()] = type_
        waiting = []
    problems.extend(w.error(f"`{w.text}` has no type") for w in waiting)
    return found


def _variants(
    document: Marked, library: Library, given: Mapping[str, CaptureType], problems: list[Diagnostic]
) -> tuple[Variant, ...]:
    optional = frozenset(name for name, t in given.items() if t.optional)
    found: list[Variant] = []
    match = document.get("match")
    marks = (match,) if match is not None and match.kind == "map" else as_list(match, "match", problems)
    for mark in marks:
        try:
            variant = read_variant(mark, library, optional, document.get("let"), document.get("where"))
        except GapFuseError as e:
            problems.extend(e.diagnostics)
            continue
        if any(v.name == variant.name for v in found):
            problems.append(mark.error(f"the variant `{variant.name}` is there twice"))
        found.append(variant)
    if match is not None and not marks:
        problems.append(match.error("`match` is empty"))
    return tuple(found)


def _entries(document: Marked, problems: list[Diagnostic]) -> tuple[EmitEntry, ...]:
    emit = document.get("emit")
    if emit is None:
        return ()
    marks = (emit,) if emit.kind == "map" else as_list(emit, "emit", problems)
    if not marks:
        problems.append(emit.error("`emit` is empty"))
    return tuple(e for e in (read_entry(m, problems) for m in marks) if e is not None)


def _tests(document: Marked, problems: list[Diagnostic]) -> tuple[RuleTest, ...]:
    found: list[RuleTest] = []
    for mark in as_list(document.get("tests"), "tests", problems):
        before = len(problems)
        if not TestSection.check(mark, "a test", problems) or len(problems) > before:
            continue
        kinds = [k for k in ("fires", "rejects") if mark.get(k) is not None]
        if len(kinds) != 1 or (mark.get("model") is None) == (mark.get("onnx") is None):
            problems.append(mark.error("a test has `fires` or `rejects`, and `model` (ONNX text) or `onnx` (a file)"))
            continue
        expect = as_text(mark.get(kinds[0]), kinds[0], problems) or ""
        model, onnx = as_text(mark.get("model"), "model", problems), as_text(mark.get("onnx"), "onnx", problems)
        path = None if onnx is None else str(Path(mark.span.file).parent / onnx)
        constants = as_texts(mark.get("constants"), "constants", problems)
        found.append(RuleTest(kinds[0], expect, model, path, constants, mark.span))
    return tuple(found)
