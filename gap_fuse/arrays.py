"""Samples in, outputs out: npz files whose arrays are named by graph inputs and outputs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean
from fusion_engine.npz import read_arrays, write_arrays

LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Port:
    """A graph input or output: its ONNX name, numpy dtype name and shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Inputs of several runs, each array with the sample axis first, and their class labels where the file has them."""

    count: int
    inputs: Mapping[str, np.ndarray]
    labels: np.ndarray | None = None

    def sample(self, index: int) -> dict[str, np.ndarray]:
        return {name: array[index] for name, array in self.inputs.items()}


def read_samples(path: Path, inputs: Sequence[Port], limit: int | None = None) -> Samples:
    """Read an npz file: arrays named by graph input, or `in:NAME`, with `/` perhaps written as `|`, each with the
    input's shape, or with a leading sample axis. `labels` holds one class per sample; other arrays are left alone.
    Raises GapFuseError for a bad file, missing names, wrong shapes or dtypes, and where there are no samples."""
    arrays = read_arrays(path)
    found = {p.name: find_array(arrays, p.name) for p in inputs}
    missing = [_missing(path, p, arrays) for p in inputs if found[p.name] is None]
    wrong = [_misfit(path, p, arrays[key]) for p in inputs if (key := found[p.name])]
    problems = missing or [d for d in wrong if d is not None]
    if problems:
        raise GapFuseError(problems)
    stacked = {p.name: _stack(arrays[key], p) for p in inputs if (key := found[p.name])}
    count = _count(path, stacked)
    labels = _labels(path, arrays, count)
    n = count if limit is None else min(limit, count)
    return Samples(n, {k: a[:n] for k, a in stacked.items()}, None if labels is None else labels[:n])


def _count(path: Path, stacked: Mapping[str, np.ndarray]) -> int:
    counts = {name: len(a) for name, a in stacked.items()}
    if len({*counts.values()}) > 1:
        raise GapFuseError(Diagnostic(f"the inputs hold different numbers of samples: {counts}", Span(str(path))))
    count = max(counts.values(), default=1)
    if not count:
        raise GapFuseError(Diagnostic("no samples: the inputs' sample axis has extent 0", Span(str(path))))
    return count


def _labels(path: Path, arrays: Mapping[str, np.ndarray], count: int) -> np.ndarray | None:
    labels = arrays.get(LABELS)
    if labels is not None and labels.shape != (count,):
        raise GapFuseError(
            Diagnostic(f"`labels` has shape {labels.shape}; {count} samples need ({count},)", Span(str(path)))
        )
    return labels


def draw_samples(inputs: Sequence[Port], count: int, seed: int) -> Samples:
    """Seeded random inputs: floats normal around 0, 8-bit integers over their range, wider integers in 0..7, booleans
    even."""
    rng = np.random.default_rng(seed)
    return Samples(count, {p.name: _draw(rng, p, count) for p in inputs})


def _draw(rng: np.random.Generator, port: Port, count: int) -> np.ndarray:
    shape, dtype = (count, *port.shape), np.dtype(port.dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.itemsize == 1:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return rng.integers(0, 8, shape).astype(dtype)


def write_samples(path: Path, outputs: Mapping[str, np.ndarray]) -> None:
    """Write arrays (sample axis first) under their graph names, `/` as `|`."""
    write_arrays(path, {name.replace("/", "|"): array for name, array in outputs.items()})


def find_array(arrays: Container[str], name: str) -> str | None:
    """What a file calls the array of a graph input: NAME or in:NAME, `/` in it perhaps `|`."""
    plain = name.replace("/", "|")
    return next((n for n in (name, f"in:{name}", plain, f"in:{plain}") if n in arrays), None)


def _missing(path: Path, port: Port, arrays: Mapping[str, np.ndarray]) -> Diagnostic:
    held = ", ".join(sorted(arrays)) or "nothing"
    guess = did_you_mean(port.name, arrays)
    return Diagnostic(
        f"no array for the graph input `{port.name}` ({port.dtype}{list(port.shape)}); the file holds {held}",
        Span(str(path)),
        help=guess,
    )


def _fits(array: np.ndarray, port: Port) -> bool:
    return array.shape == port.shape or array.shape[1:] == port.shape or _batched(array, port)


def _batched(array: np.ndarray, port: Port) -> bool:
    """Samples stacked along a leading axis of extent 1, as data sets usually are."""
    return (
        len(port.shape) > 0
        and port.shape[0] == 1
        and array.ndim == len(port.shape)
        and array.shape[1:] == port.shape[1:]
    )


def _stack(array: np.ndarray, port: Port) -> np.ndarray:
    if array.shape == port.shape:
        return array[None]
    if array.shape[1:] == port.shape:
        return array
    return array.reshape(len(array), *port.shape)


def _misfit(path: Path, port: Port, array: np.ndarray) -> Diagnostic | None:
    if not _fits(array, port):
        wanted = list(port.shape)
        return Diagnostic(
            f"`{port.name}` has shape {list(array.shape)}; the model takes {wanted}, "
            f"or several samples [n, {', '.join(map(str, wanted))}]",
            Span(str(path)),
        )
    if array.dtype != np.dtype(port.dtype):
        return Diagnostic(
            f"`{port.name}` is {array.dtype}; the model takes {port.dtype}",
            Span(str(path)),
            help=f"convert it with .astype('{port.dtype}')",
        )
    return None
