"""A keyword-spotting network with a GRU, exported so that a backend sees its GRU and its own operator.

    python examples/exporters/keyword_gru.py OUT.onnx && gap-fuse lint OUT.onnx && gap-fuse compile OUT.onnx -o out

Needs torch 2.13 or newer.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

from gap_fuse.export import fusion_friendly_export, namespaced


@namespaced("com.example.audio::LogCompress")
def log_compress(features: torch.Tensor, floor: float) -> torch.Tensor:
    """Mel energies to log scale: a plain function, kept as one operator."""
    return torch.log(features.clamp(min=0.0) + floor)


class KeywordSpotter(nn.Module):
    """40 mel bands over time -> 12 keywords."""

    def __init__(self, bands: int = 40, hidden: int = 64, keywords: int = 12) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(bands)
        self.rnn = nn.GRU(bands, hidden, batch_first=True)
        self.classify = nn.Linear(hidden, keywords)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        frames, _ = self.rnn(self.norm(log_compress(features, 1e-3)))
        return self.classify(frames[:, -1])


def main(path: str) -> None:
    """Export with fixed random weights to `path`."""
    torch.manual_seed(0)
    outlined = fusion_friendly_export(
        KeywordSpotter(), (torch.rand(1, 50, 40),), path, keep=[nn.GRU, nn.LayerNorm], input_names=["features"]
    )
    for instance, function in outlined.calls:
        print(f"{instance or 'the model'}: {function}")


if __name__ == "__main__":
    main(sys.argv[1])
