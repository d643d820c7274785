"""Samples in and out: npz files whose arrays are named by graph inputs and outputs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean

LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Port:
    """A graph input or output: its ONNX name, numpy dtype name and shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Inputs of several runs, each array with the sample axis first; recorded outputs and class labels where the file
    has them."""

    count: int
    inputs: Mapping[str, np.ndarray]
    recorded: Mapping[str, np.ndarray]
    labels: np.ndarray | None = None
    ignored: tuple[str, ...] = ()

    def sample(self, index: int) -> dict[str, np.ndarray]:
        return {name: array[index] for name, array in self.inputs.items()}


def read_samples(path: Path, inputs: Sequence[Port], outputs: Sequence[Port], limit: int | None = None) -> Samples:
    """Read an npz file: arrays named by port, or `in:NAME` / `out:NAME` with `/` written as `|`, each with the port's
    shape, or with a
    leading sample axis. `labels` holds one class per sample. Raises GapFuseError for a bad file, missing names, wrong
    shapes or dtypes."""
    arrays = _load(path)
    found = {p.name: _find(arrays, p, "in") for p in inputs}
    missing = [p for p in inputs if found[p.name] is None]
    if missing:
        raise GapFuseError([_missing(path, p, arrays) for p in missing])
    problems = [_misfit(path, p, arrays[key]) for p in inputs if (key := found[p.name])]
    wrong = [d for d in problems if d is not None]
    if wrong:
        raise GapFuseError(wrong)
    stacked = {p.name: _stack(arrays[key], p) for p in inputs if (key := found[p.name])}
    return _assemble(path, arrays, found, stacked, outputs, limit)


def _assemble(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    found: Mapping[str, str | None],
    stacked: Mapping[str, np.ndarray],
    outputs: Sequence[Port],
    limit: int | None,
) -> Samples:
    counts = {name: len(a) for name, a in stacked.items()}
    count = max(counts.values(), default=1)
    if any(n != count for n in counts.values()):
        raise GapFuseError(Diagnostic(f"the inputs hold different numbers of samples: {counts}", Span(str(path))))
    results = {p.name: key for p in outputs if (key := _find(arrays, p, "out"))}
    recorded = {
        p.name: _stack(arrays[results[p.name]], p)
        for p in outputs
        if p.name in results and _fits(arrays[results[p.name]], p)
    }
    used = {*filter(None, found.values()), *results.values(), LABELS}
    labels = arrays.get(LABELS)
    if labels is not None and labels.shape != (count,):
        raise GapFuseError(
            Diagnostic(f"`labels` has shape {labels.shape}; {count} samples need ({count},)", Span(str(path)))
        )
    n = count if limit is None else min(limit, count)
    return Samples(
        n,
        {k: a[:n] for k, a in stacked.items()},
        {k: a[:n] for k, a in recorded.items() if len(a) == count},
        None if labels is None else labels[:n],
        tuple(sorted(set(arrays) - used)),
    )


def draw_samples(inputs: Sequence[Port], count: int, seed: int) -> Samples:
    """Seeded random inputs: floats normal around 0, 8-bit integers over their range, wider integers in 0..7, booleans
    even."""
    rng = np.random.default_rng(seed)
    return Samples(count, {p.name: _draw(rng, p, count) for p in inputs}, {})


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
    np.savez(path, allow_pickle=False, **{name.replace("/", "|"): array for name, array in outputs.items()})


def _load(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise GapFuseError(
                    Diagnostic("not an npz file (a single array)", Span(str(path)), help="write it with numpy.savez")
                )
            return {k: archive[k] for k in archive.files}
    except FileNotFoundError:
        raise GapFuseError(Diagnostic("no such file", Span(str(path)))) from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError, AttributeError) as e:
        raise GapFuseError(
            Diagnostic(
                f"not a readable npz file: {e}",
                Span(str(path)),
                help="write it with numpy.savez, without pickled objects",
            )
        ) from e


def _find(arrays: Mapping[str, np.ndarray], port: Port, kind: str) -> str | None:
    names = (port.name, f"{kind}:{port.name}", port.name.replace("/", "|"), f"{kind}:{port.name.replace('/', '|')}")
    return next((n for n in names if n in arrays), None)


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
