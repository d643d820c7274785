"""verify(): the C against the kernels' references, each call against the model's nodes, the whole against
onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fusion_engine import FusedGraph, run_reference
from fusion_engine.graph import Quantisation
from fusion_engine.reference import run_calls
from fusion_engine.tolerances import KERNEL, NETWORK
from gap_fuse.arrays import Samples, draw_samples, read_samples
from gap_fuse.code_size import code_size
from gap_fuse.comparing import Agreement, Difference, agreement, difference, top_one
from gap_fuse.compiling import Compiled, read_compiled
from gap_fuse.islands import dequantises, quantises
from gap_fuse.precise import in_float64
from gap_fuse.progress import Tick, progress
from gap_fuse.proving import kernel_nodes, prove_calls
from gap_fuse.running import TIMINGS, Build, Execution, counter_mismatches, execute, ports
from gap_fuse.truth import Truth, model_truth
from gap_fuse.verdict import OutputVerdict, Verdict

DRAWN_SAMPLES = 4
FAST_BEYOND = 64  # samples: more run on the port that only copies, a few on the hostile one
REFERENCE_SAMPLES = 4  # the numpy references are slow: the first few samples go through them, buffer by buffer


def verify(
    folder: Path | str,
    inputs: Path | str | None = None,
    *,
    samples: int | None = None,
    seed: int = 0,
    sanitize: bool = False,
) -> Verdict:
    """Build the C in `folder`, run it and compare; see Verdict. Raises GapFuseError for bad input or where it cannot
    be built."""
    compiled = read_compiled(Path(folder))
    ins = ports(compiled, compiled.graph.inputs)
    data = read_samples(Path(inputs), ins, samples) if inputs else draw_samples(ins, samples or DRAWN_SAMPLES, seed)
    sanitizers = "address,undefined" if sanitize else ""
    few = first(data, REFERENCE_SAMPLES)
    traced = [execute(compiled, few, Build(sanitizers, trace=True), timing=t, seed=seed + 1) for t in TIMINGS]
    whole = (
        execute(compiled, data, Build(sanitizers, fast=data.count > FAST_BEYOND and not sanitize))
        if data.count > few.count
        else traced[0]
    )
    size = None if sanitize else code_size(compiled, Build(trace=True))
    return replace(judge(compiled, data, traced, whole), size=size)


def judge(compiled: Compiled, data: Samples, traced: Sequence[Execution], whole: Execution) -> Verdict:
    """Compare what the C did with references, nodes and model. `traced` are runs of the first samples under each
    timing of the copies."""
    graph = compiled.graph
    few = min(data.count, REFERENCE_SAMPLES)
    with progress("verifying", few + data.count + len(kernel_nodes(compiled.fused))) as tick:
        found = _all_against_references(compiled, data, traced, few, tick)
        truth = model_truth(compiled.model, graph.outputs, data, tick)
        calls = prove_calls(compiled, run_reference(graph, compiled.kernels, data.sample(0)), tick) if few else ()
    buffers = {name: _worst([d[name] for d in found]) for name in traced[0].buffers}
    unequal = tuple(n for n, d in buffers.items() if not _equal_enough(graph, n, d))
    outputs = _judge_outputs(compiled, whole, truth, data)
    counters = tuple(dict.fromkeys(s for t in traced for s in counter_mismatches(compiled, t)))
    return Verdict(graph.name, data.count, few, buffers, unequal, calls, outputs, counters, truth.refused)


def _all_against_references(
    compiled: Compiled, data: Samples, traced: Sequence[Execution], few: int, tick: Tick
) -> list[Mapping[str, Difference]]:
    found: list[Mapping[str, Difference]] = []
    for i in range(few):
        found += _against_references(compiled, data.sample(i), [_buffers(t, i) for t in traced])
        tick(1)
    return found


def _buffers(execution: Execution, sample: int) -> Mapping[str, np.ndarray]:
    return {name: array[sample] for name, array in execution.buffers.items()}


def _against_references(
    compiled: Compiled, sample: Mapping[str, np.ndarray], runs: Sequence[Mapping[str, np.ndarray]]
) -> list[Mapping[str, Difference]]:
    """Each run's results against what the references answer to the same operands; runs that agree share the answers."""
    answers: Mapping[str, np.ndarray] = {}
    known: Mapping[str, np.ndarray] = {}
    differences: list[Mapping[str, Difference]] = []
    for made in runs:
        if not known or any(made[n].tobytes() != known[n].tobytes() for n in made):
            answers, known = run_calls(compiled.graph, compiled.kernels, sample, made), made
        differences.append({n: difference(made[n], answers[n]) for n in made})
    return differences


