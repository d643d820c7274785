"""Train the digits network and write it as fp32 and int8 (QDQ) ONNX, with its test images.

    pip install "gap-fuse[examples]" torch onnxscript
    python examples/digits/train.py

The data are scikit-learn's `load_digits` (1,797 real 8x8 scans, from the UCI repository), read from the installed
package. Everything is
seeded, yet torch does not promise the same bits on every machine, so the files that this script wrote are kept in the
repository.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
TEST_IMAGES = 360


class DigitsNet(nn.Module):
    """Convolution, a depthwise-separable block with a residual, pooling, a linear layer: the usual parts, in small."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.depthwise = nn.Sequential(
            nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), nn.BatchNorm2d(16), nn.ReLU()
        )
        self.pointwise = nn.Sequential(nn.Conv2d(16, 16, 1, bias=False), nn.BatchNorm2d(16))
        self.down = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.classify = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        x = torch.relu(x + self.pointwise(self.depthwise(x)))
        x = self.down(nn.functional.max_pool2d(x, 2))
        return torch.softmax(self.classify(x.mean((2, 3))), dim=1)


class Batches(CalibrationDataReader):
    """Training images, one at a time, for the quantiser's ranges."""

    def __init__(self, images: np.ndarray) -> None:
        self.rows = iter(images)

    def get_next(self) -> dict[str, np.ndarray] | None:
        row = next(self.rows, None)
        return None if row is None else {"image": row[None]}


def train(images: np.ndarray, labels: np.ndarray) -> DigitsNet:
    torch.manual_seed(0)
    model = DigitsNet()
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    epochs, batch = 40, 64
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, total_steps=epochs * -(-len(x) // batch))
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            loss = nn.functional.nll_loss(torch.log(model(x[rows]) + 1e-9), y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return model.eval()


def export(model: DigitsNet, path: Path) -> None:
    sample = torch.zeros(1, 1, 8, 8)
    program = torch.onnx.export(
        model, (sample,), dynamo=True, input_names=["image"], output_names=["digit"], opset_version=18
    )
    assert program is not None
    proto = program.model_proto
    for node in proto.graph.node:  # traces name the folders of the machine that trained
        del node.metadata_props[:]
    onnx.save(proto, path)


def quantise(source: Path, images: np.ndarray, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_static(
            str(prepared),
            str(path),
            Batches(images),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
        )


def main() -> None:
    data = load_digits()
    images = (data.images[:, None] / 16.0).astype(np.float32)
    labels = data.target.astype(np.int64)
    x, x_test, y, y_test = train_test_split(images, labels, test_size=TEST_IMAGES, random_state=0, stratify=labels)
    export(train(x, y), HERE / "digits_fp32.onnx")
    quantise(HERE / "digits_fp32.onnx", x[:200], HERE / "digits_int8.onnx")
    np.savez_compressed(HERE / "test_images.npz", image=x_test, labels=y_test.astype(np.uint8))


if __name__ == "__main__":
    main()
