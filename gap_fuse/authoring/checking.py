"""check(): every mistake of rule files, and warnings about rules that are sound but useless."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_engine import RuleSet, check_rules, load_rules
from fusion_engine.diagnostics import Diagnostic, GapFuseError, counted
from fusion_engine.kernels import read_kernels
from fusion_engine.review import review_rules
from gap_fuse.compiling import find_target
from gap_fuse.proof.examples import read_example
from gap_fuse.rooms import room

_LIBRARY = {"classes.yaml", "fragments.yaml"}  # beside rules, not rules


@dataclass(frozen=True, slots=True)
class Checked:
    """How many rule files were read, and what was found."""

    count: int
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]

    def __str__(self) -> str:
        parts = (counted(self.count, "rule"), counted(len(self.errors), "error"))
        warned = (counted(len(self.warnings), "warning"),) if self.warnings else ()
        return ", ".join((*parts, *warned))


def check(paths: Sequence[Path], kernels: Sequence[Path] = (), target: str | Path | None = None) -> Checked:
    """Check rule files or folders (none: the shipped ones); warnings only where there is no error.

    With `target`, also which rules it can never run. Mistakes of kernels stand first; calls of those kernels are a
    warning. Raises GapFuseError for an unknown target.
    """
    known, mistaken = read_kernels([room("kernels"), *kernels])
    chosen = list(paths) or [room("rules")]
    found_at = [f for p in chosen for f in (sorted(p.rglob("*.yaml")) if p.is_dir() else [p]) if f.is_file()]
    files = [f for f in found_at if f.name not in _LIBRARY]
    machine = None if target is None else find_target(target)
    said = check_rules(chosen, known, beneath=[room("rules")])
    errors = (*mistaken, *(d for d in said if d.severity == "error"))
    if errors:
        return Checked(len(files), errors, tuple(d for d in said if d.severity == "warning"))
    own = {str(f) for f in files}
    everything = load_rules([room("rules"), *paths], known)
    if unread := tuple(_unread_examples(everything, own)):
        return Checked(len(files), unread, ())
    name, isa = (None, ()) if machine is None else (machine.name, machine.isa)
    found = review_rules(everything, known, name, isa)
    return Checked(len(files), (), tuple(w for w in found if w.span is not None and w.span.file in own))


def _unread_examples(rules: RuleSet, own: set[str]) -> Iterator[Diagnostic]:
    """The models under `tests:` that cannot be read, with the reader's words."""
    for test in (t for r in rules.rules for t in r.tests if t.span.file in own):
        try:
            read_example(test)
        except GapFuseError as e:
            yield Diagnostic(f"the model of the test `{test.kind}: {test.expect}` is not read: {e}", test.span)
