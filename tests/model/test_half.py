"""float16 models are computed in float32 where no kernel takes float16, and say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import gap_fuse
from fusion_engine.model import read_model, widen_half
from gap_fuse.fusing import fuse

NET = """<ir_version: 8, opset_import: ["" : 17]>
net (float16[2,4] x) => (float16[2,3] y, float16[2,4] r)
<float16[4,3] w = {15360, 16384, 14336, 48128, 15000, 16100, 15360, 16384, 14336, 48128, 15000, 16100}> {
  r = Relu(x)
  m = MatMul(r, w)
  wide = Cast<to = 1>(m)
  back = Cast<to = 10>(wide)
  half = Constant<value = float16 {14336}>()
  y = Mul(back, half)
}"""


def test_the_model_keeps_its_ports_and_computes_in_float32() -> None:
    model = read_model(onnx.parser.parse_model(NET))
    wide, notes = widen_half(model, {})
    onnx.checker.check_model(wide.proto, full_check=True)
    assert [i.type.tensor_type.elem_type for i in wide.proto.graph.input] == [onnx.TensorProto.FLOAT16]
    assert {t.data_type for t in wide.proto.graph.initializer} == {onnx.TensorProto.FLOAT}
    assert len(notes) == 1
    feed = {"x": np.linspace(-2, 2, 8).reshape(2, 4).astype(np.float16)}
    for ours, theirs in zip(_run(wide.proto, feed), _run(model.proto, feed), strict=True):
        np.testing.assert_allclose(ours.astype(np.float32), theirs.astype(np.float32), rtol=2e-3)


def test_what_has_no_float16_or_is_fused_already_stays(tmp_path: Path) -> None:
    """Fusing a fused model gives the same bytes: its Casts at the ports are not cast again."""
    onnx.save(onnx.parser.parse_model(NET), tmp_path / "net.onnx")
    once, twice = tmp_path / "once" / "net.onnx", tmp_path / "twice" / "net.onnx"
    for file in (once, twice):
        file.parent.mkdir()
    fuse(tmp_path / "net.onnx", once, dims={})
    fuse(once, twice, dims={})
    assert once.read_bytes() == twice.read_bytes()
    plain = read_model(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        t (float[2] x) => (float[2] y) { y = Relu(x) }""")
    )
    assert widen_half(plain, {}) == (plain, ())


def test_compiled_and_verified(tmp_path: Path) -> None:
    """`no rule takes the node ...: Relu(float16[...])`, three networks of the corpus among them."""
    result = gap_fuse.compile(onnx.parser.parse_model(NET))
    result.write(tmp_path)
    assert any("float16 is computed in float32" in n for n in result.report["notes"])
    assert gap_fuse.verify(tmp_path, samples=2).passed


@pytest.mark.shared
def test_a_network_of_the_corpus(shared: Path, tmp_path: Path) -> None:
    gap_fuse.compile(shared / "models/match_speech_dscnn_fp16/model.onnx").write(tmp_path)
    assert gap_fuse.verify(tmp_path, samples=1).passed


def _run(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return list(onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feed))
