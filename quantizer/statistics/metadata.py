"""Statistics in a model: `tensor_statistics.*` keys in ValueInfo metadata (docs/tensor-statistics.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper
from pydantic import ValidationError

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from quantizer.statistics.collecting import count
from quantizer.statistics.published import VERSION, TensorStatistics, published

PREFIX = "tensor_statistics."
METADATA_IR = 10
"""The first IR version whose ValueInfo has metadata_props."""


def annotate(model: onnx.ModelProto, statistics: Mapping[str, TensorStatistics]) -> onnx.ModelProto:
    """A copy of the model whose inputs, outputs and intermediate values carry `statistics`; older ones are replaced.

    Raises GapFuseError for a tensor the graph has not.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = max(copy.ir_version, METADATA_IR)
    infos = _infos(copy)
    if unknown := [n for n in statistics if n not in infos]:
        raise GapFuseError([Diagnostic(f"the graph has no tensor '{n}' to write statistics of") for n in unknown])
    for name, value in statistics.items():
        _write(infos[name], value)
    return copy


def statistics_of(model: onnx.ModelProto) -> dict[str, TensorStatistics]:
    """The statistics that a model's values carry. Raises GapFuseError, naming tensor and key, for malformed ones."""
    graph = model.graph
    found = {v.name: _read(v) for v in [*graph.input, *graph.value_info, *graph.output]}
    return {name: value for name, value in found.items() if value is not None}


def _infos(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """Each tensor's ValueInfo; those that are missing are added, typed by shape inference where it knows."""
    graph = model.graph
    have = {v.name: v for v in [*graph.value_info, *graph.output, *graph.input]}
    inferred = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    missing = [o for n in graph.node for o in n.output if o and o not in have]
    graph.value_info.extend(inferred.get(o) or onnx.ValueInfoProto(name=o) for o in missing)
    return {v.name: v for v in [*graph.value_info, *graph.output, *graph.input]}


def _write(info: onnx.ValueInfoProto, value: TensorStatistics) -> None:
    kept = {p.key: p.value for p in info.metadata_props if not p.key.startswith(PREFIX)}
    fields: dict[str, Any] = value.model_dump(exclude_none=True, mode="json")
    del info.metadata_props[:]
    helper.set_model_props(info, kept | {f"{PREFIX}{k}": json.dumps(v) for k, v in fields.items()})


def _read(info: onnx.ValueInfoProto) -> TensorStatistics | None:
    texts = {p.key.removeprefix(PREFIX): p.value for p in info.metadata_props if p.key.startswith(PREFIX)}
    if not texts:
        return None
    where = f"tensor '{info.name}': {PREFIX}"
    fields = {k: _parsed(where + k, text) for k, text in texts.items()}
    if fields.get("version") != VERSION:
        raise GapFuseError(Diagnostic(f"{where}version is {fields.get('version')}, this release reads {VERSION}"))
    try:
        return TensorStatistics.model_validate(fields)
    except ValidationError as e:
        raise GapFuseError(
            [Diagnostic(f"{where}{'.'.join(map(str, p['loc']))}: {p['msg']}") for p in e.errors()]
        ) from e


def _parsed(where: str, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as e:
        raise GapFuseError(Diagnostic(f"{where}: not JSON: {e}")) from e


def constant_statistics(array: np.ndarray, axis: int | None = 0) -> TensorStatistics:
    """A constant's statistics, made on demand: they are in the file already. `axis` is its output channels'."""
    seen = count(array, axis if array.ndim > 1 else None)
    return published(seen.populations, seen.axis, seen.note)
