"""Which rules or kernels a command means: names of the library, files or folders."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_engine import Kernel, RuleSet, load_kernels
from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean
from fusion_engine.kernels import KERNEL_FILE
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
    paths = _written_paths(which)
    library = load_library([*rules, *paths], kernels)
    if more := _further_paths(which, {r.name for r in library.rules.rules}):
        paths += more
        library = load_library([*rules, *paths], kernels)
    every = library.rules.rules
    _check_names(which, paths, [r.name for r in every], "rule")
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
    paths = _written_paths(which)
    known = load_kernels([room("kernels"), *kernels, *paths])
    if more := _further_paths(which, known):
        paths += more
        known = load_kernels([room("kernels"), *kernels, *paths])
    _check_names(which, paths, known, "kernel")
    chosen = [k for k in known.values() if not which or k.name in which or _below(str(k.folder), paths)]
    _check_any([str(k.folder) for k in chosen], paths, "kernel")
    folders = (*kernels, *paths)
    return KernelSelection(tuple(k for k in chosen if k.view is None), folders, (room("kernels"), *folders))


def _written_paths(which: Iterable[str]) -> list[Path]:
    return [Path(w) for w in which if "/" in w or w.endswith((".yaml", ".yml"))]


def _further_paths(which: Iterable[str], known: Container[str]) -> list[Path]:
    """Words that look like names and are none, but are there as files or folders."""
    return [Path(w) for w in which if w not in known and Path(w).exists() and Path(w) not in _written_paths(which)]


def _below(file: str, paths: Iterable[Path]) -> bool:
    place = Path(file).resolve()
    return any(place.is_relative_to(_folder(p)) for p in paths)


def _folder(path: Path) -> Path:
    """What the path stands for: a kernel.yaml for its folder."""
    return (path.parent if path.name == KERNEL_FILE else path).resolve()


def _check_any(files: Sequence[str], paths: Iterable[Path], what: str) -> None:
    """Nothing is not proved."""
    empty = [p for p in paths if not any(_below(f, [p]) for f in files)]
    if empty:
        raise GapFuseError([Diagnostic(f"there is no {what} in it", Span(str(p))) for p in empty])


def _check_names(which: Iterable[str], paths: Sequence[Path], known: Iterable[str], what: str) -> None:
    every = list(known)
    unknown = [w for w in which if w not in every and Path(w) not in paths]
    if unknown:
        raise GapFuseError([Diagnostic(f"there is no {what} `{n}`", help=_nearest(n, every)) for n in unknown])


def _nearest(word: str, known: Sequence[str]) -> str:
    path = "a path has a `/` or ends in .yaml"
    hint = did_you_mean(word, known)
    return f"{hint} ({path}: `./{word}`)" if hint else f"{path}; no file or folder `{word}` is here either"
