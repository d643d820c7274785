"""Real networks: covered, applied and ordered, their references and their fused models answer as onnxruntime does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from fusion_engine.apply import apply
from fusion_engine.fuse import DOMAIN, fuse_model
from fusion_engine.graph_json import graph_to_json
from fusion_engine.layouts import order_layouts
from fusion_engine.model import read_model
from fusion_engine.planning import Planned
from fusion_engine.reference import run_reference
from tests.graph.conftest import onnxruntime_values, ordered_graph, random_inputs

NETWORKS = (
    "bench/models/resnet8.onnx",
    "bench/models/resnet8_int8_qdq.onnx",
    "bench/models/dscnn_int8_qdq.onnx",
    "bench/models/autoencoder.onnx",
    "bench/models/mobilenetv1_025_int8_qdq.onnx",
    "models/mlperf_ic/pretrainedResnet_quant.tf2onnx.onnx",
    "models/mlperf_kws/kws_ref_model.tf2onnx.onnx",
    "models/emx_micro_kws/micro_kws_m_static_qoperator.onnx",
    "models/pulp_dronet_v2/model_original.onnx",
    "models/mnist_cntk/model.onnx",
    "models/unitree_g1_policy/policy.onnx",
)
FLOAT_KERNELS = ("conv2d_f32", "depthwise_f32", "pointwise_f32", "linear_f32", "matmul_f32", "add_f32", "softmax_f32")


def batch_of_one(path: Path) -> dict[str, int]:
    graph = onnx.load(path).graph
    return {d.dim_param: 1 for i in graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}


@pytest.mark.shared
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_answers_as_onnxruntime_does(shared: Path, planner: Callable[..., Planned], name: str) -> None:
    path = shared / name
    planned = planner(read_model(path, batch_of_one(path)))
    assert planned.plan.gap == 0
    graph = ordered_graph(planned)
    inputs = random_inputs(graph)
    truth = onnxruntime_values(planned.model.proto, inputs)
    values = run_reference(graph, planned.kernels, inputs)
    for output, expected in truth.items():
        difference = np.abs(values[output].astype(np.float64) - expected.astype(np.float64)).max()
        if expected.dtype == np.float32:
            assert difference <= 1e-4 * max(np.abs(expected).max(), 1e-3)
        else:
            assert difference <= 2
    if "int8" in name or "quant" in name or "qop" in name or "kws" in name:
        assert not [c.kernel for c in graph.calls if c.kernel in FLOAT_KERNELS]
    covered = {o for c in graph.calls for o in c.provenance.nodes} | {
        o for b in graph.buffers if b.provenance is not None for o in b.provenance.nodes
    }
    assert {o for n in planned.view.nodes for o in n.origins} <= covered


@pytest.mark.shared
@pytest.mark.parametrize("name", NETWORKS)
def test_its_fused_model_is_valid_and_equal(shared: Path, planner: Callable[..., Planned], name: str) -> None:
    path = shared / name
    planned = planner(read_model(path, batch_of_one(path)))
    fused = fuse_model(planned)
    onnx.checker.check_model(fused, full_check=True)
    assert {n.domain for n in fused.graph.node} == {DOMAIN}
    assert all(any(p.key == "gap_fuse.rule" for p in f.metadata_props) for f in fused.functions if f.domain == DOMAIN)
    graph = apply(planned.view, planned.plan, planned.kernels)
    inputs = random_inputs(graph)
    truth, got = onnxruntime_values(planned.model.proto, inputs), onnxruntime_values(fused, inputs)
    for output, expected in truth.items():
        np.testing.assert_allclose(got[output], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.shared
def test_layout_copies_only_where_needed(shared: Path, planner: Callable[..., Planned]) -> None:
    """A network whose input is NHWC behind a Transpose copies nothing; one fed NCHW at most its input."""
    most = {"models/mlperf_ic/pretrainedResnet_quant.tf2onnx.onnx": 0, "bench/models/mobilenetv1_025.onnx": 1}
    for name, limit in most.items():
        planned = planner(read_model(shared / name, batch_of_one(shared / name)))
        assert Counter(c.kernel for c in ordered_graph(planned).calls)["copy"] <= limit


@pytest.mark.shared
def test_planning_twice_gives_the_same_bytes(shared: Path, planner: Callable[..., Planned]) -> None:
    model = read_model(shared / "bench/models/resnet8_int8_qdq.onnx")
    texts, protos = [], []
    for _ in range(2):
        planned = planner(model)
        graph = apply(planned.view, planned.plan, planned.kernels)
        texts.append(graph_to_json(order_layouts(graph, planned.kernels)))
        protos.append(fuse_model(planned).SerializeToString(deterministic=True))
    assert texts[0] == texts[1]
    assert protos[0] == protos[1]
