"""The exporters' examples run, and what they write compiles."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from gap_fuse.compiling import compile as compile_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "exporters"


def run(name: str, path: Path, needs: str) -> onnx.ModelProto:
    """What the example writes, run as its own first lines say."""
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is absent: examples/exporters/{name}.py not run")
    subprocess.run([sys.executable, "-W", "ignore", EXAMPLES / f"{name}.py", path], check=True, capture_output=True)
    return onnx.load(path)


def test_a_torch_keyword_spotter_with_a_gru(tmp_path: Path) -> None:
    model = run("keyword_gru", tmp_path / "m.onnx", "torch")
    assert {(f.domain, f.name) for f in model.functions} == {
        ("com.example.audio", "LogCompress"),
        ("torch.nn.modules.normalization", "LayerNorm"),
        ("torch.nn.modules.rnn", "GRU"),
    }
    kernels = [c.kernel for c in compile_model(model).graph.calls]
    assert "gru_f32" in kernels
    assert "layernorm_f32" in kernels


def test_an_onnxscript_function(tmp_path: Path) -> None:
    model = run("onnxscript_function", tmp_path / "m.onnx", "onnxscript")
    assert [(n.domain, n.op_type) for n in model.graph.node] == [
        ("com.example.audio", "HardSwish6"),
        ("", "Softmax"),
        ("com.example.audio", "HardSwish6"),
    ]
    assert compile_model(model).graph.calls


def test_a_jax_function(tmp_path: Path) -> None:
    model = run("jax_function", tmp_path / "m.onnx", "jax2onnx")
    assert any(f.domain.startswith("com.example.vision") for f in model.functions)
    assert compile_model(model).graph.calls
