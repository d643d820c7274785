"""Activations in L2 at once: layer by layer beside what `--minimise l2` leaves there, under the machine and kernels of
bench_model.py. The networks begin and end in integers: quantising the image and dequantising the answer are cut off."""

from __future__ import annotations

import onnx

from benchmarks.bench_model import problem
from benchmarks.networks import Network
from tiler import Schedule, order_and_schedule

ALIGNMENT = 16


def l2_peak_row(network: Network, l1: int) -> list[str]:
    """What is live at most layer by layer, and whether the addresses reach that; fused, the least and what is
    reached."""
    graph, kernels, target = problem(in_integers(onnx.load(network.path)))
    _, apart = order_and_schedule(graph, kernels, target, l1=l1, fused=False)
    _, fused = order_and_schedule(graph, kernels, target, l1=l1, minimise="l2")
    image = sum(graph.buffer[n].nbytes for n in graph.inputs)
    return [
        network.title,
        f"{l1:,}",
        f"{image:,}",
        f"{apart.activations:,}",
        "reached" if _placed(apart) <= _up(apart.bounds.live_bytes) else f"{_placed(apart):,} with gaps",
        f"{fused.activations:,}",
        "proven least" if fused.gap is not None and fused.activations == fused.bounds.kept_bytes else "",
        f"{_placed(fused):,}",
        f"{fused.total_cycles / apart.total_cycles:.3f}x",
    ]


def in_integers(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the QuantizeLinear behind each input and the DequantizeLinear in front of each output."""
    graph = model.graph
    types = {v.name: v.type for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    readers = [name for n in graph.node for name in n.input]
    cut = []
    for port in graph.input:
        quantise = next((n for n in graph.node if n.op_type == "QuantizeLinear" and n.input[0] == port.name), None)
        if quantise is not None and readers.count(port.name) == 1:
            cut.append((port, quantise, quantise.output[0]))
    for port in graph.output:
        dequantise = next((n for n in graph.node if n.op_type == "DequantizeLinear" and n.output[0] == port.name), None)
        if dequantise is not None and not readers.count(port.name):
            cut.append((port, dequantise, dequantise.input[0]))
    for port, node, name in cut:
        graph.node.remove(node)
        port.CopyFrom(onnx.helper.make_value_info(name, types[name]))
    return model


def _placed(schedule: Schedule) -> int:
    """From the first byte of L2 that an activation is in to the last."""
    constants = {c.name for c in schedule.constants}
    there = [r for r in schedule.residencies if r.root not in constants]
    return _up(max((r.offset + r.bytes for r in there), default=0) - min((r.offset for r in there), default=0))


def _up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
