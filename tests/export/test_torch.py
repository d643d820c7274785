"""fusion_friendly_export: onnxruntime and the checker take the file, results equal torch's, calls say where from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from fusion_engine.diagnostics import GapFuseError
from gap_fuse.export import fusion_friendly_export, namespaced
from gap_fuse.oracle import prepared

torch: Any = pytest.importorskip("torch", reason="torch is absent: fusion_friendly_export not tested")
pytestmark = pytest.mark.filterwarnings("ignore")
nn = torch.nn


@namespaced("com.example.audio::Squash")
def squash(x: Any, gain: float) -> Any:
    return torch.tanh(x * gain) + x


@namespaced("com.example.audio::StreamingGRU")
class Streaming(nn.Module):
    def __init__(self, size: int, bias: bool = True, scale: float = 1.5) -> None:
        super().__init__()
        self.size, self.scale = size, scale
        self.bias = nn.Parameter(torch.randn(size)) if bias else None
        self.rnn = nn.GRU(size, size, batch_first=True)

    def forward(self, x: Any) -> Any:
        return squash(self.rnn(x)[0], self.scale) + self.bias


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Streaming(8), Streaming(8, scale=2.0)
        self.norm, self.drop = nn.LayerNorm(8), nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return self.norm(self.b(self.drop(self.norm(self.a(x)))))


def test_modules_and_functions_become_calls_that_answer_as_torch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net().train()
    batch = torch.export.Dim("batch")
    got = fusion_friendly_export(
        net, (torch.randn(2, 5, 8),), tmp_path / "n.onnx", keep=[nn.GRU, nn.LayerNorm], dynamic_shapes=({0: batch},)
    )
    assert net.training
    assert not got.declined
    model = onnx.load(tmp_path / "n.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [n.op_type for n in model.graph.node] == ["StreamingGRU", "LayerNorm", "StreamingGRU.1", "LayerNorm"]
    functions = {f.name: f for f in model.functions}
    assert [f.name for f in model.functions if f.name.startswith("GRU")] == ["GRU"]  # one body for both
    assert functions["GRU"].domain == "torch.nn.modules.rnn"
    assert [n.op_type for n in functions["Squash"].node][-3:] == ["Mul", "Tanh", "Add"]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
    assert attributes == {"bias": 1, "scale": 1.5, "size": 8}
    call = next(n for n in functions["StreamingGRU"].node if n.op_type == "GRU")
    assert {a.name: a.i for a in call.attribute}["hidden_size"] == 8
    x = torch.randn(3, 5, 8)
    wanted = net.eval()(x).detach().numpy()
    assert np.allclose(answer(model, x), wanted, atol=1e-5)


def test_marks_change_nothing_elsewhere() -> None:
    x = torch.randn(3)
    assert torch.equal(squash(x, 2.0), torch.tanh(x * 2.0) + x)
    program = torch.onnx.export(nn.Sequential(Wrapped()), (x,), dynamo=True, verbose=False)
    assert not any(n.domain for n in program.model_proto.graph.node)


class Wrapped(nn.Module):
    def forward(self, x: Any) -> Any:
        return squash(x, 2.0)


class Outer(nn.Module):
    """A marked function that calls a marked function, and whose result is the model's output."""

    def forward(self, x: Any) -> Any:
        return twice(x)


@namespaced("com.example::Twice")
def twice(x: Any) -> Any:
    return squash(squash(x, 1.0) * 2.0, 1.0)


def test_marked_functions_nest(tmp_path: Path) -> None:
    x = torch.randn(4)
    got = fusion_friendly_export(Outer(), (x,), tmp_path / "n.onnx")
    assert [n.op_type for n in got.model.graph.node] == ["Twice"]
    assert not any(n.domain == "gap_fuse.marks" for f in got.model.functions for n in f.node)
    inner = next(f for f in got.model.functions if f.name == "Twice")
    assert [n.op_type for n in inner.node if n.op_type.startswith("Squash")] == ["Squash", "Squash"]
    wanted = twice(x).numpy()
    assert np.allclose(answer(got.model, x), wanted, atol=1e-6)


def test_a_name_must_be_domain_and_name() -> None:
    with pytest.raises(GapFuseError, match="not DOMAIN::NAME"):
        namespaced("Squash")


def answer(model: onnx.ModelProto, x: Any) -> np.ndarray:
    return prepared(model)({model.graph.input[0].name: x.numpy()})[model.graph.output[0].name]
