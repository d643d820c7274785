"""Layers as torch, jax and scikit-learn really export them (../shared/torch_exports): every form of one layer becomes
the same kernels, answers as torch recorded, and its C is verified once a layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import gap_fuse
from fusion_engine import GapFuseError
from fusion_engine.tolerances import NETWORK
from gap_fuse.comparing import difference
from tests.networks.proving import planned_of, prove, verified
from tests.rules import running

pytestmark = pytest.mark.shared

# Per layer: how many files (raw, optimised, opset 23, TorchScript, modules as functions, ...), and its kernels.
LAYERS: dict[str, tuple[int, tuple[str, ...]]] = {
    "conv_bn_relu": (6, ("conv2d_f32",)),
    "dwsep": (5, ("depthwise_f32", "pointwise_f32")),
    "linear_relu6": (3, ("linear_f32",)),
    "hardswish": (5, ("map_f32",)),
    "nested_modules": (2, ("linear_f32", "map_f32", "linear_f32", "map_f32")),
    "nested_region": (2, ("linear_f32", "map_f32", "linear_f32", "map_f32")),
    "nested_region_strict": (2, ("linear_f32", "map_f32", "linear_f32", "map_f32")),
    "customfn": (4, ("map_f32",)),
}
ALONE = {"symbolic_plus_function": ("map_f32",), "jax2onnx_fn": None, "jax2onnx_plain": None}


def read(path: Path) -> onnx.ModelProto:
    """The file, its batch one sample."""
    model = onnx.load(path)
    for i in model.graph.input:
        for d in i.type.tensor_type.shape.dim:
            if not d.HasField("dim_value"):
                d.dim_value = 1
    return model


def computing(model: onnx.ModelProto) -> tuple[str, ...]:
    """The kernels in order, copies into another storage order aside."""
    return tuple(c.kernel for c in planned_of(model)[1].calls if c.kernel != "copy")


def check_recorded(path: Path, model: onnx.ModelProto) -> None:
    """The fused model's references answer as torch did, where a sample is recorded."""
    if not path.with_suffix(".npz").exists():
        prove(model, running.draw_inputs(model, np.random.default_rng(0)))
        return
    with np.load(path.with_suffix(".npz")) as z:
        inputs = {i.name: z[f"in{k}"] for k, i in enumerate(model.graph.input)}
        wanted = z["out0"]
    prove(model, inputs)
    answer = running.by_onnxruntime(model, inputs)[0]
    assert difference(answer, wanted).relative <= NETWORK["float32"]


@pytest.mark.parametrize("layer", LAYERS)
def test_every_form_of_a_layer_becomes_the_same_kernels(layer: str, shared: Path, tmp_path: Path) -> None:
    count, kernels = LAYERS[layer]
    paths = sorted((shared / "torch_exports").glob(f"{layer}__*.onnx"))
    assert len(paths) == count
    for path in paths:
        model = read(path)
        assert computing(model) == kernels, path.name
        check_recorded(path, model)
    verified(gap_fuse.compile(read(paths[-1])), tmp_path)


@pytest.mark.parametrize("name", ALONE)
def test_files_of_other_exporters(name: str, shared: Path, tmp_path: Path) -> None:
    path = shared / "torch_exports" / f"{name}.onnx"
    model = read(path)
    check_recorded(path, model)
    assert ALONE[name] in (None, computing(model))
    verified(gap_fuse.compile(model), tmp_path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("symbolic__opt", "no rule mentions com.greenwaves.nn::GapGelu"),
        ("sklearn_mlp", "no rule mentions ai.onnx.ml::ZipMap"),
    ],
)
def test_operators_of_other_domains_without_a_body_are_declined_by_name(name: str, reason: str, shared: Path) -> None:
    with pytest.raises(GapFuseError, match=reason):
        gap_fuse.compile(read(shared / "torch_exports" / f"{name}.onnx"))
