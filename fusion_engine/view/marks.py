"""What a fused model says of each node inside a kernel call: names, scopes and metadata of the file it came from.

Equal bodies are one function, so what differs from call to call stands in the call's metadata, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fusion_engine.view.types import MODULE, Scope

KERNELS = "gap_fuse.kernels"  # the domain of the functions that stand for kernels
MARKS = "gap_fuse.nodes"  # the metadata key
OUTLINED = "scope."  # how overloads of functions begin that stand for a region of the graph: see outlining.py

Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """Of one node of a body: the nodes of the file it stands for, its results' names, scopes and metadata."""

    origins: tuple[str, ...]
    values: tuple[str, ...]
    scopes: tuple[Scope, ...] = ()
    metadata: Metadata = ()


def marks_to_text(marks: Iterable[Marks]) -> str:
    """Deterministic JSON; what is empty is left out."""
    return json.dumps([_plain(m) for m in marks], ensure_ascii=False, separators=(",", ":"))


def _plain(m: Marks) -> dict[str, Any]:
    found: dict[str, Any] = {"names": list(m.origins), "values": list(m.values)}
    if m.scopes:
        found["scopes"] = [[s.cls, s.name] + [s.kind] * (s.kind != MODULE) for s in m.scopes]
    if m.metadata:
        found["metadata"] = dict(m.metadata)
    return found


def marks_from_text(text: str) -> Sequence[Marks]:
    """What `marks_to_text` wrote; nothing where the text is something else (a tool may have changed it)."""
    try:
        entries = json.loads(text)
        return [_marks(e) for e in entries]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _marks(entry: Any) -> Marks:
    scopes = tuple(Scope(*_texts(s)) for s in entry.get("scopes", ()))
    metadata = tuple((str(k), str(v)) for k, v in entry.get("metadata", {}).items())
    return Marks(_texts(entry["names"]), _texts(entry["values"]), scopes, metadata)


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise TypeError("not a list of texts")
    return tuple(values)
