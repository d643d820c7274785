"""Networks of whole numbers (DORY, Deeploy) in ../shared: the answers are theirs, bit for bit, by references and C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gap_fuse
from fusion_engine import run_reference
from gap_fuse.arrays import Samples
from gap_fuse.compiling import read_compiled
from gap_fuse.running import Build, execute
from tests.networks.proving import prove, verified

pytestmark = pytest.mark.shared


def recorded(path: Path, name: str) -> np.ndarray:
    with np.load(path) as z:
        return np.asarray(z[name if name in z else f"in:{name}"], np.float32)


@pytest.mark.parametrize("model", ["dory_frontnet/Frontnet", "dory_tcn/TCN"])
def test_dory_networks_answer_as_onnxruntime_bit_for_bit(model: str, shared: Path, tmp_path: Path) -> None:
    result = gap_fuse.compile(shared / f"models/{model}.onnx")
    name = result.graph.inputs[0]
    feeds = {name: recorded(shared / f"models/{model}.io.npz", name)}
    proofs = prove(result.model.proto, feeds)
    assert [str(p) for p in proofs if p.found.model.differing and not p.function.startswith("log_softmax")] == []
    made = run_reference(result.graph, result.kernels, feeds)
    result.write(tmp_path)
    run = execute(read_compiled(tmp_path), Samples(1, {name: feeds[name][None]}), Build(trace=True))
    chains = [b for c in result.graph.calls if c.kernel == "map_f32" for _, b in c.results]
    assert chains
    assert [b for b in chains if not np.array_equal(run.buffers[b][0], made[b])] == []


def test_deeploy_network_answers_as_it_was_recorded(shared: Path, tmp_path: Path) -> None:
    """onnxruntime has no RequantShift: what is recorded is Deeploy's own answer."""
    folder = shared / "models/deeploy_minimobilenet"
    result = gap_fuse.compile(folder / "network.onnx")
    x, wanted = recorded(folder / "inputs.npz", "input"), recorded(folder / "outputs.npz", "output")
    assert np.array_equal(run_reference(result.graph, result.kernels, {"input": x})["output"], wanted)
    result.write(tmp_path)
    run = execute(read_compiled(tmp_path), Samples(1, {"input": x[None]}), Build())
    assert np.array_equal(run.outputs["output"][0], wanted)


def test_dynamic_quantisation_answers_as_onnxruntime(shared: Path, tmp_path: Path) -> None:
    """DynamicQuantizeLinear and MatMulInteger: scales that are values."""
    path = shared / "models/q_unitree_dyn/model.onnx"
    result = gap_fuse.compile(path)
    feeds = {"obs": np.random.default_rng(1).standard_normal((1, 480)).astype(np.float32)}
    prove(result.model.proto, feeds)
    verified(result, tmp_path)
