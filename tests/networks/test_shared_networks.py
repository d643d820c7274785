"""The real networks in ../shared (skipped where that folder is absent): compiled for the host, built and run.

What `verify` compares: every buffer with the numpy references under three timings of the copies, every call with its
ONNX nodes, the outputs with onnxruntime, the bytes and commands moved with the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

import gap_fuse
from fusion_engine.tolerances import NETWORK, STEPS_PER_ROUNDING
from gap_fuse.verdict import Verdict

pytestmark = pytest.mark.shared

Loader = Callable[[Path, str], np.ndarray]


def batch(path: Path, _: str) -> np.ndarray:
    """Real inputs of MLPerf Tiny: `inputs`, one sample a row."""
    with np.load(path) as z:
        return np.asarray(z["inputs"])


def arrays(path: Path, name: str) -> np.ndarray:
    """One recorded sample, under the input's name."""
    with np.load(path) as z:
        return np.asarray(z[name if name in z else f"in:{name.replace('/', '|')}"])


def protobufs(folder: Path, _: str) -> np.ndarray:
    """ONNX model zoo test sets: setN_input_0.pb."""
    paths = sorted(folder.glob("set*_input_0.pb"))
    assert paths
    return np.concatenate([onnx.numpy_helper.to_array(onnx.load_tensor(p)) for p in paths])


def frames(folder: Path, _: str) -> np.ndarray:
    """Camera frames, binary PGM of 200 x 200 pixels, scaled to 0..1."""
    paths = sorted(folder.glob("frame_*.pgm"))
    assert paths
    return np.stack([_pgm(p)[None, None].astype(np.float32) / 255 for p in paths])


def _pgm(path: Path) -> np.ndarray:
    head, comment, size, most, pixels = path.read_bytes().split(b"\n", 4)
    assert (head, comment[:1], most) == (b"P5", b"#", b"255")
    width, height = map(int, size.split())
    return np.frombuffer(pixels, np.uint8).reshape(height, width)


@dataclass(frozen=True)
class Network:
    """One file, its inputs, and what must hold: `integers` says that no call computes in float between integers."""

    model: str
    inputs: str
    load: Loader
    integers: bool

    @property
    def label(self) -> str:
        return "-".join(self.model.removesuffix(".onnx").removesuffix(".tf2onnx").split("/")[-2:])


MLPERF = [
    ("mlperf_ad/ad01_fp32", False),
    ("mlperf_ad/ad01_int8", True),
    ("mlperf_ic/pretrainedResnet", False),
    ("mlperf_ic/pretrainedResnet_quant", True),
    ("mlperf_kws/kws_ref_model_float32", False),
    ("mlperf_kws/kws_ref_model", True),
]
EMX = [("qdq", True), ("qoperator_softmax", True), ("static_fp32", False), ("static_qoperator", True)]
BENCH = ["autoencoder", "dscnn", "mobilenetv1_025", "resnet8"]
DRONET, CNTK, UNITREE = "models/pulp_dronet_v2", "models/mnist_cntk", "models/unitree_g1_policy"

NETWORKS = [
    *(Network(f"models/{n}.tf2onnx.onnx", f"models/{n}.batch_io.npz", batch, i) for n, i in MLPERF),
    *(Network(f"bench/models/{n}.onnx", f"bench/models/{n}.npz", arrays, False) for n in BENCH),
    *(Network(f"bench/models/{n}_int8_qdq.onnx", f"bench/models/{n}.npz", arrays, True) for n in BENCH),
    *(
        Network(f"models/emx_micro_kws/micro_kws_m_{n}.onnx", f"models/emx_micro_kws/micro_kws_m_{n}.io.npz", arrays, i)
        for n, i in EMX
    ),
    Network(f"{DRONET}/model_original.onnx", DRONET, frames, False),
    Network(f"{CNTK}/model.onnx", CNTK, protobufs, False),
    Network(f"{UNITREE}/policy.onnx", f"{UNITREE}/policy.io.npz", arrays, False),
]


