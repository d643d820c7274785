"""Constants in L3 beside activations in L1: they pass through L2 in the order in which the loops read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gap_fuse
from tests.networks.proving import verified

SHAPE = (1, 18, 7, 12)


def _sums() -> onnx.ModelProto:
    """Depthwise convolutions, each result added to a constant of its own size."""
    rng, nodes, constants, x = np.random.default_rng(1), [], [], "input"
    for i in range(3):
        for name, shape in ((f"w{i}", (SHAPE[1], 1, 5, 5)), (f"b{i}", SHAPE)):
            constants.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 5, name))
        nodes.append(helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"], group=SHAPE[1], pads=[2] * 4))
        nodes.append(helper.make_node("Add", [f"c{i}", f"b{i}"], [f"s{i}"]))
        x = f"s{i}"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPE) for n in ("input", x)]
    graph = helper.make_graph(nodes, "sums", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SIZE = 4 * int(np.prod(SHAPE))


@pytest.mark.parametrize("l2", [2 * SIZE + 800, 2 * SIZE + 2400])
def test_a_loop_that_runs_downwards_reads_constants_that_are_there(
    l2: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result trails its input from above; pieces in the order of a loop upwards came too late, or were gone."""
    monkeypatch.setenv("OPT", "-O1")
    result = gap_fuse.compile(_sums(), l1=SIZE + SIZE // 2, l2=l2, minimise="bytes")
    down = any(x.down for c in result.schedule.calls for x in c.loops)
    assert down, "no loop runs downwards: this shows nothing"
    verified(result, tmp_path)


def _resized() -> onnx.ModelProto:
    """A dense layer over an enlarged image, its weights larger than any L2 below."""
    weights = np.random.default_rng(1).standard_normal((4, 924)).astype(np.float32) / 30
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.float32([1, 1, 2, 2]), "scales")]
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["r"], coordinate_transformation_mode="asymmetric"),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], transB=1),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (1, 3, 11, 7)), ("y", (1, 4)))]
    graph = helper.make_graph(nodes, "resized", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("l2", [200, 400, 600, 2184])
def test_where_some_l2_does_more_of_it_does_too(l2: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """600 bytes were refused, 128 named as enough: what is read in larger tiles there left no room for the rest."""
    monkeypatch.setenv("OPT", "-O1")
    verdict = gap_fuse.verify(gap_fuse.compile(_resized(), l1=380, l2=l2).write(tmp_path), samples=1)
    assert verdict.passed, str(verdict)
