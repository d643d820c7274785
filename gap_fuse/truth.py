"""What a model answers: by onnxruntime, and by what else where onnxruntime refuses the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from fusion_engine import read_model, view
from fusion_engine.view import view_to_model
from gap_fuse.arrays import Samples
from gap_fuse.oracle import Refused, run_oracle
from gap_fuse.precise import in_float64
from gap_fuse.progress import Tick, no_progress


@dataclass(frozen=True)
class Truth:
    """The outputs by name, sample axis first, `by` what; None where nothing runs the model. `refused` is
    onnxruntime's sentence where it does not run the file as it is."""

    values: Mapping[str, np.ndarray] | None
    by: str = "onnxruntime"
    refused: str = ""


def model_truth(model: onnx.ModelProto, outputs: Sequence[str], samples: Samples, tick: Tick = no_progress) -> Truth:
    """onnxruntime on the file; else on its normal form (operators of an old operator set in their newest form); else
    onnx's reference evaluator in float64. Raises GapFuseError where the inputs are what onnxruntime refuses."""
    try:
        return Truth(run_oracle(model, outputs, samples, tick))
    except Refused as e:
        refused = e.diagnostics[0].message
    normal = view_to_model(view(read_model(model)))
    try:
        return Truth(run_oracle(normal, outputs, samples, tick), "onnxruntime on the normal form", refused)
    except Refused:
        return Truth(_evaluated(model, outputs, samples), "onnx's reference evaluator", refused)


def _evaluated(model: onnx.ModelProto, outputs: Sequence[str], samples: Samples) -> Mapping[str, np.ndarray] | None:
    rows = []
    for i in range(samples.count):
        row = in_float64(model, outputs, samples.sample(i))
        if row is None:
            return None
        rows.append(row)
    return {name: np.stack([row[name] for row in rows]) for name in outputs}
