"""Each kernel call against the nodes of the model that it stands for, on equal inputs (the proof of the rules, on
this network)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from fusion_engine.graph import FusedGraph
from fusion_engine.tolerances import NETWORK, STEPS_PER_ROUNDING, UNIT_OPERATORS, UNIT_ROUNDING
from gap_fuse.arrays import Samples
from gap_fuse.comparing import Difference, difference
from gap_fuse.compiling import Compiled
from gap_fuse.oracle import run_oracle

KERNEL_DOMAIN = "gap_fuse.kernels"


@dataclass(frozen=True, slots=True)
class CallProof:
    """One function of the fused model: the kernels' result against onnxruntime's on equal inputs. `steps` is None for
    floats."""

    function: str
    result: str
    found: Difference
    steps: float | None
    slack: float = 0.0

    @property
    def passed(self) -> bool:
        if self.steps is not None:
            return self.steps <= STEPS_PER_ROUNDING
        return self.found.relative <= NETWORK["float32"] or self.found.worst <= self.slack

    def __str__(self) -> str:
        how = (
            f"{self.steps:g} steps" if self.steps is not None else f"{self.found.relative:.1e} of the largest magnitude"
        )
        found = self.found
        return (
            f"{self.function} -> {self.result}: {found.differing:,} of {found.values:,} values differ, by up to {how}"
        )


def prove_calls(compiled: Compiled, reference: Mapping[str, np.ndarray]) -> tuple[CallProof, ...]:
    """Run every kernel function of fused.onnx in onnxruntime on the inputs that the references saw, and compare its
    results."""
    fused = compiled.fused
    nodes = [n for n in fused.graph.node if n.domain == KERNEL_DOMAIN]
    return tuple(proof for node in nodes for proof in _prove(fused, node, compiled.graph, reference))


def _prove(
    fused: onnx.ModelProto, node: onnx.NodeProto, graph: FusedGraph, reference: Mapping[str, np.ndarray]
) -> list[CallProof]:
    constants = {t.name: t for t in fused.graph.initializer if t.name in node.input}
    free = [n for n in dict.fromkeys(node.input) if n and n not in constants]
    results = [n for n in node.output if n in reference]
    if not results or any(n not in reference for n in free):
        return []
    model = _single(fused, node, free, list(constants.values()), graph)
    truth = run_oracle(model, results, Samples(1, {n: reference[n][None] for n in free}, {}))
    label = f"{node.op_type}:{node.overload}"[:48]
    bodies = [
        f for f in fused.functions if (f.domain, f.name, f.overload) == (node.domain, node.op_type, node.overload)
    ]
    slack = max((unit_slack(f.node, output) for f in bodies for output in f.output), default=0.0)
    return [_compare(label, name, reference[name], truth[name][0], slack) for name in results]


def unit_slack(nodes: Sequence[onnx.NodeProto], output: str) -> float:
    """What a value may be off by absolutely: a rounding at 1 where a function with values in -1..1 makes it."""
    return UNIT_ROUNDING if any(output in n.output and n.op_type in UNIT_OPERATORS for n in nodes) else 0.0


def _compare(function: str, name: str, got: np.ndarray, wanted: np.ndarray, slack: float) -> CallProof:
    found = difference(got, wanted)
    return CallProof(function, name, found, found.worst if got.dtype.kind in "iu" else None, slack)


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
