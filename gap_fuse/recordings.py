"""Recorded samples read in bounded memory: npz members are streamed, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean
from fusion_engine.npz import Header, read_headers, read_rows
from gap_fuse.arrays import find_array

Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class OpenPort:
    """A graph input whose dimensions may be symbolic (None)."""

    name: str
    dtype: np.dtype
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class Recording:
    """Samples of all inputs in one .npz file. `stacked`: every input's first dimension is open, so that samples are fed
    together."""

    path: Path
    count: int
    ports: tuple[OpenPort, ...]
    members: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    stacked: bool


def open_ports(model: onnx.ModelProto) -> tuple[OpenPort, ...]:
    """The model's inputs, initializers aside."""
    held = {t.name for t in model.graph.initializer}
    return tuple(_port(i) for i in model.graph.input if i.name not in held)


def open_recording(path: Path, ports: Sequence[OpenPort]) -> Recording:
    """Find each input's array by its header: named NAME or in:NAME (`/` may be `|`), one sample, or several along a
    leading axis. Raises GapFuseError for a file that is none, missing names, shapes or types that do not fit."""
    headers = read_headers(path)
    members = {p.name: _member(path, p, headers) for p in ports}
    shapes = {p.name: _samples_first(path, p, headers[members[p.name]]) for p in ports}
    counts = {name: shape[0] for name, shape in shapes.items()}
    if not ports:
        raise GapFuseError(Diagnostic("the model has no inputs to record samples of"))
    if len({*counts.values()}) > 1:
        raise GapFuseError(Diagnostic(f"the inputs hold different numbers of samples: {counts}", Span(str(path))))
    stacked = all(p.shape and p.shape[0] is None and len(shapes[p.name]) == len(p.shape) for p in ports)
    return Recording(path, next(iter(counts.values())), tuple(ports), members, shapes, stacked)


def batches(
    recording: Recording, size: int, start: int = 0, stop: int | None = None
) -> Iterator[dict[str, np.ndarray]]:
    """Feeds of samples start..stop: up to `size` together where the model's first dimensions are open, else singly."""
    stop = recording.count if stop is None else min(stop, recording.count)
    step = size if recording.stacked else 1
    streams = {p.name: _rows(recording, p, step, start, stop) for p in recording.ports}
    for parts in zip(*streams.values(), strict=True):
        yield dict(zip(streams, parts, strict=True))


def _port(info: onnx.ValueInfoProto) -> OpenPort:
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type"):
        raise GapFuseError(Diagnostic(f"the input '{info.name}' is no tensor: samples of it cannot be read"))
    shape = (
        tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
        if tensor.HasField("shape")
        else None
    )
    return OpenPort(info.name, np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type)), shape)


def _member(path: Path, port: OpenPort, headers: Mapping[str, Header]) -> str:
    found = find_array(headers, port.name)
    if found is not None:
        return found
    held = ", ".join(sorted(headers)) or "nothing"
    raise GapFuseError(
        Diagnostic(
            f"no array for the graph input `{port.name}`; the file holds {held}",
            Span(str(path)),
            help=did_you_mean(port.name, headers),
        )
    )


def _samples_first(path: Path, port: OpenPort, header: Header) -> tuple[int, ...]:
    """The array's shape with a sample axis first."""
    shape, dtype = header.shape, header.dtype
    if dtype != port.dtype:
        raise GapFuseError(
            Diagnostic(
                f"`{port.name}` is {dtype}; the model takes {port.dtype}",
                Span(str(path)),
                help=f"convert it with .astype('{port.dtype}')",
            )
        )
    wanted = port.shape
    if wanted is None:
        return shape or (1,)
    if len(shape) == len(wanted) + 1 and _fits(shape[1:], wanted):
        return shape
    if wanted and wanted[0] in (None, 1) and _fits(shape[1:], wanted[1:]):
        return shape
    if _fits(shape, wanted):
        return (1, *shape)
    text = ", ".join("?" if d is None else str(d) for d in wanted)
    raise GapFuseError(
        Diagnostic(
            f"`{port.name}` has shape {list(shape)}; the model takes [{text}], or several samples", Span(str(path))
        )
    )


def _fits(shape: tuple[int, ...], wanted: Shape) -> bool:
    return len(shape) == len(wanted) and all(w in (None, d) for d, w in zip(shape, wanted, strict=True))


def _rows(recording: Recording, port: OpenPort, step: int, start: int, stop: int) -> Iterator[np.ndarray]:
    shape = recording.shapes[port.name]
    row = shape[1:]
    whole = port.shape is not None and len(row) == len(port.shape)
    for block in read_rows(recording.path, recording.members[port.name], row, step, start, stop):
        if recording.stacked:
            yield block
        else:
            yield block.reshape(row if whole else (1, *row))
