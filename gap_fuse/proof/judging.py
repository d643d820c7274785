"""How far a kernel's answer is from the reference, and whether that is allowed: tolerances from the one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from fusion_engine.tolerances import KERNEL, STEPS_PER_ROUNDING, UNIT_OPERATORS, UNIT_ROUNDING
from gap_fuse.comparing import difference
from gap_fuse.proof.operands import RECURRENT

# Operators that add up: rounding is relative to what they add, not to what is left of it.
SUMS = frozenset(
    (
        "Add", "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "Erf", "Gelu", "Gemm", "GlobalAveragePool",
        "InstanceNormalization", "LayerNormalization", "MatMul", "ReduceMean", "ReduceSum", "Resize", "Sub", "Sum",
    )
)  # fmt: skip
ULP = 2.0**-23  # of float32, at the largest magnitude


@dataclass(frozen=True, slots=True)
class Verdict:
    """One result compared: the worst error and what is allowed, in `unit` (`steps` of an integer, or `ULP`)."""

    worst: float
    allowed: float
    unit: str

    @property
    def passed(self) -> bool:
        return self.worst <= self.allowed

    def __str__(self) -> str:
        return f"off by {self.worst:.3g} {self.unit}, {self.allowed:.3g} allowed"


@dataclass(frozen=True, slots=True)
class Truth:
    """What the model answers: onnxruntime's values, those in float64 (onnxruntime's own object where there are none),
    the largest magnitude that is summed, and what functions with values in -1..1 may be off by in onnxruntime."""

    runtime: Sequence[np.ndarray]
    exact: Sequence[np.ndarray]
    summed: float
    slack: float = 0.0


def summands(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> float:
    """The largest magnitude of an operand that a sum may cancel."""
    if not any(n.op_type in SUMS for n in model.graph.node):
        return 0.0
    values = [*feeds.values(), *(onnx.numpy_helper.to_array(t) for t in model.graph.initializer)]
    floats = [v[np.isfinite(v)] for v in values if v.dtype.kind == "f"]
    return max((float(np.max(np.abs(v), initial=0.0)) for v in floats), default=0.0)


def slack_of(model: onnx.ModelProto) -> float:
    """A rounding at 1 where an operator of the model has values in -1..1, as the gates of recurrent layers have."""
    return UNIT_ROUNDING if any(n.op_type in (*UNIT_OPERATORS, *RECURRENT) for n in model.graph.node) else 0.0


def judge(got: Sequence[np.ndarray], truth: Truth, roundings: int = 1, within: int | None = None) -> Verdict:
    """The worst of all results: floats in ULP of the largest magnitude, int8 from float arithmetic in steps (one for
    each rounding absorbed, or the rule's own `within`), other integers exact."""
    verdicts = [
        _judge(g, r, e, truth, roundings, within) for g, r, e in zip(got, truth.runtime, truth.exact, strict=True)
    ]
    return max(verdicts, key=lambda v: (v.worst - v.allowed, v.worst), default=Verdict(0.0, 0.0, "steps"))


def _judge(
    got: np.ndarray, runtime: np.ndarray, exact: np.ndarray, truth: Truth, roundings: int, within: int | None
) -> Verdict:
    if got.shape != runtime.shape or got.dtype != runtime.dtype:
        return Verdict(float("inf"), 0.0, "shape or type")
    found = difference(got, exact)
    if runtime.dtype.kind != "f":
        steps = (within or STEPS_PER_ROUNDING * roundings) if runtime.dtype == np.int8 else 0
        return Verdict(found.worst, float(steps), "steps")
    scale = max(found.scale, truth.summed, 1e-6)
    own = difference(runtime, exact).worst
    slack = truth.slack if exact is runtime else 2 * own if np.isfinite(own) else 0.0
    allowed = max(KERNEL[str(runtime.dtype)] * scale, slack)
    return Verdict(found.worst / (ULP * scale), allowed / (ULP * scale), "ULP")
