"""channel_axes(): which axis of each tensor is its channels."""

from __future__ import annotations

import onnx

FIRST = {
    *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "BatchNormalization", "InstanceNormalization"),
    *("GroupNormalization", "LRN", "PRelu", "MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool"),
    *("DepthToSpace", "SpaceToDepth", "Resize", "Upsample"),
}
"""Operators whose tensors are N, C, then space."""
MOVES = {
    *("Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Gather", "GatherND", "ScatterND", "Expand", "Tile"),
    *("Shape", "Size", "Split"),
}
"""Operators after which channels stand elsewhere, or are gone."""


def channel_axes(model: onnx.ModelProto) -> dict[str, int]:
    """The channel axis of each tensor of the graph with two or more dimensions (onnx shape inference).

    Axis 1 beside operators of the N, C, space convention and what follows them element by element; the last axis
    elsewhere. A heuristic: the axis is written beside the statistics.
    """
    graph = onnx.shape_inference.infer_shapes(model).graph
    ranks = {
        v.name: len(v.type.tensor_type.shape.dim)
        for v in [*graph.input, *graph.value_info, *graph.output]
        if v.type.tensor_type.HasField("shape")
    }
    first = _beside_windows(graph)
    return {name: 1 if name in first else rank - 1 for name, rank in ranks.items() if rank >= 2}


def _beside_windows(graph: onnx.GraphProto) -> set[str]:
    found: set[str] = set()
    for node in graph.node:
        if node.op_type in FIRST or (node.op_type not in MOVES and any(i in found for i in node.input)):
            found.update([*node.input[:1], *node.output])
    return found
