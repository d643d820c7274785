"""Every real network: the view written back computes what the file computes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from fusion_engine.diagnostics import GapFuseError
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
REFUSED = {  # onnxruntime does not run these files, so that nothing says what they compute
    "deeploy_minimobilenet": "RequantShift is not an ONNX operator",
    "match_keyword_spotting": "Conv of uint8 tensors",
    "onnx_super_resolution": "Add of operator set 1",
    "test_gemm_CM_transA": "C does not broadcast",
    "mha__dyn_op26": "Attention in operator set 18",
    "rmsnorm__dyn_op26": "RMSNormalization in operator set 18",
    "sdpa__dyn_op26": "Attention in operator set 18",
    "symbolic__opt": "a custom operator",
}
INVALID = "test_resize_downsample_sizes_linear_1D_align"  # an absent input that operator set 10 demands
ALONE = (*REFUSED, INVALID, "silero")  # have a test of their own below


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
@pytest.mark.parametrize("name", [f for f in FILES if not any(part in f for part in ALONE)])
def test_view_computes_what_the_file_computes(shared: Path, name: str) -> None:
    path = shared / name
    proto = onnx.load(path)
    given = shipped(path, proto) if "onnx2c" in name else None
    invariants(check(path, dims(proto, name), inputs=given))  # type: ignore[arg-type]


@pytest.mark.shared
@pytest.mark.parametrize("part", REFUSED)
def test_files_that_onnxruntime_refuses_have_a_sound_view(shared: Path, part: str) -> None:
    (name,) = (f for f in FILES if part in f)
    invariants(view(read_model(shared / name, dims(onnx.load(shared / name), name))))


@pytest.mark.shared
def test_a_file_that_is_not_valid_is_said_to_be_so(shared: Path) -> None:
    (name,) = (f for f in FILES if INVALID in f)
    with pytest.raises(GapFuseError, match=r"\(Resize\) is not valid: No"):
        read_model(shared / name, {})


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
