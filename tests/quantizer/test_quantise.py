"""Quantised networks keep their accuracy in onnxruntime and reach the kernels in integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from gap_fuse.export import outline
from gap_fuse.oracle import prepared, session
from quantizer import (
    KnownRange,
    TensorStatistics,
    activations,
    annotate,
    collect,
    known_statistics,
    prepare,
    quantise,
)


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
    with pytest.raises(GapFuseError, match="the range of tensor 'x' is not known: it has no statistics"):
        quantise(conv_bn(), {})
    with pytest.raises(GapFuseError, match="has no tensor 'z'"):
        collect(conv_bn(), ["z"], [], prepared)


# ---- what the model itself says ----


ANNOTATED = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (float[1, 4] x) => (float[1, 3] y)
<float sx = {0.03125}, uint8 zx = {128}, float sh = {0.0625}, int8 zh = {-128}, float sy = {0.5}, uint16 zy = {32768}> {
  %s
  y = MatMul(h, w)
}"""


def annotated(fake: bool) -> onnx.ModelProto:
    """A float model whose ranges are said by quantization_annotation, those of x also by com.microsoft's operators."""
    pair = "q = com.microsoft.QuantizeLinear(x, sx, zx)  d = com.microsoft.DequantizeLinear(q, sx, zx)  h = Relu(d)"
    model = onnx.parser.parse_model(ANNOTATED % (pair if fake else "h = Relu(x)"))
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32) / 4
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    for name, scale, zero in (("x", "sx", "zx"), ("h", "sh", "zh"), ("y", "sy", "zy"))[fake:]:
        note = model.graph.quantization_annotation.add(tensor_name=name)
        for key, value in (("SCALE_TENSOR", scale), ("ZERO_POINT_TENSOR", zero)):
            note.quant_parameter_tensor_names.add(key=key, value=value)
    return model


@pytest.mark.parametrize("fake", [False, True])
def test_stated_ranges_quantise_without_samples(tmp_path: Path, fake: bool) -> None:
    model = annotated(fake)
    onnx.save(model, tmp_path / "m.onnx")
    gap_fuse.quantize(tmp_path / "m.onnx", None, tmp_path / "q.onnx")
    quantised = onnx.load(tmp_path / "q.onnx")
    assert {n.domain for n in quantised.graph.node} == {""}
    held = {t.name: numpy_helper.to_array(t) for t in quantised.graph.initializer}
    grids = {t: (float(held[f"{t}/scale"]), int(held[f"{t}/zero"])) for t in ("x", "h")}
    assert grids == {"x": (0.03125, 0), "h": (0.0625, -128)}  # uint8 with zero 128 is int8 with zero 0
    assert held["y/scale"] == pytest.approx(0.5 * 65535 / 255)  # 16 bits stated: the range, in 8
    x = np.linspace(-3, 3, 4, dtype=np.float32).reshape(1, 4)
    plain = prepared(annotated(False))({"x": x})["y"]
    assert np.abs(prepared(quantised)({"x": x})["y"] - plain).max() <= held["y/scale"]


def test_measured_samples_count_before_what_is_stated(tmp_path: Path) -> None:
    onnx.save(annotated(False), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", x=np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
    gap_fuse.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    held = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / "q.onnx").graph.initializer}
    assert held["x/scale"] == pytest.approx(2 / 255)


def test_a_range_in_metadata_is_not_lost() -> None:
    """known_statistics put the annotation's range, here none, in its place."""
    model = conv_bn()
    stated = KnownRange(low=(-1.0,), high=(1.0,), scale=(0.5,), zero_point=(0.0,), dtype="int8", source="me")
    again = known_statistics(annotate(model, {"x": TensorStatistics(count=0, known_range=stated)}))
    assert again["x"].known_range == stated


# ---- one grid where values are joined ----

