"""fuse(): the plan as an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

from fusion_engine import fuse_model, plan, read_model
from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, counted
from gap_fuse.library import load_library
from gap_fuse.oracle import answers


def fuse(
    model: Path, output: Path, *, dims: Mapping[str, int], rules: Sequence[Path] = (), kernels: Sequence[Path] = ()
) -> str:
    """Write the fused model; returns a line of summary. Raises GapFuseError for a model that is not covered or a bad
    path."""
    library = load_library(rules, kernels)
    planned = plan(read_model(model, dims), library.rules, library.kernels, check=answers)
    proto = fuse_model(planned)
    try:
        onnx.save(proto, output)
    except OSError as e:
        raise GapFuseError(Diagnostic(f"cannot write: {e.strerror or e}", Span(str(output)))) from e
    return f"{output}: {counted(len(proto.graph.node), 'node')}, {counted(len(proto.functions), 'kernel function')}"
