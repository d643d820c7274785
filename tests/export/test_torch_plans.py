"""What fusion_friendly_export writes is planned as torch's plain export is, each call by the function it came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from fusion_engine import apply, plan, read_model
from fusion_engine.planning import Planned
from gap_fuse.export import fusion_friendly_export
from gap_fuse.library import load_library
from gap_fuse.oracle import answers

torch: Any = pytest.importorskip("torch", reason="torch is absent: fusion_friendly_export not tested")
pytestmark = pytest.mark.filterwarnings("ignore")
nn = torch.nn


class ConvBlock(nn.Module):
    def __init__(self, i: int, o: int, **options: Any) -> None:
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(i, o, 3, padding=1, **options), nn.BatchNorm2d(o), nn.ReLU6()

    def forward(self, x: Any) -> Any:
        return self.act(self.norm(self.conv(x)))


class Separable(nn.Module):
    def __init__(self, i: int, o: int) -> None:
        super().__init__()
        self.depthwise, self.pointwise = ConvBlock(i, i, groups=i), nn.Conv2d(i, o, 1)

    def forward(self, x: Any) -> Any:
        return self.pointwise(self.depthwise(x))


class Net(nn.Module):
    """One of everything: convolutions over the picture, then its rows as a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.separable, self.group = ConvBlock(3, 8), Separable(8, 8), nn.GroupNorm(2, 8)
        self.silu, self.hard, self.gelu = nn.SiLU(), nn.Hardswish(), nn.GELU(approximate="tanh")
        self.layer = nn.TransformerEncoderLayer(16, 2, 24, activation="gelu", batch_first=True)
        self.attention, self.norm = nn.MultiheadAttention(16, 2, batch_first=True), nn.LayerNorm(16, eps=1e-3)
        self.gru, self.lstm = nn.GRU(16, 6, batch_first=True), nn.LSTM(6, 5, batch_first=True)

    def forward(self, x: Any) -> Any:
        picture = self.group(self.separable(self.silu(self.stem(x))))
        rows = picture.permute(0, 2, 1, 3).reshape(1, 4, 16)
        rows = self.norm(self.attention(self.layer(rows), rows, rows, need_weights=False)[0])
        return self.lstm(self.hard(self.gru(self.gelu(rows))[0]))[0]


KEPT = [ConvBlock, Separable, nn.GroupNorm, nn.SiLU, nn.Hardswish, nn.GELU, nn.TransformerEncoderLayer]
KEPT += [nn.MultiheadAttention, nn.LayerNorm, nn.GRU, nn.LSTM]


@pytest.mark.parametrize("opset", [18, 23])
def test_the_plan_is_that_of_the_plain_export(opset: int) -> None:
    torch.manual_seed(0)
    net, x = Net().eval(), torch.randn(1, 3, 4, 2)
    plain = torch.onnx.export(net, (x,), dynamo=True, opset_version=opset, verbose=False).model_proto
    marked = fusion_friendly_export(net, (x,), keep=KEPT, opset=opset)
    assert not marked.declined
    assert {name.rpartition("::")[2] for _, name in marked.calls} == {c.__name__ for c in KEPT}
    first, second = planned(plain), planned(marked.model)
    assert kernels(second) == kernels(first)
    assert second.matches.notes == ()
    assert second.closed == frozenset()
    said = {c.produces[0]: c.evidence for c in second.plan.chosen}
    for name in ("GroupNorm", "SiLU", "GELU", "Hardswish", "LayerNorm", "MultiheadAttention", "GRU", "LSTM"):
        assert any(f"::{name} " in e for e in said.values()), (name, said)
    (result,) = answers(marked.model, {marked.model.graph.input[0].name: x.numpy()}).values()
    np.testing.assert_allclose(result, net(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def planned(model: onnx.ModelProto) -> Planned:
    library = load_library()
    return plan(read_model(model), library.rules, library.kernels, check=answers)


def kernels(found: Planned) -> list[str]:
    return [c.kernel for c in apply(found.view, found.plan, found.kernels).calls]
