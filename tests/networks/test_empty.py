"""Networks in which some tensors have no element: nothing is computed of them, and nothing beside them goes wrong."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import gap_fuse
from fusion_engine.diagnostics import GapFuseError

NETWORKS = {
    # A Concat took the empty part for one of extent 1 and wrote over its neighbours in L1.
    "sliced away": """
        a = Relu(x) none = Slice(a, two, two, two) b = Concat<axis=2>(a, none, a) y = Sigmoid(b)
    """,
    "split off": """
        parts = Constant<value_ints=[0,3,1]>() a = Relu(x) p, q, r = Split<axis=1>(a, parts)
        b = Concat<axis=1>(r, q, p) y = Sigmoid(b)
    """,
    "cut and framed again": """
        cut = Constant<value_ints=[0,0,-6,0,0,0,0,0]>() more = Constant<value_ints=[0,0,0,0,0,0,3,0]>()
        half = Constant<value_float=0.5>() a = Relu(x) b = Pad(a, cut) c = Tanh(b) d = Pad(c, more, half)
        e = Concat<axis=2>(a, d) y = Sigmoid(e)
    """,
    "through a convolution": """
        none = Slice(x, two, two, zero) a = Conv<kernel_shape=[1,1]>(none, w) b = Conv<kernel_shape=[1,1]>(x, w)
        c = Relu(a) d = Relu(b) e = Concat<axis=0>(c, d, c) y = Sigmoid(e)
    """,
}


def model(body: str, output: str = "float[A,B,C,D] y") -> onnx.ModelProto:
    weights = ",".join(["0.5", "-1"] * 8)
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[1,4,6,5] x) => ({output})
        <int64[1] two = {{2}}, int64[1] zero = {{0}}, float[4,4,1,1] w = {{{weights}}}> {{{body}}}"""
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_empty_adds_nothing(name: str, tmp_path: Path) -> None:
    result = gap_fuse.compile(model(NETWORKS[name]))
    assert all(b.nbytes for b in result.graph.buffers)
    verdict = gap_fuse.verify(result.write(tmp_path), sanitize=True)
    assert verdict.passed, str(verdict)


def test_parts_without_an_element_are_no_parts() -> None:
    result = gap_fuse.compile(model(NETWORKS["split off"]))
    assert [b.shape[1] for b in result.graph.buffers if b.name in ("p", "q", "r")] == [3, 1]


def test_an_empty_output_is_refused_by_its_name() -> None:
    body = "y = Relu(x) none = Slice(y, two, two, two)"
    with pytest.raises(GapFuseError, match="`none` has no element"):
        gap_fuse.compile(model(body, "float[1,4,6,5] y, float[1,4,0,5] none"))
