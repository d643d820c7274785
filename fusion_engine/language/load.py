"""Directories of rule files into a RuleSet, with every error of every file reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fusion_engine.collection import paused
from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, near_file
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language.checks import check_rule
from fusion_engine.language.fragments import Fragment, read_classes, read_fragments
from fusion_engine.language.measure import check_measure
from fusion_engine.language.rule_file import read_rule
from fusion_engine.language.types import Rule, RuleSet
from fusion_engine.language.variants import Library
from fusion_engine.marked_yaml import Marked, read_yaml

Kept = TypeVar("Kept")

FRAGMENTS, CLASSES = "fragments.yaml", "classes.yaml"


@dataclass
class _Found:
    """What the directories gave so far."""

    rules: dict[str, tuple[Rule, int]] = field(default_factory=dict)
    fragments: dict[str, Fragment] = field(default_factory=dict)
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    libraries: set[Path] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)

    @property
    def rule_set(self) -> RuleSet:
        rules = tuple(rule for _, (rule, _) in sorted(self.rules.items()))
        return RuleSet(rules, dict(sorted(self.classes.items())), tuple(self.notes), self.sources)


def load_rules(dirs: Sequence[Path], kernels: Mapping[str, Kernel] | None) -> RuleSet:
    """Every `*.yaml` below the directories, by name; a rule of a later directory replaces an earlier one of its name.

    A single file counts as a directory of its own, with the fragments and classes nearest to it.
    `kernels` None leaves kernel names and signatures unchecked. Raises GapFuseError with every problem of every file; a
    directory with neither rules nor fragments nor classes is one.
    """
    with paused():
        found = _load(dirs, kernels)
        found.problems.extend(_measured(found))
    if found.problems:
        raise GapFuseError(found.problems)
    return found.rule_set


def check_rules(
    paths: Sequence[Path], kernels: Mapping[str, Kernel] | None, beneath: Sequence[Path] = ()
) -> tuple[Diagnostic, ...]:
    """Every problem of the rule files below `paths` (directories, or single files with the fragments and classes near
    them). The fragments and classes of the directories `beneath` are known too; their rules are not looked at."""
    found = _load(paths, kernels, beneath)
    return (*found.problems, *_measured(found))


def load_library(dirs: Sequence[Path]) -> Library:
    """The fragments and classes of directories of rules. Raises GapFuseError."""
    found = _load((), None, dirs)
    if found.problems:
        raise GapFuseError(found.problems)
    return Library(found.fragments, found.classes)


def _library_files(file: Path) -> list[Path]:
    """The nearest fragments and classes files at or above a rule file's directory, four levels up at most."""
    found: list[Path] = []
    for name in (CLASSES, FRAGMENTS):
        near = [d / name for d in list(file.resolve().parents)[:4] if (d / name).is_file()]
        found.extend(near[:1])
    return found


def _load(dirs: Sequence[Path], kernels: Mapping[str, Kernel] | None, beneath: Sequence[Path] = ()) -> _Found:
    found = _Found()
    for folder in beneath:
        _load_library((p for p in folder.rglob("*.yaml") if p.name in (CLASSES, FRAGMENTS)), found)
    files: list[tuple[Path, int]] = []
    for layer, folder in enumerate(dirs):
        if folder.is_file() or folder.suffix == ".yaml":
            _load_library(_library_files(folder), found)
            files.append((folder, layer))
            continue
        if not folder.is_dir():
            found.problems.append(
                Diagnostic("there is no such directory of rules", Span(str(folder)), near_file(folder))
            )
            continue
        here = sorted(folder.rglob("*.yaml"))
        _load_library([p for p in here if p.name in (CLASSES, FRAGMENTS)], found)
        files += [(p, layer) for p in here if p.name not in (CLASSES, FRAGMENTS)]
    for path, layer in files:
        _load_file(path, layer, kernels, found)
    found.problems.extend(_hollow(dirs, found))
    return found


def _hollow(dirs: Sequence[Path], found: _Found) -> list[Diagnostic]:
    """Directories and files that nothing was read from, and of which nothing else is wrong."""
    said = [Path(f) for f in (*found.sources, *(d.span.file for d in found.problems if d.span))]
    hollow = [d for d in dirs if not any(f.is_relative_to(d) for f in said)]
    help_ = "a rule is a file NAME.yaml, in it or below"
    return [Diagnostic("there is no rule in it", Span(str(d)), help_ if d.is_dir() else None) for d in hollow]


def _load_library(paths: Iterable[Path], found: _Found) -> None:
    for path in sorted(paths, key=lambda p: (p.name != CLASSES, p)):
        if path.resolve() in found.libraries:
            continue
        found.libraries.add(path.resolve())
        for document in _documents(path, found):
            if path.name == CLASSES:
                _merge(found.classes, read_classes(document, found.problems), "class", path, found)
            else:
                _merge(found.fragments, read_fragments(document, found.problems), "fragment", path, found)


def _merge(into: dict[str, Kept], new: Mapping[str, Kept], what: str, path: Path, found: _Found) -> None:
    for name, value in new.items():
        if name in into and into[name] != value:
            found.notes.append(f"{what} {name} of {path} overrides the one loaded before")
        into[name] = value


def _documents(path: Path, found: _Found) -> tuple[Marked, ...]:
    try:
        documents = read_yaml(path)
    except GapFuseError as e:
        found.problems.extend(e.diagnostics)
        return ()
    found.sources.update((d.span.file, d.lines) for d in documents[:1])
    return documents


def _load_file(path: Path, layer: int, kernels: Mapping[str, Kernel] | None, found: _Found) -> None:
    library = Library(found.fragments, found.classes)
    for document in _documents(path, found):
        rule = read_rule(document, library, found.problems)
        if rule is None:
            continue
        found.problems.extend(_checked(rule, document, kernels))
        _keep(rule, layer, path, document, found)


def _checked(rule: Rule, document: Marked, kernels: Mapping[str, Kernel] | None) -> list[Diagnostic]:
    def at(span: Span, message: str, help: str | None) -> Diagnostic:
        own = span.file == document.span.file and 0 < span.line <= len(document.lines)
        return Diagnostic(message, span, help, document.lines[span.line - 1] if own else None)

    unique = {(d.message, d.span): d for d in check_rule(rule, kernels, at)}
    return list(unique.values())


def _measured(found: _Found) -> list[Diagnostic]:
    """Rewrites end only if the measure falls in each: asked of all rules together."""

    def at(rule: Rule, span: Span, message: str, help: str | None) -> Diagnostic:
        lines = found.sources.get(rule.span.file, ())
        return Diagnostic(message, span, help, lines[span.line - 1] if 0 < span.line <= len(lines) else None)

    return list(check_measure(found.rule_set, at))


def _keep(rule: Rule, layer: int, path: Path, document: Marked, found: _Found) -> None:
    if rule.name not in found.rules:
        found.rules[rule.name] = (rule, layer)
        return
    other, other_layer = found.rules[rule.name]
    if other_layer == layer:
        name = document.get("rule") or document
        found.problems.append(name.error(f"the rule `{rule.name}` is there twice", f"also in {other.span}"))
        return
    found.notes.append(f"rule {rule.name} of {path} overrides the one of {other.span.file}")
    found.rules[rule.name] = (rule, layer)