JOINED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 4, 4] x) => (float[1, 9, 4, 4] y)
<float four = {4.0}, float[1, 1, 4, 4] k = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, -9, -9, -9, -9}> {
  a = Relu(x)  b = Mul(x, four)  p = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (b)
  s = Sigmoid(x)  y = Concat <axis = 1> (a, p, s, k, b)
}"""


def test_the_parts_of_a_concat_share_one_grid() -> None:
    """Moving bytes is enough then; a Sigmoid keeps its own grid, and is the one part that is requantised."""
    model = onnx.parser.parse_model(JOINED)
    x = np.random.default_rng(5).normal(size=(1, 2, 4, 4)).astype(np.float32)
    quantised = quantise(model, collect(prepare(model), activations(model), [{"x": x}], prepared).published())
    held = {t.name: numpy_helper.to_array(t) for t in quantised.graph.initializer}
    grid = {t: (float(held[f"{t}/scale"]), int(held[f"{t}/zero"])) for t in "abpsyx"}
    assert grid["a"] == grid["b"] == grid["p"] == grid["y"]
    assert grid["s"] == (1 / 256, -128)
    assert grid["x"][0] < grid["a"][0]  # not a part: its own
    plain, got = prepared(model)({"x": x})["y"], prepared(quantised)({"x": x})["y"]
    assert np.abs(got - plain).max() <= 4 * grid["x"][0] + grid["y"][0]
    kernels = kernels_in(quantised)
    assert kernels.count("requantize_i8") == 2  # x to the grid of a, and s
    assert not any(k.endswith("_f32") for k in kernels)


def test_parts_with_one_fixed_grid_keep_it() -> None:
    text = (
        JOINED.replace("a = Relu(x)", "a = Softmax(x)").replace("(a, p, s, k, b)", "(a, s)").replace("1, 9,", "1, 4,")
    )
    model = onnx.parser.parse_model(text)
    x = np.random.default_rng(5).normal(size=(1, 2, 4, 4)).astype(np.float32)
    quantised = quantise(model, collect(prepare(model), activations(model), [{"x": x}], prepared).published())
    held = {t.name: numpy_helper.to_array(t) for t in quantised.graph.initializer}
    assert all((float(held[f"{t}/scale"]), int(held[f"{t}/zero"])) == (1 / 256, -128) for t in "asy")


def kernels_in(model: onnx.ModelProto) -> list[str]:
    return [c.kernel for c in gap_fuse.compile(model).graph.calls]


# ---- functions ----


@pytest.mark.shared
@pytest.mark.parametrize("form", ["ts_modfn", "dyn_opt"])
def test_a_model_of_functions_is_quantised_inside_them(shared: Path, tmp_path: Path, form: str) -> None:
    """What fusion_friendly_export writes stayed float inside: only what lay between the calls was quantised."""
    file = shared / "torch_exports" / f"dwsep__{form}.onnx"
    model = onnx.load(file)
    if form == "dyn_opt":
        model = outline(model, ["torch.nn.modules.*"]).model
    onnx.save(model, tmp_path / "m.onnx")
    x = np.random.default_rng(0).normal(size=np.load(file.with_suffix(".npz"))["in0"].shape).astype(np.float32)
    np.savez(tmp_path / "x.npz", **{model.graph.input[0].name: x})
    gap_fuse.quantize(tmp_path / "m.onnx", tmp_path / "x.npz", tmp_path / "q.onnx")
    result = gap_fuse.compile(tmp_path / "q.onnx")
    assert not any(c.kernel.endswith("_f32") for c in result.graph.calls)
    assert {"depthwise_i8", "pointwise_i8"} <= {c.kernel for c in result.graph.calls}
    if form == "dyn_opt":
        assert any("scope torch.nn.modules" in c.evidence for c in result.planned.plan.chosen)
    feeds = {model.graph.input[0].name: x}
    (plain,), (got,) = prepared(model)(feeds).values(), prepared(onnx.load(tmp_path / "q.onnx"))(feeds).values()
    assert np.abs(got - plain).max() < 0.05 * np.ptp(plain)