def _worst(differences: Sequence[Difference]) -> Difference:
    return Difference(
        sum(d.values for d in differences),
        sum(d.differing for d in differences),
        max(d.worst for d in differences),
        max(d.scale for d in differences),
    )


def _equal_enough(graph: FusedGraph, name: str, d: Difference) -> bool:
    dtype = graph.buffer[name].dtype
    return d.relative <= KERNEL[dtype] if dtype in KERNEL else d.differing == 0


def _judge_outputs(compiled: Compiled, whole: Execution, truth: Truth, data: Samples) -> tuple[OutputVerdict, ...]:
    answers = truth.values or {}
    return tuple(
        _judge_output(compiled, n, whole.outputs[n], answers[n], data, truth.by)
        for n in compiled.graph.outputs
        if n in answers
    )


def _judge_output(
    compiled: Compiled, name: str, got: np.ndarray, wanted: np.ndarray, data: Samples, by: str
) -> OutputVerdict:
    graph = compiled.graph
    step = output_step(graph, name)
    rows = (got.reshape(len(got), -1), wanted.reshape(len(wanted), -1))
    classifier = data.labels is not None or ends_in_softmax(graph, name)
    decisions = top_one(*rows, step) if classifier and rows[0].shape[1] > 1 else None
    accuracy = None
    if data.labels is not None and rows[0].shape[1] > 1:
        accuracy = (float(np.mean(rows[1].argmax(1) == data.labels)), float(np.mean(rows[0].argmax(1) == data.labels)))
    return OutputVerdict(name, _agreement(compiled, name, got, wanted, data), step, decisions, accuracy, by)


def _agreement(compiled: Compiled, name: str, got: np.ndarray, wanted: np.ndarray, data: Samples) -> Agreement:
    tolerance = NETWORK.get(str(wanted.dtype), 0.0)

    def exact() -> np.ndarray | None:
        """onnxruntime's values, those samples that are beyond the tolerance in float64."""
        limit = tolerance * difference(got, wanted).scale
        truth = wanted.astype(np.float64)
        for i in range(data.count):
            if difference(got[i], wanted[i]).worst > limit:
                answers = in_float64(compiled.model, [name], data.sample(i))
                if answers is None or answers[name].shape != truth[i].shape:
                    return None
                truth[i] = answers[name]
        return truth

    return agreement(got, wanted, tolerance, exact)


def first(data: Samples, count: int) -> Samples:
    """The first samples of several."""
    n = min(count, data.count)
    return Samples(n, {k: a[:n] for k, a in data.inputs.items()})


def output_step(graph: FusedGraph, name: str) -> float:
    """One quantisation step of an output: 1 for integers that stand for reals, the scale where it is a dequantised
    integer or computed from one by calls that keep no finer grid; 0 for a float network."""
    buffer = graph.buffer[name]
    if buffer.quantisation is not None or buffer.dtype in ("int8", "uint8", "int16", "uint16"):
        return 1.0
    seen: set[str] = set()
    frontier = [name]
    while frontier:
        owner = graph.root(frontier.pop())
        if owner in seen:
            continue
        seen.add(owner)
        q = _quantisation(graph, owner)
        if q is not None:
            return max(q.scale) if owner in _dequantised(graph, name) else 1.0 / 256
        made = graph.makers.get(owner, ())
        frontier.extend(b for call in made for _, b in call.operands if graph.buffer[b].data is None)
    return 0.0


def _quantisation(graph: FusedGraph, owner: str) -> Quantisation | None:
    """Of a buffer, or of a part of it that is made in its place."""
    results = [b for call in graph.makers.get(owner, ()) for _, b in call.results]
    known = (graph.buffer[b].quantisation for b in (owner, *results))
    return next((q for q in known if q is not None), None)


def _dequantised(graph: FusedGraph, name: str) -> set[str]:
    """What an output, or a part of it, is the real numbers of."""
    made = graph.makers.get(graph.root(name), ())
    return {graph.root(dict(call.operands)["x"]) for call in made if dequantises(call)}


def ends_in_softmax(graph: FusedGraph, name: str) -> bool:
    """Whether the output is a softmax, seen through copies and format changes."""
    owner = graph.root(name)
    while len(made := graph.makers.get(owner, ())) == 1:
        (call,) = made
        if call.kernel.startswith("softmax"):
            return True
        if not (quantises(call) or dequantises(call) or call.kernel.startswith(("copy", "flip_sign"))):
            return False
        owner = graph.root(dict(call.operands)["x"])
    return False
