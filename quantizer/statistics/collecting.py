"""collect(): samples through a model, every tensor counted; one batch's values are held at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from quantizer.statistics.populations import Populations, empty, merge, tally
from quantizer.statistics.published import TensorStatistics, published

Feeds = Mapping[str, np.ndarray]
Run = Callable[[onnx.ModelProto], Callable[[Feeds], Mapping[str, np.ndarray]]]
"""Prepares a model and returns a function from its inputs to all its outputs by name (onnxruntime at the door)."""

MOST_CHANNELS = 4096
"""Wider tensors (the words of a vocabulary) are counted as one population, with a note."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What was seen of one tensor; `axis` names the populations' axis, `note` says what is not kept and why."""

    populations: Populations
    axis: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Tallies by tensor name. Those of two sets of samples join without loss (`join`)."""

    tensors: Mapping[str, Tally] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.published().items())

    def published(self) -> dict[str, TensorStatistics]:
        """The measures of each tensor, as metadata states them."""
        return {n: published(t.populations, t.axis, t.note) for n, t in self.tensors.items()}


def join(a: Statistics, b: Statistics) -> Statistics:
    """Statistics of both sets of samples, the same whatever the split; a tensor that only one has keeps its tally."""
    names = dict.fromkeys([*a.tensors, *b.tensors])
    return Statistics({n: _join(a.tensors.get(n), b.tensors.get(n)) for n in names})


def collect(
    model: onnx.ModelProto,
    tensors: Sequence[str],
    batches: Iterable[Feeds],
    run: Run,
    axes: Mapping[str, int] | None = None,
) -> Statistics:
    """Statistics of `tensors` over `batches`, per channel where `axes` names a tensor's channel axis.

    `run` prepares the model with those tensors as outputs (graph inputs are read from the batch itself).
    Raises GapFuseError for a tensor the graph has not.
    """
    made = {o for n in model.graph.node for o in n.output if o}
    known = made | {i.name for i in model.graph.input}
    if unknown := [t for t in tensors if t not in known]:
        raise GapFuseError([Diagnostic(f"the graph has no tensor '{t}' to collect statistics of") for t in unknown])
    live = run(expose(model, [t for t in tensors if t in made]))
    total = Statistics({t: Tally(empty(), note="no sample was seen") for t in tensors})
    for batch in batches:
        values = {**batch, **live(batch)}
        total = join(total, Statistics({t: count(values[t], (axes or {}).get(t)) for t in tensors}))
    return total


def count(value: object, axis: int | None = None) -> Tally:
    """The tally of one value: an array of any shape; a sequence, a string or an absent optional is only noted."""
    if not isinstance(value, np.ndarray):
        return Tally(empty(), note=f"not a tensor ({type(value).__name__}): not counted")
    if value.dtype.kind in "OUSc":
        return Tally(empty(), note=f"not numbers ({value.dtype}): not counted")
    note = None if value.size else "empty in every sample"
    if axis is None or axis >= value.ndim:
        return Tally(tally(value), note=note)
    if value.shape[axis] > MOST_CHANNELS:
        return Tally(tally(value), note=f"{value.shape[axis]} channels, more than {MOST_CHANNELS}: kept together")
    return Tally(tally(value, axis), axis, note)


def expose(model: onnx.ModelProto, tensors: Sequence[str]) -> onnx.ModelProto:
    """A copy of the model whose outputs are also `tensors`."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    already = {o.name for o in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=t) for t in tensors if t not in already)
    return copy


def _join(a: Tally | None, b: Tally | None) -> Tally:
    if a is None or b is None:
        one = a or b
        assert one is not None
        return one
    if not _seen(a) or not _seen(b):
        return a if _seen(a) else b
    note = a.note or b.note
    if a.axis == b.axis and a.populations.size == b.populations.size:
        return Tally(merge(a.populations, b.populations), a.axis, note)
    return Tally(merge(a.populations, b.populations), None, note or "channels differ between samples: kept together")


def _seen(t: Tally) -> bool:
    p = t.populations
    return bool(len(p.count) or (p.nans + p.positive_infinities + p.negative_infinities).any())
