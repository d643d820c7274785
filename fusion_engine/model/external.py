"""External data: tensors whose bytes lie in files beside the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import external_data_helper

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span

SHOWN = 2  # tensors named: where one is missing, all of a file are


def load_external(proto: onnx.ModelProto, folder: Path | None, where: Span | None) -> None:
    """Load every external tensor into the proto; raise GapFuseError naming those that are not there."""
    problems = [p for t in _external_tensors(proto) if (p := _load(t, folder, where)) is not None]
    if len(problems) > SHOWN:
        problems = [*problems[:SHOWN], Diagnostic(f"so it is with {len(problems) - SHOWN} more tensors", where)]
    if problems:
        raise GapFuseError(problems)


def _external_tensors(proto: onnx.ModelProto) -> list[onnx.TensorProto]:
    bodies = [proto.graph.node, *(f.node for f in proto.functions)]
    tensors = [*proto.graph.initializer, *(t for nodes in bodies for t in _attribute_tensors(nodes))]
    return [t for t in tensors if external_data_helper.uses_external_data(t)]


def _attribute_tensors(nodes: list[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from graph.initializer
                yield from _attribute_tensors(graph.node)


def _load(tensor: onnx.TensorProto, folder: Path | None, where: Span | None) -> Diagnostic | None:
    location = next((e.value for e in tensor.external_data if e.key == "location"), "")
    if folder is None:
        message = f"tensor `{tensor.name}` keeps its data in the file `{location}`, which bytes alone do not lead to"
        return Diagnostic(message, where, "give the path of the model instead")
    if not (folder / location).is_file():
        message = f"the data of tensor `{tensor.name}` is missing: there is no file `{location}` in `{folder}`"
        return Diagnostic(message, where, "copy the external data file beside the model")
    try:
        external_data_helper.load_external_data_for_tensor(tensor, str(folder))
    except Exception as error:  # onnx raises ValidationError, OSError or ValueError for bad offsets and paths
        return Diagnostic(f"the data of tensor `{tensor.name}` cannot be read from `{location}`: {_line(error)}", where)
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]
    return None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
