"""The module hierarchy that torch's exporter (dynamo) records on a node: parallel lists, outermost first."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from fusion_engine.view.types import Scope

CLASSES = "pkg.torch.onnx.class_hierarchy"
NAMES = "pkg.torch.onnx.name_scopes"


def scopes_of(metadata: Iterable[tuple[str, str]]) -> tuple[Scope, ...]:
    """The module hierarchy that torch's exporter recorded on a node."""
    data = dict(metadata)
    return _parse_scopes(data.get(CLASSES, ""), data.get(NAMES, ""))


@lru_cache(maxsize=4096)
def _parse_scopes(classes: str, names: str) -> tuple[Scope, ...]:
    cls, instances = texts_of(classes), texts_of(names)
    instances += [""] * (len(cls) - len(instances))
    return tuple(Scope(c, n) for c, n in zip(cls, instances, strict=False))


def texts_of(text: str) -> list[str]:
    """One of the two lists as the exporter prints it; empty for any other text."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [str(v) for v in value] if isinstance(value, list | tuple) else []
