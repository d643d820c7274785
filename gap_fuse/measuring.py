"""The door to tensor statistics: recorded samples through onnxruntime, into shards and models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean
from fusion_engine.model.read import read_proto
from gap_fuse.oracle import prepared
from gap_fuse.progress import Tick, progress
from gap_fuse.recordings import batches, open_ports, open_recording
from quantizer import Statistics, TensorStatistics, channel_axes, collect, constant_statistics, join, known_statistics

BATCH = 8
Functions = Mapping[tuple[str, str, str], onnx.FunctionProto]
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


@dataclass(frozen=True, slots=True)
class Job:
    """A part of the measuring that any process can do: plain bytes, names and numbers."""

    model: bytes
    tensors: tuple[str, ...]
    path: str
    start: int
    stop: int
    batch: int


def measure(
    model: str | Path | onnx.ModelProto,
    inputs: Sequence[str | Path],
    *,
    samples: int | None = None,
    batch: int = BATCH,
    tensors: Sequence[str] | None = None,
    executor: Executor | None = None,
    shards: int = 1,
) -> Statistics:
    """Statistics of every non-constant tensor (or of `tensors`) over the samples of the npz files `inputs`.

    One batch of at most `batch` samples is held at a time. With an `executor` (of concurrent.futures, or a Dask
    client's `get_executor()`) each file is cut into `shards` parts, measured apart and joined without loss: the answer
    is the same. Raises GapFuseError for models or samples that do not fit.
    """
    proto = read_onnx(model)
    names = tuple(observable(proto) if tensors is None else tensors)
    jobs = _jobs(proto, names, [Path(p) for p in inputs], samples, batch, shards if executor else 1)
    if executor is not None:
        return _joined(_done(executor, jobs))
    with progress("measuring", sum(j.stop - j.start for j in jobs)) as tick:
        return _joined(run_job(j, tick) for j in jobs)


def run_job(job: Job, tick: Tick | None = None) -> Statistics:
    """The statistics of one part; `tick(n)` is called after each n samples."""
    proto = onnx.ModelProto.FromString(job.model)
    recording = open_recording(Path(job.path), open_ports(proto))
    feeds = batches(recording, job.batch, job.start, job.stop)
    step = job.batch if recording.stacked else 1
    return collect(proto, job.tensors, _ticking(feeds, step, tick), prepared, channel_axes(proto))


def observable(model: onnx.ModelProto) -> tuple[str, ...]:
    """The graph's inputs and every node's results, but for what follows from constants alone.

    Values inside the bodies of If, Loop and Scan are not the graph's: `unobservable` names them."""
    graph = model.graph
    known = {t.name for t in graph.initializer}
    found = [i.name for i in graph.input if i.name not in known]
    for node in graph.node:
        constant = node.op_type not in RANDOM and all(i in known for i in node.input if i) and not _bodies(node)
        (known.update if constant else found.extend)(o for o in node.output if o)
    return tuple(dict.fromkeys(found))


def unobservable(model: onnx.ModelProto) -> tuple[str, ...]:
    """Results inside functions and the bodies of If, Loop and Scan, which no sample's run shows from outside.

    Those of a function as CALL/NAME; constants are left out."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    return tuple(name for node in model.graph.node for name in _inside(node, functions, ""))


def _inside(node: onnx.NodeProto, functions: Functions, path: str) -> Iterator[str]:
    bodies = [(b.node, path) for b in _bodies(node)]
    function = functions.get((node.domain, node.op_type, node.overload))
    if function is not None:
        bodies.append((function.node, f"{path}{node.name or node.output[0]}/"))
    for nodes, prefix in bodies:
        for n in nodes:
            if n.op_type != "Constant":
                yield from (f"{prefix}{o}" for o in n.output if o)
                yield from _inside(n, functions, prefix)


def carried(model: str | Path | onnx.ModelProto) -> dict[str, TensorStatistics]:
    """What a model already says of its values: statistics in metadata, ranges in annotations and operators."""
    return known_statistics(read_onnx(model))


def of_constant(model: str | Path | onnx.ModelProto, name: str) -> TensorStatistics:
    """An initializer's statistics, on demand. Raises GapFuseError for a name that is none."""
    held = {t.name: t for t in read_onnx(model).graph.initializer}
    if name not in held:
        raise GapFuseError(
            Diagnostic(f"no statistics and no constant of the name '{name}'", help=did_you_mean(name, held))
        )
    return constant_statistics(numpy_helper.to_array(held[name]))


def read_onnx(model: str | Path | onnx.ModelProto) -> onnx.ModelProto:
    """A model file. Raises GapFuseError for a file that is none."""
    if isinstance(model, onnx.ModelProto):
        return model
    return read_proto(Path(model))


def _bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [a.g for a in node.attribute if a.HasField("g")]


def _jobs(
    proto: onnx.ModelProto, names: tuple[str, ...], paths: Sequence[Path], samples: int | None, batch: int, shards: int
) -> list[Job]:
    ports, left = open_ports(proto), samples
    jobs: list[Job] = []
    data = proto.SerializeToString()
    for path in paths:
        count = open_recording(path, ports).count
        count = count if left is None else min(count, left)
        left = None if left is None else left - count
        cuts = [count * k // shards for k in range(shards + 1)]
        jobs += [Job(data, names, str(path), a, b, batch) for a, b in pairwise(cuts) if b > a]
    if not jobs:
        raise GapFuseError(Diagnostic("no samples", Span(", ".join(map(str, paths)))))
    return jobs


def _ticking(
    feeds: Iterable[Mapping[str, np.ndarray]], step: int, tick: Tick | None
) -> Iterator[Mapping[str, np.ndarray]]:
    for feed in feeds:
        yield feed
        if tick:
            tick(step)


def _done(executor: Executor, jobs: Sequence[Job]) -> list[Statistics]:
    futures = [executor.submit(run_job, j) for j in jobs]
    with progress("measuring", len(jobs)) as tick:
        for _ in as_completed(futures):
            tick(1)
    return [f.result() for f in futures]


def _joined(parts: Iterable[Statistics]) -> Statistics:
    total = Statistics()
    for part in parts:
        total = join(total, part)
    return total
