"""A network of many small tensors alive at once: branches of convolutions, joined by Add and Concat, over again.

Run, it is planned at 38,400 bytes of L1: seconds of CPU, and how far the plan can be from the best.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import fusion_engine as fe
from gap_fuse.compiling import find_target
from gap_fuse.library import load_library
from tiler import schedule

CHANNELS, SIZE = 16, 8


def wide_network(nodes: int, branches: int = 6, seed: int = 0) -> onnx.ModelProto:
    """At least `nodes` nodes: blocks of `branches` branches of different length, whose results meet pairwise, with a
    skip over each block."""
    net = _Network(np.random.default_rng(seed))
    x = net.conv("x", CHANNELS, 3)
    while len(net.nodes) < nodes - 1:
        ends = [net.chain(x, 1 + int(net.rng.integers(1, 4))) for _ in range(branches)]
        while len(ends) > 2:
            ends = [net.node("Add", *ends[:2]), *ends[2:]]
        x = net.node("Add", net.conv(net.node("Concat", *ends, axis=1), CHANNELS, 1), x)
    net.nodes.append(helper.make_node("Relu", [x], ["y"]))
    shape = [1, CHANNELS, SIZE, SIZE]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    graph = helper.make_graph(net.nodes, "wide", ends[:1], ends[1:], net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


class _Network:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.channels = {"x": CHANNELS}

    def node(self, op: str, *inputs: str, **attributes: int | list[int]) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.channels[name] = sum(self.channels[i] for i in inputs) if op == "Concat" else CHANNELS
        return name

    def conv(self, x: str, channels: int, window: int) -> str:
        weight = self.rng.standard_normal((channels, self.channels[x], window, window)).astype(np.float32) / 10
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(weight, name))
        return self.node("Conv", x, name, pads=[window // 2] * 4)

    def chain(self, x: str, length: int) -> str:
        for _ in range(length):
            x = self.conv(x, CHANNELS, 3)
        return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--branches", type=int, nargs="*", default=(6, 14))
    options = parser.parse_args()
    library, target = load_library(), find_target("host")
    for branches in options.branches:
        model = fe.read_model(wide_network(options.nodes, branches), {})
        found = fe.plan(model, library.rules, library.kernels, target.cores)
        graph = fe.order_layouts(fe.apply(found.view, found.plan, library.kernels), library.kernels, target.cores)
        begun = time.process_time()
        plan = schedule(graph, library.kernels, target, l1=38400)
        assert plan.gap is not None
        print(f"{branches} branches, {len(graph.calls)} calls: {len(plan.stays)} tensors stay, planned in "
              f"{time.process_time() - begun:.1f} s, at most {100 * plan.gap:.2f} % above the least")  # fmt: skip


if __name__ == "__main__":
    main()
