"""npz files: zip archives of numpy arrays. Whatever makes a file none is a diagnostic at its path."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, near_file

ENDING = ".npy"


@dataclass(frozen=True, slots=True)
class Header:
    """What an array says of itself before its values; `fortran`: its first axis runs fastest."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool


@contextmanager
def opened(path: Path, what: str = "a readable npz file", advice: str = "write it with numpy.savez") -> Iterator[None]:
    """What is read inside is `path`'s content: whatever its reading raises becomes a GapFuseError, "not `what`"."""
    try:
        yield
    except GapFuseError:
        raise
    except FileNotFoundError:
        raise GapFuseError(Diagnostic("there is no such file", Span(str(path)), near_file(path))) from None
    except Exception as e:  # zipfile, zlib and numpy each raise kinds of their own for bytes that are none
        raise GapFuseError(Diagnostic(f"not {what}: {e}", Span(str(path)), help=advice)) from e


def read_headers(path: Path) -> dict[str, Header]:
    """The arrays by name, their values left in the file. Raises GapFuseError for a file that is none, and for pickled
    objects."""
    with opened(path):
        return _headers(path)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays by name. Raises GapFuseError as `read_headers` does."""
    with opened(path):
        return load_arrays(path)


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """The same for a file that has a name of its own: to be called inside `opened`, raises what it raises."""
    names = _headers(path)
    with np.load(path, allow_pickle=False) as archive:
        return {n: archive[n] for n in names}


def read_rows(path: Path, name: str, row: tuple[int, ...], step: int, start: int, stop: int) -> Iterator[np.ndarray]:
    """Rows start..stop of an array of rows of shape `row`, `step` at a time, in bounded memory; an array in Fortran
    order is read whole. Raises GapFuseError where the file does not hold them."""
    with opened(path), zipfile.ZipFile(path) as archive, archive.open(name + ENDING) as stream:
        header = _read_header(stream)
        size = int(np.prod(row, dtype=np.int64)) * header.dtype.itemsize
        if header.fortran or not size:
            rows = _whole(path, name).reshape(1 if header.shape == row else header.shape[0], *row)
            yield from (rows[at : min(stop, at + step)] for at in range(start, stop, step))
            return
        stream.seek(start * size, 1)
        for at in range(start, stop, step):
            yield _values(stream, header.dtype, (min(stop, at + step) - at, *row))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, compressed: bool = False) -> None:
    """Write arrays at `path`: the same bytes for the same arrays, under any names. Raises OSError as `open` does."""
    how = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ENDING), _npy(array), how)


def _headers(path: Path) -> dict[str, Header]:
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith(ENDING)]
        return {n.removesuffix(ENDING): _header_of(archive, n) for n in names}


def _header_of(archive: zipfile.ZipFile, name: str) -> Header:
    with archive.open(name) as stream:
        return _read_header(stream)


def _read_header(stream: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("an array of pickled objects")
    return Header(shape, dtype, fortran)


def _whole(path: Path, name: str) -> np.ndarray:
    with np.load(path, allow_pickle=False) as archive:
        return np.ascontiguousarray(archive[name])


def _values(stream: IO[bytes], dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    content = stream.read(size)
    if len(content) < size:
        raise EOFError("it holds fewer values than it says")
    return np.frombuffer(content, dtype).reshape(shape)


def _npy(array: np.ndarray) -> bytes:
    buffer = BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
    return buffer.getvalue()
