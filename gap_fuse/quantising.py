"""The door to the quantizer: calibration samples through onnxruntime, a QDQ model out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from gap_fuse.oracle import session
from quantizer import Statistics, activations, collect, prepare, quantise

QUIET_SECONDS = 2.0


def quantize(model: str | Path, inputs: str | Path, output: str | Path, samples: int | None = None) -> Statistics:
    """Write `model` quantised to int8 (QDQ) at `output`, calibrated on the .npz `inputs`; the statistics it rests on.

    Arrays are named by graph input, samples along the first axis. Raises GapFuseError for bad models or samples.
    """
    source = prepare(_read(Path(model)))
    feeds = list(_feeds(source, Path(inputs), samples))
    statistics = collect(source, activations(source), _shown(feeds), prepared)
    onnx.save(quantise(source, statistics.published()), str(output))
    return statistics


def prepared(model: onnx.ModelProto) -> Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]:
    """onnxruntime as the `run` of `quantizer.collect`."""
    live = session(model)
    names = [o.name for o in model.graph.output]
    return lambda feeds: dict(zip(names, live.run(names, dict(feeds)), strict=True))  # type: ignore[attr-defined]


def _read(path: Path) -> onnx.ModelProto:
    try:
        return onnx.load(str(path))
    except OSError:
        raise
    except Exception as e:  # protobuf raises its own family for bytes that are no model
        raise GapFuseError(Diagnostic(f"{path}: not an ONNX model: {e}")) from e


def _feeds(model: onnx.ModelProto, path: Path, limit: int | None) -> Iterator[dict[str, np.ndarray]]:
    held = {t.name for t in model.graph.initializer}
    ports = [i for i in model.graph.input if i.name not in held]
    arrays = _arrays(path)
    if missing := [p.name for p in ports if p.name not in arrays]:
        raise GapFuseError(
            [
                Diagnostic(f"{path}: no array named '{n}'", help=f"the file has {', '.join(sorted(arrays))}")
                for n in missing
            ]
        )
    count = min(len(arrays[p.name]) if arrays[p.name].ndim else 0 for p in ports) if ports else 0
    if not count:
        raise GapFuseError(Diagnostic(f"{path}: no samples"))
    for k in range(min(count, limit or count)):
        yield {p.name: _sample(path, p, arrays[p.name][k]) for p in ports}


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, AttributeError, EOFError, TypeError) as e:
        raise GapFuseError(Diagnostic(f"{path}: not an .npz file of arrays")) from e


def _sample(path: Path, port: onnx.ValueInfoProto, row: np.ndarray) -> np.ndarray:
    dims = [d.dim_value or 1 for d in port.type.tensor_type.shape.dim]
    if row.size != int(np.prod(dims)):
        raise GapFuseError(
            Diagnostic(f"{path}: a sample of '{port.name}' has shape {list(row.shape)}, the model takes {dims}")
        )
    return row.reshape(dims).astype(onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type))


def _shown(feeds: list[dict[str, np.ndarray]]) -> Iterable[dict[str, np.ndarray]]:
    """The feeds, with a progress bar on stderr once they take longer than QUIET_SECONDS."""
    from rich.console import Console
    from rich.progress import Progress

    start = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("calibrating", total=len(feeds), visible=False)
        for feed in feeds:
            yield feed
            progress.update(task, advance=1, visible=time.monotonic() - start > QUIET_SECONDS)
