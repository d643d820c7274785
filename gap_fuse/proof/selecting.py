"""Which rules or kernels a command means: names of the library, files or folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_engine import Kernel, RuleSet, load_kernels
from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean
from fusion_engine.language.types import Rule
from gap_fuse.library import load_library
from gap_fuse.rooms import room


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The rules that are meant, in their library."""

    rules: tuple[Rule, ...]
    library: RuleSet
    kernels: Mapping[str, Kernel]


def select_rules(which: Sequence[str], rules: Sequence[Path] = (), kernels: Sequence[Path] = ()) -> Selection:
    """The rules of those names, files or folders (none: every rule). Raises GapFuseError: unknown, or it does not
    load."""
    paths = [Path(w) for w in which if _is_path(w)]
    library = load_library([*rules, *paths], kernels)
    every = library.rules.rules
    _check_names([w for w in which if not _is_path(w)], [r.name for r in every], "rule")
    chosen = [r for r in every if not which or r.name in which or _below(r.span.file, paths)]
    _check_any([r.span.file for r in chosen], paths, "rule")
    return Selection(tuple(chosen), library.rules, library.kernels)


@dataclass(frozen=True, slots=True, eq=False)
class KernelSelection:
    """The kernels that are meant; the folders beside the shipped one, and all folders."""

    kernels: tuple[Kernel, ...]
    folders: tuple[Path, ...]
    every: tuple[Path, ...]


def select_kernels(which: Sequence[str], kernels: Sequence[Path] = ()) -> KernelSelection:
    """The kernels with C of those names or folders (none: every kernel). Raises GapFuseError: unknown, or it does not
    load."""
    paths = [Path(w) for w in which if _is_path(w)]
    folders = (*kernels, *paths)
    every = (room("kernels"), *folders)
    known = load_kernels(every)
    _check_names([w for w in which if not _is_path(w)], known, "kernel")
    chosen = [k for k in known.values() if not which or k.name in which or _below(str(k.folder), paths)]
    _check_any([str(k.folder) for k in chosen], paths, "kernel")
    return KernelSelection(tuple(k for k in chosen if k.view is None), folders, every)


def _is_path(which: str) -> bool:
    return "/" in which or which.endswith((".yaml", ".yml")) or Path(which).is_dir()


def _below(file: str, paths: Iterable[Path]) -> bool:
    place = Path(file).resolve()
    return any(place.is_relative_to(p.resolve()) for p in paths)


def _check_any(files: Sequence[str], paths: Iterable[Path], what: str) -> None:
    """Nothing is not proved."""
    empty = [p for p in paths if not any(_below(f, [p]) for f in files)]
    if empty:
        raise GapFuseError([Diagnostic(f"there is no {what} in it", Span(str(p))) for p in empty])


def _check_names(names: Iterable[str], known: Iterable[str], what: str) -> None:
    every = list(known)
    unknown = [n for n in names if n not in every]
    if unknown:
        raise GapFuseError([Diagnostic(f"there is no {what} `{n}`", help=did_you_mean(n, every)) for n in unknown])
