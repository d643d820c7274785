"""Every real network: the view written back computes what the file computes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from fusion_engine.model import read_model
from fusion_engine.view import view
from tests.conftest import SHARED
from tests.view.oracle import check, invariants, session

FOLDERS = ("models", "bench/models", "torch_exports")
FILES = sorted(str(p.relative_to(SHARED)) for f in FOLDERS for p in (SHARED / f).rglob("*.onnx")) or ["absent"]

DIMS = {
    "ppocr": {"x:0": 1, "x:2": 48, "x:3": 192},
    "silero": {"batch": 1, "sequence": 576},
    "tashkeel": {"batch": 1, "seq": 12},
    "vespa": {"batch": 1, "tokens": 7},
    "tract_qlstm": {"input:0": 3},
    "sklearn": {"X:0": 2},
}
REFUSED = {  # onnxruntime does not run these files
    "deeploy_minimobilenet": "RequantShift is not an ONNX operator",
    "match_keyword_spotting": "Conv of uint8 tensors",
    "onnx_super_resolution": "Add of operator set 1",
    "test_gemm_CM_transA": "C does not broadcast",
    "test_resize_downsample_sizes_linear_1D_align": "an absent input that operator set 10 demands",
    "mha__dyn_op26": "Attention in operator set 18",
    "rmsnorm__dyn_op26": "RMSNormalization in operator set 18",
    "sdpa__dyn_op26": "Attention in operator set 18",
    "symbolic__opt": "a custom operator",
}


def dims(proto: onnx.ModelProto, name: str) -> dict[str, int]:
    for key, given in DIMS.items():
        if key in name:
            return given
    shapes = (i.type.tensor_type.shape.dim for i in proto.graph.input)
    return {d.dim_param: 1 for shape in shapes for d in shape if d.dim_param}


def shipped(path: Path, proto: onnx.ModelProto) -> dict[str, object] | None:
    """The inputs that lie beside an operator test."""
    known = {t.name for t in proto.graph.initializer}
    names = [i.name for i in proto.graph.input if i.name not in known]
    files = [next(iter(sorted(path.parent.rglob(f"input_{i}.pb"))), None) for i in range(len(names))]
    if not names or None in files:
        return None
    return {n: onnx.numpy_helper.to_array(onnx.load_tensor(f)) for n, f in zip(names, files, strict=True)}


@pytest.mark.shared
@pytest.mark.parametrize("name", FILES)
def test_view_computes_what_the_file_computes(shared: Path, name: str) -> None:
    path = shared / name
    if any(part in name for part in REFUSED):
        pytest.skip("onnxruntime does not run it: " + next(v for k, v in REFUSED.items() if k in name))
    proto = onnx.load(path)
    given = shipped(path, proto) if "onnx2c" in name else None
    if "silero" in name:
        pytest.skip("needs the sampling rate as input: see test_silero")
    invariants(check(path, dims(proto, name), inputs=given))  # type: ignore[arg-type]


@pytest.mark.shared
def test_silero(shared: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    given = {
        "input": rng.standard_normal((1, 576)).astype(np.float32),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.asarray(16000, np.int64),
    }
    seen = check(shared / "models/silero_vad/silero_vad_16k_op15.onnx", DIMS["silero"], inputs=given)
    assert not {"If", "Loop", "Scan"} & {n.op for n in seen.nodes}


@pytest.mark.shared
@pytest.mark.parametrize("name", ["deeploy_minimobilenet/network.onnx", "match_keyword_spotting/keyword_spotting.onnx"])
def test_integer_networks_that_onnxruntime_refuses_still_have_a_view(shared: Path, name: str) -> None:
    path = shared / "models" / name
    invariants(view(read_model(path)))
    with pytest.raises(Exception, match="INVALID_GRAPH"):
        session(onnx.load(path))
