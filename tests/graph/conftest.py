"""The shipped rooms, read once, and the road from a model to an ordered graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from fusion_engine.apply import apply
from fusion_engine.graph import FusedGraph
from fusion_engine.kernels import load_kernels
from fusion_engine.kernels.descriptor import Kernel
from fusion_engine.language import load_rules
from fusion_engine.language.types import RuleSet
from fusion_engine.layouts import order_layouts
from fusion_engine.planning import Planned, plan
from tiler.binding import bind

Arrays = Mapping[str, np.ndarray]


@pytest.fixture(scope="session")
def shipped(root: Path) -> Mapping[str, Kernel]:
    return load_kernels([root / "kernels"])


@pytest.fixture(scope="session")
def rules(root: Path, shipped: Mapping[str, Kernel]) -> RuleSet:
    return load_rules([root / "rules"], shipped)


@pytest.fixture(scope="session")
def planner(rules: RuleSet, shipped: Mapping[str, Kernel]) -> Callable[..., Planned]:
    return lambda model: plan(model, rules, shipped)


def ordered_graph(planned: Planned) -> FusedGraph:
    """apply and order_layouts; every call must bind to an implementation of its kernel."""
    graph = order_layouts(apply(planned.view, planned.plan, planned.kernels), planned.kernels)
    for call in graph.calls:
        ways = [
            bind(planned.kernels[call.kernel], i, graph, call, ()) for i in planned.kernels[call.kernel].implementations
        ]
        assert any(not isinstance(w, str) for w in ways), f"{call.name}: {ways}"
    return graph


def onnxruntime_values(model: onnx.ModelProto, inputs: Arrays) -> dict[str, np.ndarray]:
    """The model's outputs by onnxruntime, optimisation off."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def random_inputs(graph: FusedGraph, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for name in graph.inputs:
        b = graph.buffer[name]
        if b.dtype.startswith("float"):
            found[name] = rng.standard_normal(b.shape).astype(b.dtype)
        else:
            info = np.iinfo(b.dtype)
            found[name] = rng.integers(max(info.min, -128), min(info.max, 255), b.shape, endpoint=True).astype(b.dtype)
    return found
