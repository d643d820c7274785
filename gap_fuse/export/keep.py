"""What to keep as functions: classes, class paths, node-name paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from gap_fuse.export.scopes import Instance

NAMESPACE = "__gap_fuse_namespace__"
"""Where `@namespaced` writes DOMAIN::NAME on a class."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Instances whose class path (or, with `by_path`, whose own path) matches `glob` become functions."""

    glob: str
    by_path: bool = False
    domain: str | None = None
    name: str | None = None

    def takes(self, instance: Instance) -> bool:
        """Whether this instance is to be kept."""
        text = instance.path if self.by_path else instance.class_path
        return bool(text) and fnmatchcase(text, self.glob)

    def function(self, instance: Instance) -> tuple[str, str]:
        """Domain and name: what the author said, else the class's module path and name."""
        module, _, name = instance.class_path.rpartition(".")
        return self.domain or module or "local", self.name or name


Kept = type | str | Rule
"""A module class; a glob over class paths (`torch.nn.modules.rnn.*`); or `DOMAIN::NAME=GLOB` over instance paths."""


def rules_of(keep: Sequence[Kept]) -> tuple[Rule, ...]:
    """Raises GapFuseError for text that is neither a class path nor DOMAIN::NAME=GLOB."""
    return tuple(_rule(k) for k in keep)


def class_path(kind: type) -> str:
    """The path that torch's exporter writes for a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def split_name(text: str) -> tuple[str, str]:
    """DOMAIN::NAME. Raises GapFuseError for anything else."""
    domain, separator, name = text.partition("::")
    if not separator or not domain or not name.isidentifier():
        raise GapFuseError(
            Diagnostic(f"`{text}` is not DOMAIN::NAME", help="for example com.example.audio::StreamingGRU")
        )
    return domain, name


def _rule(kept: Kept) -> Rule:
    if isinstance(kept, Rule):
        return kept
    if isinstance(kept, type):
        named = getattr(kept, NAMESPACE, None)
        domain, name = split_name(named) if named else (None, None)
        return Rule(class_path(kept), domain=domain, name=name)
    text, equals, glob = kept.partition("=")
    if equals:
        domain, name = split_name(text)
        return Rule(glob, by_path=True, domain=domain, name=name)
    if "::" in kept:
        raise GapFuseError(Diagnostic(f"`{kept}`: which nodes?", help=f"`{kept}=layer*/conv` names them by their path"))
    return Rule(kept)
