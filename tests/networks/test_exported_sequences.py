"""Norms, activations, attention and recurrent layers as torch really exports them (../shared/torch_exports): every form
of one layer becomes the same calls, answers as torch recorded, and its C is verified once a layer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

import gap_fuse
from fusion_engine import run_reference
from fusion_engine.tolerances import NETWORK
from gap_fuse.comparing import difference
from tests.networks.proving import planned_of, verified
from tests.rules import running

pytestmark = pytest.mark.shared

# Per layer: how many files (raw, optimised, opsets 23 to 26, TorchScript, modules as functions), its kernels in order,
# how many copies into another storage order are left.
LAYERS: dict[str, tuple[int, tuple[str, ...], int]] = {
    "encoder_layer": (
        3,
        (
            *("linear_f32", "attention_f32", "linear_f32", "add_f32", "layernorm_f32"),
            *("linear_f32", "map_f32", "linear_f32", "add_f32", "layernorm_f32"),
        ),
        1,
    ),
    "gelu": (5, ("map_f32",), 0),
    "gelu_tanh": (3, ("map_f32",), 0),
    "groupnorm": (4, ("groupnorm_f32",), 1),
    "gru": (5, ("linear_f32", "gru_f32"), 2),
    "instnorm": (3, ("groupnorm_f32",), 1),
    "layernorm": (5, ("layernorm_f32",), 0),
    "lstm": (4, ("linear_f32", "lstm_f32", "lstm_f32"), 5),
    "mha": (8, ("linear_f32", "attention_f32", "linear_f32"), 2),
    "rmsnorm": (6, ("rmsnorm_f32",), 0),
    "sdpa": (6, ("attention_f32",), 0),
    "silu": (7, ("map_f32",), 0),
    "softmax": (3, ("softmax_f32",), 0),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_every_form_of_a_layer_becomes_the_same_calls(layer: str, shared: Path, tmp_path: Path) -> None:
    count, kernels, copies = LAYERS[layer]
    paths = sorted((shared / "torch_exports").glob(f"{layer}__*.onnx"))
    assert len(paths) == count
    for path in paths:
        graph = planned_of(onnx.load(path))[1]
        assert tuple(c.kernel for c in graph.calls if c.kernel != "copy") == kernels, path.name
        assert Counter(c.kernel for c in graph.calls)["copy"] <= copies, path.name
        with np.load(path.with_suffix(".npz")) as z:
            values = run_reference(graph, running.kernels(), {n: z[f"in{i}"] for i, n in enumerate(graph.inputs)})
            assert difference(values[graph.outputs[0]], z["out0"]).relative <= NETWORK["float32"], path.name
    verified(gap_fuse.compile(paths[-1]), tmp_path)  # what torch writes as opset 26 is no valid model, hence the last
