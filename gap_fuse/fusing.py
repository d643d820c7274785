"""The commands that end before tiling: fuse, rules check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

from fusion_engine import (
    Kernel,
    Model,
    Planned,
    RuleSet,
    check_rules,
    fuse_model,
    load_kernels,
    load_rules,
    plan,
    read_model,
)
from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from gap_fuse.rooms import room

DEFAULT_CORES = 8
_LIBRARY = {"classes.yaml", "fragments.yaml"}  # beside rules, not rules


def _planned(
    model: Path | str, dims: Mapping[str, int], rules: Sequence[Path], kernels: Sequence[Path]
) -> tuple[Model, RuleSet, Mapping[str, Kernel], Planned]:
    known_kernels = load_kernels([room("kernels"), *kernels])
    known_rules = load_rules([room("rules"), *rules], known_kernels)
    read = read_model(model, dims)
    return read, known_rules, known_kernels, plan(read, known_rules, known_kernels, DEFAULT_CORES)


def fuse(
    model: Path, output: Path, *, dims: Mapping[str, int], rules: Sequence[Path] = (), kernels: Sequence[Path] = ()
) -> str:
    """Write the fused model; returns a line of summary. Raises GapFuseError for a model that is not covered or a bad
    path."""
    _, _, _, planned = _planned(model, dims, rules, kernels)
    proto = fuse_model(planned)
    try:
        onnx.save(proto, output)
    except OSError as e:
        raise GapFuseError(Diagnostic(f"cannot write: {e.strerror or e}", Span(str(output)))) from e
    return f"{output}: {len(proto.graph.node)} nodes, {len(proto.functions)} kernel functions"


def check(paths: Sequence[Path], kernels: Sequence[Path] = ()) -> tuple[int, Sequence[Diagnostic]]:
    """How many rules were read and every mistake found in them."""
    known = load_kernels([room("kernels"), *kernels])
    chosen = list(paths) or [room("rules")]
    count = sum(
        len(list(p.rglob("*.yaml"))) - len(_LIBRARY & {f.name for f in p.rglob("*.yaml")}) if p.is_dir() else 1
        for p in chosen
    )
    return count, check_rules(chosen, known)
