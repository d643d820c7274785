"""Random networks from a wide operator set: mixed types, odd windows, broadcasts, fan-out, several inputs and outputs,
constants in odd places, Q/DQ pairs. Fused == model for all of them, the C == model for a part."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gap_fuse
from tests.networks.growing import LARGEST, OPSETS, Net
from tests.networks.layers import layers_for
from tests.networks.proving import prove, verified
from tests.rules import running

NIGHTLY = os.environ.get("GAP_FUSE_PROFILE") == "nightly"
wide = settings(max_examples=2000 if NIGHTLY else 100, suppress_health_check=list(HealthCheck))
in_c = settings(max_examples=100 if NIGHTLY else 6, suppress_health_check=list(HealthCheck))


@pytest.fixture
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", "-O1")


@st.composite
def wide_models(draw: st.DrawFn) -> onnx.ModelProto:
    """One or two inputs of rank 2 to 4 and up to seven layers; a layer reads the last value or an earlier one."""
    g = Net(draw, np.random.default_rng(draw(st.integers(0, 1000))), draw(st.sampled_from(OPSETS)))
    x = _input(g)
    if g.odds(4):
        _input(g)
    for _ in range(draw(st.integers(1, 7))):
        if g.odds(5):
            x = g.pick(*g.floats())
        x = g.pick(*layers_for(len(g.shape(x))))(g, x)
        if not 0 < g.types[x].size <= LARGEST or len(g.shape(x)) > 4:
            x = g.inputs[0]
    if not g.nodes:
        g.node("Relu", [x])
    return g.model()


def _input(g: Net) -> str:
    rank = g.pick(4, 4, 4, 3, 2)
    return g.input(np.float32, (g.pick(1, 1, 2), g.integer(1, 8), *(g.integer(1, 9) for _ in range(rank - 2))))


@wide
@given(wide_models(), st.integers(0, 99))
def test_fused_is_the_model(model: onnx.ModelProto, seed: int) -> None:
    prove(model, running.draw_inputs(model, np.random.default_rng(seed)))


@pytest.mark.usefixtures("quick_builds")
@in_c
@given(wide_models(), st.integers(0, 99))
def test_the_c_is_the_model(model: onnx.ModelProto, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        verified(gap_fuse.compile(model), Path(folder), seed)


# ---- what the drawing found, each in its smallest form ----

STORIES = {
    # the fused model named the value twice: as an initializer of the call that reads it and as a Constant
    "a graph output that is known at compile time and also read": """
      t (float[2,3] x) => (float[2,4] y, float[3,4] w)
      <float[3,4] c = {1.0,-2.0,3.0,-4.0,5.0,-6.0,7.0,-8.0,9.0,-1.0,2.0,-3.0}> { w = Relu(c)  y = MatMul(x, w) }""",
    # laying out the views never ended: behind the mended reshape stood a second one that no strides express
    "two reshapes that move bytes, one behind the other, and nothing else": """
      t (float[2,8,4,9] x) => (float[2,8,4,9] y)
      { d = DepthToSpace<blocksize = 2>(x)  y = SpaceToDepth<blocksize = 2>(d) }""",
    # the first rule for Gemm in every other form took linear's bias condition for all four of its variants
    "Gemm with a transposed left operand, constant weights and a bias per output": """
      t (float[5,2] x) => (float[2,3] y)
      <float[5,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6}, float[3] b = {1.0,2.0,3.0}> { y = Gemm<transA = 1>(x, w, b) }""",
}


@pytest.mark.parametrize("story", STORIES)
def test_story(story: str) -> None:
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>' + STORIES[story])
    prove(model, running.draw_inputs(model, np.random.default_rng(0)))


IN_C = {
    # the plan counted 72 bytes in 2 transfers for the pad, the C moves its 28 once: the axis goes on behind the tensor
    "a frame below and to the right in front of a pool with strides": """
      t (float[1,1,7,1] x) => (float[1,1,5,2] y)
      <int64[8] p = {0,0,0,0,0,0,2,1}>
      { z = Pad(x, p)  y = AveragePool<kernel_shape = [2,1], pads = [0,0,1,0], strides = [2,1]>(z) }""",
}


@pytest.mark.usefixtures("quick_builds")
@pytest.mark.parametrize("story", IN_C)
def test_story_in_c(story: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>' + IN_C[story])
    verified(gap_fuse.compile(model), tmp_path)
