"""Odd but legal models through the whole road, C included, and the errors of those that cannot take it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner

import gap_fuse
from gap_fuse.cli import main

MODELS = {
    "scalar": "t (float x) => (float y) { y = Exp(x) }",
    "constant_output": "t (float[2] x) => (float[2] y, float[2] c) <float[2] c = {1, 2}> { y = Relu(x) }",
    "same_twice": "t (float[3,3] x) => (float[3,3] y) { y = MatMul(x, x) }",
    "keywords": "t (float[2,3] int) => (float[2,3] return) { while = Exp(int) return = Tanh(while) }",
    "indices_out": "t (float[2,3] x) => (int64[2] y) { y = ArgMax<axis = 1, keepdims = 0>(x) }",
}


def parsed(body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 18]>\n' + body)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_odd_models_verify(name: str, tmp_path: Path) -> None:
    gap_fuse.compile(parsed(MODELS[name])).write(tmp_path)
    done = CliRunner().invoke(main, ["verify", str(tmp_path), "--samples", "1"])
    assert done.exit_code == 0, done.output


def test_drawn_indices_that_onnxruntime_refuses_are_an_error(tmp_path: Path) -> None:
    model = parsed("t (float[1,3] x, int64[8] i) => (float[8,3] y) { y = Gather<axis = 0>(x, i) }")
    gap_fuse.compile(model).write(tmp_path)
    done = CliRunner().invoke(main, ["verify", str(tmp_path), "--samples", "1"])
    assert done.exit_code == 2
    assert "--inputs" in done.output


def test_a_target_without_a_port_cannot_be_verified(tmp_path: Path) -> None:
    result = gap_fuse.compile(parsed(MODELS["scalar"]), target="gap8")
    assert len(repr(result)) < 200
    result.write(tmp_path)
    done = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert done.exit_code == 2
    assert "cannot be built here" in done.output
