"""Quantised networks keep their accuracy in onnxruntime and reach the kernels in integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from gap_fuse.oracle import session
from gap_fuse.oracle import prepared
from quantizer import activations, collect, prepare, quantise


def accuracy(path: Path, samples: np.ndarray, labels: np.ndarray) -> float:
    """Per cent of right answers, one sample at a time."""
    live = session(onnx.load(str(path)), optimised=True)
    name = live.get_inputs()[0].name  # type: ignore[attr-defined]
    right = [np.argmax(live.run(None, {name: s[None]})[0]) == y for s, y in zip(samples, labels, strict=True)]  # type: ignore[attr-defined]
    return 100 * float(np.mean(right))


def kernels_of(model: Path, **options: object) -> set[str]:
    result = gap_fuse.compile(model, **options)  # type: ignore[arg-type]
    line = next(t for t in result.summary.splitlines() if t.strip().startswith("kernels"))
    return {word.strip().split(" ")[0] for word in line.split("kernels", 1)[1].split(",")}


def in_integers(names: set[str]) -> bool:
    return all(n.endswith("_i8") or n in ("quantize_linear", "dequantize_linear") for n in names)


def test_digits(root: Path, tmp_path: Path) -> None:
    digits = root / "examples" / "digits"
    with np.load(digits / "test_images.npz") as file:
        images, labels = file["image"], file["labels"]
    np.savez(tmp_path / "seen.npz", image=images[:100])
    out = tmp_path / "int8.onnx"
    gap_fuse.quantize(digits / "digits_fp32.onnx", tmp_path / "seen.npz", out)
    rest = images[100:].reshape(-1, 1, 8, 8), labels[100:]
    assert accuracy(out, *rest) >= accuracy(digits / "digits_fp32.onnx", *rest) - 1
    assert in_integers(kernels_of(out))


def test_keyword_spotting(shared: Path, tmp_path: Path) -> None:
    model = shared / "models" / "mlperf_kws" / "kws_ref_model_float32.tf2onnx.onnx"
    with np.load(shared / "data" / "kws_calibration_v1" / "mfcc.npz") as file:
        np.savez(tmp_path / "seen.npz", input_1=file["mfcc"].astype(np.float32)[..., None])
    with np.load(shared / "data" / "kws_speech_commands_v2_test" / "mfcc.npz") as file:
        picked = np.random.default_rng(0).permutation(len(file["labels"]))[:500]
        samples, labels = file["mfcc"][picked].astype(np.float32)[..., None], file["labels"][picked]
    out = tmp_path / "int8.onnx"
    gap_fuse.quantize(model, tmp_path / "seen.npz", out)
    assert accuracy(out, samples, labels) > accuracy(model, samples, labels) - 1
    assert in_integers(kernels_of(out, dims={"unk__123": 1}))


def conv_bn(opset: int = 17) -> onnx.ModelProto:
    rng = np.random.default_rng(1)
    arrays = {
        "w": rng.normal(size=(4, 2, 3, 3)),
        "g": rng.uniform(0.5, 2, 4),
        "b": rng.normal(size=4),
        "m": rng.normal(size=4),
        "v": rng.uniform(0.5, 2, 4),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    ports = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 2, 6, 6]), ("y", [1, 4, 4, 4]))
    ]
    constants = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()]
    return helper.make_model(
        helper.make_graph(nodes, "g", ports[:1], ports[1:], constants),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
    )


def test_batch_norm_is_folded_and_relu_joined() -> None:
    model, x = conv_bn(), np.random.default_rng(2).normal(size=(1, 2, 6, 6)).astype(np.float32)
    plain = prepared(model)({"x": x})["y"]
    assert np.allclose(prepared(prepare(model))({"x": x})["y"], plain, rtol=1e-5, atol=1e-5)
    quantised = quantise(model, collect(prepare(model), activations(model), [{"x": x}], prepared).published())
    kinds = [n.op_type for n in quantised.graph.node if n.op_type not in ("QuantizeLinear", "DequantizeLinear")]
    assert kinds == ["Conv", "Relu"]
    assert np.abs(prepared(quantised)({"x": x})["y"] - plain).max() < 0.03 * plain.max()


@pytest.mark.parametrize(
    ("kind", "weight", "constant"),
    [
        ("Conv", (4, 3, 1, 1), (1, 4, 1, 1)),
        ("MatMul", (4, 4), (4, 1)),
        ("MatMul", (4, 4), (4,)),
        ("MatMul", (4, 4), (1,)),
    ],
)
def test_an_added_constant_keeps_its_axis(kind: str, weight: tuple[int, ...], constant: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    arrays = {"w": rng.normal(size=weight).astype(np.float32), "c": rng.normal(size=constant).astype(np.float32)}
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node(kind, ["x", "w"], ["p"]), helper.make_node("Add", ["p", "c"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4 if kind == "Conv" else 3, 4, 4])],
            [numpy_helper.from_array(a, n) for n, a in arrays.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    x = rng.normal(size=(1, 3, 4, 4)).astype(np.float32)
    plain = prepared(model)({"x": x})["y"]
    quantised = quantise(model, collect(model, activations(model), [{"x": x}], prepared).published())
    assert np.abs(prepared(quantised)({"x": x})["y"] - plain).max() < 0.03 * np.ptp(plain)


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(GapFuseError, match="opset is 12"):
        quantise(conv_bn(12), {})
    with pytest.raises(GapFuseError, match="no finite statistics of tensor 'x'"):
        quantise(conv_bn(), {})
    with pytest.raises(GapFuseError, match="has no tensor 'z'"):
        collect(conv_bn(), ["z"], [], prepared)
