"""Real networks: the library covers every node, and quantised networks stay integer between their edges."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fusion_engine.covering import Plan, cover
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.matching import match
from fusion_engine.model import read_model
from fusion_engine.view import View, view
from tests.rules import running

FLOAT = [
    "bench/models/autoencoder.onnx",
    "bench/models/dscnn.onnx",
    "bench/models/mobilenetv1_025.onnx",
    "bench/models/resnet8.onnx",
    "models/emx_micro_kws/micro_kws_m_static_fp32.onnx",
    "models/mlperf_ad/ad01_fp32.tf2onnx.onnx",
    "models/mlperf_ic/pretrainedResnet.tf2onnx.onnx",
    "models/mlperf_kws/kws_ref_model_float32.tf2onnx.onnx",
    "models/mnist_cntk/model.onnx",
    "models/pulp_dronet_v2/model_original.onnx",
    "models/unitree_g1_policy/policy.onnx",
]
INTEGER = [
    "bench/models/autoencoder_int8_qdq.onnx",
    "bench/models/dscnn_int8_qdq.onnx",
    "bench/models/mobilenetv1_025_int8_qdq.onnx",
    "bench/models/resnet8_int8_qdq.onnx",
    "models/emx_micro_kws/micro_kws_m_qdq.onnx",
    "models/emx_micro_kws/micro_kws_m_qoperator_softmax.onnx",
    "models/emx_micro_kws/micro_kws_m_static_qoperator.onnx",
    "models/mlperf_ad/ad01_int8.tf2onnx.onnx",
    "models/mlperf_ic/pretrainedResnet_quant.tf2onnx.onnx",
    "models/mlperf_kws/kws_ref_model.tf2onnx.onnx",
]


def planned(path: Path) -> tuple[View, Plan]:
    try:
        model = read_model(path)
    except GapFuseError as e:  # open batch dimensions
        model = read_model(path, dict.fromkeys(re.findall(r"`(\w+)`", e.diagnostics[0].message)[-1:], 1))
    seen = view(model)
    return seen, cover(seen, match(seen, running.rules(), running.kernels()).candidates)


@pytest.mark.shared
@pytest.mark.parametrize("name", FLOAT + INTEGER)
def test_every_node_is_covered(shared: Path, name: str) -> None:
    seen, plan = planned(shared / name)
    made = {v for c in plan.chosen for v in c.produces}
    assert set(seen.outputs) <= made | set(seen.inputs)


@pytest.mark.shared
@pytest.mark.parametrize("name", INTEGER)
def test_integer_networks_have_no_float_kernel_inside(shared: Path, name: str) -> None:
    _, plan = planned(shared / name)
    kernels = {call.kernel for c in plan.chosen for call in c.calls}
    assert not {k for k in kernels if k.endswith("_f32")}
    edges = [c for c in plan.chosen if c.rule in ("quantize", "dequantize")]
    assert len(edges) <= 2