def unknown_dims(path: Path) -> dict[str, int]:
    """Every symbolic extent of the inputs, as 1."""
    inputs = onnx.load(path, load_external_data=False).graph.input
    return {d.dim_param: 1 for i in inputs for d in i.type.tensor_type.shape.dim if d.dim_param}


def checked(network: Network, shared: Path, folder: Path) -> tuple[gap_fuse.Result, Verdict]:
    """Compile, write and verify on the network's own inputs."""
    result = gap_fuse.compile(shared / network.model, dims=unknown_dims(shared / network.model))
    result.write(folder / "out")
    name = result.graph.inputs[0]
    np.savez(folder / "inputs.npz", **{name.replace("/", "|"): network.load(shared / network.inputs, name)})
    return result, gap_fuse.verify(folder / "out", folder / "inputs.npz")


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.label)
def test_network_compiles_builds_and_answers_as_the_model_does(network: Network, shared: Path, tmp_path: Path) -> None:
    result, verdict = checked(network, shared, tmp_path)
    print(result.summary, verdict, sep="\n")
    assert verdict.passed, str(verdict)
    assert verdict.counters == ()
    assert not verdict.unequal
    covered = {n for call in result.report["calls"] for n in call["nodes"]}
    assert covered, "calls are traced to nodes of the file"
    for output in verdict.outputs:
        assert output.decisions is None or output.decisions.errors == ()
    if network.integers:
        check_integers(result, verdict)
    else:
        assert all(o.found.passed and o.found.tolerance == NETWORK["float32"] for o in verdict.outputs)


def check_integers(result: gap_fuse.Result, verdict: Verdict) -> None:
    """Bit for bit with the references; each call within a step of its nodes; no float between integers."""
    integers = [n for n in verdict.buffers if result.graph.buffer[n].dtype in ("int8", "uint8", "int32")]
    assert integers
    assert {n: verdict.buffers[n].differing for n in integers if verdict.buffers[n].differing} == {}
    assert all(c.steps is None or c.steps <= STEPS_PER_ROUNDING for c in verdict.calls)
    assert any(c.steps is not None for c in verdict.calls)
    assert result.report["float_islands"] == []


def test_keyword_spotting_is_as_accurate_as_the_model_over_the_whole_test_set(shared: Path, tmp_path: Path) -> None:
    """4,890 clips, int8: the C's accuracy within a tenth of a point of onnxruntime's."""
    model = shared / "models/mlperf_kws/kws_ref_model.tf2onnx.onnx"
    result = gap_fuse.compile(model, dims=unknown_dims(model))
    result.write(tmp_path / "out")
    with np.load(shared / "data/kws_speech_commands_v2_test/mfcc.npz") as z:
        features, labels = z["mfcc"].astype(np.float32)[..., None], z["labels"].astype(np.int64)
    quantised = np.clip(np.trunc(features / 0.5847029089927673 + 83), -128, 127).astype(np.int8)
    np.savez(tmp_path / "inputs.npz", **{result.graph.inputs[0]: quantised, "labels": labels})
    verdict = gap_fuse.verify(tmp_path / "out", tmp_path / "inputs.npz")
    print(verdict)
    assert verdict.passed, str(verdict)
    assert verdict.samples == len(labels) == 4890
    accuracy = verdict.outputs[0].accuracy
    assert accuracy is not None
    assert accuracy[0] > 0.85, "the inputs are quantised as the network was trained"
    assert abs(accuracy[0] - accuracy[1]) <= 0.001


@pytest.mark.parametrize(
    ("model", "word"),
    [("models/q_resnet8_qop_u8u8/model.onnx", "zero point"), ("models/q_microkws_qdq_a16w8/model.onnx", "uint16")],
)
def test_where_float_stays_between_integers_the_summary_says_why(
    model: str, word: str, shared: Path, tmp_path: Path
) -> None:
    result, verdict = checked(Network(model, model.replace(".onnx", ".io.npz"), arrays, False), shared, tmp_path)
    islands = result.report["float_islands"]
    assert islands
    assert all(i["why"] for i in islands)
    assert any(word in i["why"] for i in islands), islands
    assert islands[0]["why"] in result.summary
    assert not verdict.unequal, str(verdict)
    assert verdict.counters == ()
