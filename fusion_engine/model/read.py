"""read_model: from a path, bytes or a ModelProto to a checked `Model` whose inputs have static shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, near_file
from fusion_engine.model.check import check_model, not_text
from fusion_engine.model.dims import bind_dims
from fusion_engine.model.external import load_external
from fusion_engine.model.text import parse_text

Source = str | Path | bytes | onnx.ModelProto
TEXT_SUFFIX = ".onnxtxt"
_TEXT_FORMATS = {
    ".textproto": "textproto",
    ".prototxt": "textproto",
    ".pbtxt": "textproto",
    ".json": "json",
}


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A checked ONNX model with every weight loaded and every input dimension known.

    `proto` belongs to this value and must not be changed. `dims` are the values given for symbolic dimensions.
    """

    name: str
    proto: onnx.ModelProto = field(repr=False)
    path: Path | None = None
    dims: Mapping[str, int] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the graph's inputs that are not initializers."""
        constants = {t.name for t in self.proto.graph.initializer}
        return tuple(i.name for i in self.proto.graph.input if i.name not in constants)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.proto.graph.output)


def read_model(source: Source, dims: Mapping[str, int] | None = None) -> Model:
    """Read and check an ONNX model.

    `source` is a path (binary, or text formats by suffix), the bytes of a file, or a ModelProto (copied).
    `dims` gives a value to each symbolic dimension of the inputs, by its symbol (`batch`) or as `INPUT:AXIS`.
    Raises GapFuseError: no such file, not an ONNX file, external data missing, invalid model, dimension without value.
    """
    path = Path(source) if isinstance(source, str | Path) else None
    where = Span(str(path)) if path is not None else None
    proto = _parse(source, path, where)
    if damaged := not_text(proto, where):
        raise GapFuseError(damaged)
    load_external(proto, path.parent if path is not None else None, where)
    check_model(proto, where)
    bound = bind_dims(proto, dict(dims or {}), where)
    return Model(_name(proto, path), proto, path, bound)


def read_proto(path: Path) -> onnx.ModelProto:
    """What the file holds and its weights, unchecked. Raises GapFuseError for a file that is none or lacks a part."""
    where = Span(str(path))
    proto = _parse(path, path, where)
    load_external(proto, path.parent, where)
    return proto


def _parse(source: Source, path: Path | None, where: Span | None) -> onnx.ModelProto:
    if isinstance(source, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(source)
        return copy
    if isinstance(source, bytes | bytearray | memoryview):
        return _decode(bytes(source), "protobuf", where)
    assert path is not None
    if path.suffix.lower() == TEXT_SUFFIX:
        return parse_text(_file_bytes(path, where).decode(errors="replace"), str(path))
    return _decode(_file_bytes(path, where), _TEXT_FORMATS.get(path.suffix.lower(), "protobuf"), where)


def _file_bytes(path: Path, where: Span | None) -> bytes:
    if not path.exists():
        raise GapFuseError(
            Diagnostic("there is no such file", where, near_file(path) or "give the path of an .onnx file")
        )
    if path.is_dir():
        raise GapFuseError(Diagnostic("this is a folder, not an ONNX file", where, "give the path of an .onnx file"))
    try:
        return path.read_bytes()
    except OSError as error:
        raise GapFuseError(Diagnostic(f"the file cannot be read: {error.strerror}", where)) from error


def _decode(data: bytes, form: str, where: Span | None) -> onnx.ModelProto:
    try:
        proto = onnx.load_model_from_string(data, format=form)
    except Exception as error:  # the parsers of protobuf, text and JSON each raise their own kinds
        help_ = "export the model to ONNX first; a PyTorch, TensorFlow or TFLite file is not one"
        if data.lstrip().startswith(b"<"):
            help_ = f"ONNX's text form is read from files that end in {TEXT_SUFFIX}"
        raise GapFuseError(Diagnostic("this is not an ONNX file: its bytes are no ModelProto", where, help_)) from error
    if not proto.HasField("graph"):
        raise GapFuseError(
            Diagnostic("this is not an ONNX file: it holds no graph", where, "is the file empty or cut off?")
        )
    return proto


def _name(proto: onnx.ModelProto, path: Path | None) -> str:
    return path.stem if path is not None else (proto.graph.name or "model")
