"""Each kernel call against the nodes of the model that it stands for, on equal inputs (the proof of the rules, on
this network)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from fusion_engine.graph import FusedGraph
from fusion_engine.tolerances import KERNEL, STEPS_PER_ROUNDING
from gap_fuse.arrays import Samples
from gap_fuse.comparing import Agreement, agreement
from gap_fuse.compiling import Compiled
from gap_fuse.precise import in_float64
from gap_fuse.progress import Tick, no_progress
from gap_fuse.truth import model_truth

KERNEL_DOMAIN = "gap_fuse.kernels"


@dataclass(frozen=True, slots=True)
class CallProof:
    """One function of the fused model: the kernels' result against onnxruntime's on equal inputs. `steps` is None for
    floats, `found` where nothing runs the function's nodes."""

    function: str
    result: str
    found: Agreement | None
    steps: float | None

    @property
    def passed(self) -> bool:
        if self.found is None:
            return True
        return self.found.passed if self.steps is None else self.steps <= STEPS_PER_ROUNDING

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.function} -> {self.result}: nothing runs its nodes"
        counts = f"{self.found.model.differing:,} of {self.found.model.values:,} values differ"
        how = str(self.found) if self.steps is None else f"by up to {self.steps:g} steps"
        return f"{self.function} -> {self.result}: {counts}, {how}"


def prove_calls(
    compiled: Compiled, reference: Mapping[str, np.ndarray], tick: Tick = no_progress
) -> tuple[CallProof, ...]:
    """Run every kernel function of fused.onnx in onnxruntime on the inputs that the references saw, and compare its
    results."""
    fused = compiled.fused
    proofs: list[CallProof] = []
    for node in kernel_nodes(fused):
        proofs += _prove(fused, node, compiled.graph, reference)
        tick(1)
    return tuple(proofs)


def kernel_nodes(fused: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The calls of kernel functions."""
    return [n for n in fused.graph.node if n.domain == KERNEL_DOMAIN]


def _prove(
    fused: onnx.ModelProto, node: onnx.NodeProto, graph: FusedGraph, reference: Mapping[str, np.ndarray]
) -> list[CallProof]:
    constants = {t.name: t for t in fused.graph.initializer if t.name in node.input}
    free = [n for n in dict.fromkeys(node.input) if n and n not in constants]
    results = [n for n in node.output if n in reference]
    if not results or any(n not in reference for n in free):
        return []
    model = _single(fused, node, free, list(constants.values()), graph)
    feeds = {n: reference[n] for n in free}
    truth = model_truth(model, results, Samples(1, {n: v[None] for n, v in feeds.items()})).values

    def exact(name: str) -> np.ndarray | None:
        answers = in_float64(model, [name], feeds)
        return None if answers is None else answers[name]

    label = f"{node.op_type}:{node.overload}"[:48]
    if truth is None:
        return [CallProof(label, name, None, None) for name in results]
    return [_compare(label, name, reference[name], truth[name][0], partial(exact, name)) for name in results]


def _compare(
    function: str, name: str, got: np.ndarray, wanted: np.ndarray, exact: Callable[[], np.ndarray | None]
) -> CallProof:
    if got.dtype.kind in "iu":
        found = agreement(got, wanted, 0.0, lambda: None)
        return CallProof(function, name, found, found.model.worst)
    return CallProof(function, name, agreement(got, wanted, KERNEL.get(str(got.dtype), 0.0), exact), None)


def _single(
    fused: onnx.ModelProto, node: onnx.NodeProto, free: list[str], constants: list[onnx.TensorProto], graph: FusedGraph
) -> onnx.ModelProto:
    def info(name: str) -> onnx.ValueInfoProto:
        b = graph.buffer[name]
        return onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(b.dtype)), b.shape
        )

    outputs = [info(n) for n in node.output if n in graph.buffer]
    body = onnx.helper.make_graph([node], "call", [info(n) for n in free], outputs, constants)
    return onnx.helper.make_model(
        body, opset_imports=fused.opset_import, functions=fused.functions, ir_version=fused.ir_version
    )
