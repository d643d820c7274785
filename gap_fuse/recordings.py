"""Recorded samples read in bounded memory: npz members are streamed, a batch at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import onnx
from onnx import helper

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean

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
    headers = _headers(path)
    members = {p.name: _member(path, p, headers) for p in ports}
    shapes = {p.name: _samples_first(path, p, *headers[members[p.name]]) for p in ports}
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


def _headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if n.endswith(".npy")]
            return {n.removesuffix(".npy"): _header(archive, n)[:2] for n in names}
    except FileNotFoundError:
        raise GapFuseError(Diagnostic("no such file", Span(str(path)))) from None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError) as e:
        raise GapFuseError(
            Diagnostic(f"not a readable npz file: {e}", Span(str(path)), help="write it with numpy.savez")
        ) from e


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype, bool]:
    with archive.open(name) as stream:
        return _read_header(stream)


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype, bool]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("an array of pickled objects")
    return shape, dtype, fortran


def _member(path: Path, port: OpenPort, headers: Mapping[str, object]) -> str:
    plain = port.name.replace("/", "|")
    for name in (port.name, f"in:{port.name}", plain, f"in:{plain}"):
        if name in headers:
            return name
    held = ", ".join(sorted(headers)) or "nothing"
    raise GapFuseError(
        Diagnostic(
            f"no array for the graph input `{port.name}`; the file holds {held}",
            Span(str(path)),
            help=did_you_mean(port.name, headers),
        )
    )


def _samples_first(path: Path, port: OpenPort, shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    """The array's shape with a sample axis first."""
    if dtype != port.dtype:
        raise GapFuseError(
            Diagnostic(
                f"`{port.name}` is {dtype}; the model takes {port.dtype}",
                Span(str(path)),
                help=f"convert it with .astype('{port.dtype}')",
            )
        )
    wanted = port.shape
    if wanted is None or (len(shape) == len(wanted) + 1 and _fits(shape[1:], wanted)):
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
    for block in _blocks(recording.path, recording.members[port.name], row, step, start, stop):
        if recording.stacked:
            yield block
        else:
            yield block.reshape(row if whole else (1, *row))


def _blocks(path: Path, member: str, row: tuple[int, ...], step: int, start: int, stop: int) -> Iterator[np.ndarray]:
    """Rows start..stop of an array in the file, `step` at a time; an array in Fortran order is read whole."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{member}.npy") as stream:
        _, dtype, fortran = _read_header(stream)
        size = int(np.prod(row, dtype=np.int64)) * dtype.itemsize
        if fortran or not size:
            rows = _whole(path, member).reshape(-1, *row)
            yield from (rows[at : min(stop, at + step)] for at in range(start, stop, step))
            return
        stream.seek(start * size, 1)
        for at in range(start, stop, step):
            yield np.frombuffer(stream.read(size * (min(stop, at + step) - at)), dtype).reshape(-1, *row)


def _whole(path: Path, member: str) -> np.ndarray:
    with np.load(path, allow_pickle=False) as arrays:
        return np.ascontiguousarray(arrays[member])
