"""What calibration samples say about tensors: summaries that merge exactly, in bounded memory."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError

Feeds = Mapping[str, np.ndarray]
Run = Callable[[onnx.ModelProto], Callable[[Feeds], Mapping[str, np.ndarray]]]
"""Prepares a model and returns a function from its inputs to all its outputs by name (onnxruntime at the door)."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One tensor's finite values: count, extremes, mean and M2 (sum of squared deviations); NaN, Inf apart."""

    count: int = 0
    min: float | None = None
    max: float | None = None
    mean: float = 0.0
    m2: float = 0.0
    nans: int = 0
    infs: int = 0

    @property
    def std(self) -> float:
        """The population's standard deviation; 0 of nothing."""
        return math.sqrt(self.m2 / self.count) if self.count else 0.0

    def __str__(self) -> str:
        body = (
            f"{self.count} in [{self.min:.6g}, {self.max:.6g}], mean {self.mean:.6g}, std {self.std:.6g}"
            if self.count
            else "no finite value"
        )
        return body + (f", {self.nans} NaN" if self.nans else "") + (f", {self.infs} Inf" if self.infs else "")


@dataclass(frozen=True, slots=True)
class Statistics:
    """Summaries by tensor name."""

    tensors: Mapping[str, Summary] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {summary}" for name, summary in self.tensors.items())

    def to_json(self) -> str:
        """The statistics as JSON with a version key."""
        return json.dumps({"version": 1, "tensors": {n: asdict(s) for n, s in self.tensors.items()}}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Statistics:
        """Read what `to_json` wrote. Raises GapFuseError for anything else."""
        try:
            raw = json.loads(text)
            if raw["version"] != 1:
                raise ValueError(f"version {raw['version']} is not 1")
            return cls({name: Summary(**fields) for name, fields in raw["tensors"].items()})
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise GapFuseError(Diagnostic(f"not tensor statistics: {e}")) from e


def summarise(values: np.ndarray) -> Summary:
    """One pass over an array of any shape and number type, in float64."""
    wide = np.asarray(values, np.float64).ravel()
    finite = wide[np.isfinite(wide)]
    nans = int(np.isnan(wide).sum())
    infs = wide.size - finite.size - nans
    if not finite.size:
        return Summary(nans=nans, infs=infs)
    mean = float(finite.mean())
    return Summary(
        finite.size, float(finite.min()), float(finite.max()), mean, float(((finite - mean) ** 2).sum()), nans, infs
    )


def join(a: Summary, b: Summary) -> Summary:
    """The summary of both populations (Chan et al. 1979): counts and extremes exact, moments to rounding."""
    nans, infs, count = a.nans + b.nans, a.infs + b.infs, a.count + b.count
    if not a.count or not b.count:
        one = a if a.count else b
        return Summary(one.count, one.min, one.max, one.mean, one.m2, nans, infs)
    delta = b.mean - a.mean
    mean = a.mean + delta * (b.count / count)
    m2 = a.m2 + b.m2 + delta * delta * (a.count * (b.count / count))
    return Summary(count, _least(a, b), _greatest(a, b), mean, m2, nans, infs)


def _least(a: Summary, b: Summary) -> float:
    return min(s.min for s in (a, b) if s.min is not None)


def _greatest(a: Summary, b: Summary) -> float:
    return max(s.max for s in (a, b) if s.max is not None)


def merge(a: Statistics, b: Statistics) -> Statistics:
    """Statistics of both sets of samples; a tensor only one has keeps its summary."""
    names = dict.fromkeys([*a.tensors, *b.tensors])
    return Statistics({n: join(a.tensors.get(n, Summary()), b.tensors.get(n, Summary())) for n in names})


def collect(model: onnx.ModelProto, tensors: Sequence[str], batches: Iterable[Feeds], run: Run) -> Statistics:
    """Statistics of `tensors` over `batches`; one batch's values are held at a time.

    `run` prepares the model with those tensors as outputs (graph inputs are read from the batch itself).
    Raises GapFuseError for a tensor the graph has not.
    """
    made = {o for n in model.graph.node for o in n.output if o}
    known = made | {i.name for i in model.graph.input}
    if unknown := [t for t in tensors if t not in known]:
        raise GapFuseError([Diagnostic(f"the graph has no tensor '{t}' to collect statistics of") for t in unknown])
    live = run(expose(model, [t for t in tensors if t in made]))
    total = Statistics({t: Summary() for t in tensors})
    for batch in batches:
        values = {**batch, **live(batch)}
        total = merge(total, Statistics({t: summarise(values[t]) for t in tensors}))
    return total


def expose(model: onnx.ModelProto, tensors: Sequence[str]) -> onnx.ModelProto:
    """A copy of the model whose outputs are also `tensors`."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    already = {o.name for o in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=t) for t in tensors if t not in already)
    return copy
