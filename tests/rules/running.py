"""A small model through one rule: the candidate it gives, run by the kernels' references, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from fusion_engine.apply import apply
from fusion_engine.covering.types import Candidate, Plan
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.kernels.loader import load_kernels
from fusion_engine.language import load_rules
from fusion_engine.language.types import RuleSet
from fusion_engine.matching import match
from fusion_engine.model import read_model
from fusion_engine.reference import run_reference
from fusion_engine.view import View, view

ROOT = Path(__file__).resolve().parents[2]
Arrays = Mapping[str, np.ndarray]


@cache
def kernels() -> Mapping[str, Kernel]:
    return load_kernels([ROOT / "kernels"])


@cache
def rules() -> RuleSet:
    return load_rules([ROOT / "rules"], kernels())


@cache
def only(name: str) -> RuleSet:
    """The library with one rule left."""
    all_rules = rules()
    return RuleSet(tuple(r for r in all_rules.rules if r.name == name), all_rules.classes)


def see(model: onnx.ModelProto) -> View:
    return view(read_model(model.SerializeToString()))


def candidates(model: onnx.ModelProto, rule: str) -> tuple[View, list[Candidate], list[str]]:
    """The view, the rule's candidates for its outputs, and why it declined elsewhere."""
    seen = see(model)
    found = match(seen, only(rule), kernels(), explain=True)
    return seen, list(found.candidates), [f"{d.variant}: {d.reason}" for d in found.declines]


def taking_all(seen: View, found: list[Candidate], emit: int | None = None) -> Candidate | None:
    """A candidate that makes every graph output of the graph inputs alone."""
    for c in found:
        if set(c.produces) == set(seen.outputs) and set(c.consumes) <= set(seen.inputs) and emit in (None, c.emit):
            return c
    return None


def by_references(seen: View, chosen: Candidate, feeds: Arrays) -> list[np.ndarray]:
    graph = apply(seen, Plan((chosen,), chosen.cost, 0.0), kernels())
    values = run_reference(graph, kernels(), feeds)
    return [values[name] for name in graph.outputs]


def by_onnxruntime(model: onnx.ModelProto, feeds: Arrays) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(v) for v in session.run(None, dict(feeds))]


def draw_inputs(model: onnx.ModelProto, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Values for the graph inputs, fixed extents only."""
    feeds: dict[str, np.ndarray] = {}
    for i in model.graph.input:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        shape = tuple(d.dim_value for d in i.type.tensor_type.shape.dim)
        feeds[i.name] = values(rng, dtype, shape)
    return feeds


def values(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:  # type: ignore[type-arg]
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize == 1 else (-50, 50)
    return rng.integers(low, high + 1, shape).astype(dtype)


def assert_close(have: list[np.ndarray], want: list[np.ndarray], steps: int = 1, summands: float = 0.0) -> None:
    """Floats within 1e-5 of the largest magnitude (of the result, or of what is summed), int8 within `steps` steps,
    everything else equal."""
    assert len(have) == len(want)
    for h, w in zip(have, want, strict=True):
        assert (h.shape, h.dtype) == (w.shape, w.dtype)
        if w.dtype.kind == "f":
            finite = np.isfinite(w)
            assert np.array_equal(np.isfinite(h), finite)
            scale = max(1e-6, summands, float(np.max(np.abs(w[finite]), initial=0.0)))
            assert float(np.max(np.abs(h[finite] - w[finite]), initial=0.0)) <= 1e-5 * scale
        elif w.dtype == np.int8:
            assert int(np.max(np.abs(h.astype(int) - w.astype(int)), initial=0)) <= steps
        else:
            assert np.array_equal(h, w)
