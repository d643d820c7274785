"""A model against what gap-fuse makes of it: the fused model in onnxruntime, each kernel's reference against its
nodes, and the C."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

import gap_fuse
from fusion_engine import FusedGraph, Planned, apply, fuse_model, order_layouts, plan, read_model, run_reference
from fusion_engine.tolerances import NETWORK, STEPS_PER_ROUNDING
from gap_fuse.comparing import difference
from gap_fuse.compiling import Compiled, find_target
from gap_fuse.proving import CallProof, prove_calls
from tests.rules import running

Feeds = Mapping[str, np.ndarray]


def planned_of(model: onnx.ModelProto) -> tuple[Planned, FusedGraph]:
    kernels = running.kernels()
    planned = plan(read_model(model, {}), running.rules(), kernels, 8, ())
    return planned, order_layouts(apply(planned.view, planned.plan, kernels), kernels, 8, ())


def prove(model: onnx.ModelProto, feeds: Feeds) -> tuple[CallProof, ...]:
    """The fused model answers as the model does, and every call's reference as its nodes do."""
    planned, graph = planned_of(model)
    fused = fuse_model(planned)
    onnx.checker.check_model(fused)
    wanted = running.by_onnxruntime(model, feeds)
    assert [o.name for o in fused.graph.output] == [o.name for o in model.graph.output], "the graph has other outputs"
    assert_alike(model, running.by_onnxruntime(fused, feeds), wanted)
    compiled = Compiled(Path(), model, fused, graph, running.kernels(), find_target("host"), {})
    proofs = prove_calls(compiled, run_reference(graph, running.kernels(), feeds))
    assert [str(p) for p in proofs if not p.passed] == []
    return proofs


def assert_alike(model: onnx.ModelProto, have: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """The same nodes regrouped: floats within the tolerance of a network, integers within one rounding."""
    for info, h, w in zip(model.graph.output, have, wanted, strict=True):
        assert (h.shape, h.dtype) == (w.shape, w.dtype), info.name
        found = difference(h, w)
        small = found.relative <= NETWORK["float32"] if w.dtype.kind == "f" else found.worst <= STEPS_PER_ROUNDING
        assert small, f"{info.name}: {found}"


def verified(result: gap_fuse.Result, folder: Path, seed: int = 0) -> None:
    """The C of a compilation against references, nodes, plan and onnxruntime."""
    result.write(folder)
    verdict = gap_fuse.verify(folder, samples=1, seed=seed)
    assert verdict.passed, str(verdict)
