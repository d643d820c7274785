"""The door to the quantizer: calibration samples through onnxruntime, a QDQ model out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from gap_fuse.measuring import measure, read_onnx
from quantizer import TensorStatistics, activations, known_statistics, prepare, quantise


def quantize(
    model: str | Path, inputs: str | Path | None, output: str | Path, samples: int | None = None
) -> Mapping[str, TensorStatistics]:
    """Write `model` quantised to int8 (QDQ) at `output`; the statistics it rests on.

    They are measured on the .npz `inputs` (arrays named by graph input, samples along the first axis), or, without
    inputs, what the model itself says: ranges in annotations and com.microsoft's fake quantisation, then statistics in
    metadata (`gap-fuse stats`). Raises GapFuseError for bad models or samples.
    """
    read = read_onnx(model)
    source = prepare(read)
    statistics = _carried(read, Path(model)) if inputs is None else _measured(source, inputs, samples)
    try:
        quantised = quantise(source, statistics)
    except GapFuseError as e:
        place = Span(str(model if inputs is None else inputs))
        raise GapFuseError(d if d.span else replace(d, span=place) for d in e.diagnostics) from e
    onnx.save(quantised, str(output))
    return statistics


def _measured(source: onnx.ModelProto, inputs: str | Path, samples: int | None) -> Mapping[str, TensorStatistics]:
    return measure(source, [inputs], samples=samples, tensors=activations(source)).published()


def _carried(model: onnx.ModelProto, path: Path) -> Mapping[str, TensorStatistics]:
    statistics = known_statistics(model)
    if not statistics:
        raise GapFuseError(
            Diagnostic(
                "the model carries no tensor statistics and no ranges",
                Span(str(path)),
                help="give samples with --inputs, or write statistics with `gap-fuse stats`",
            )
        )
    return statistics
