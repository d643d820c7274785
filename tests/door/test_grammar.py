"""What the command prints of a network of one node: nothing is "1 things"."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.door.test_command import command

TEXT = """<ir_version: 8, opset_import: ["": 17]> net (float[1] x) => (float[1] y) { y = Relu(x) }"""
PLURAL = re.compile(r"(?<![\d.,])1 [a-z]+[^s\W]s\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one")
    onnx.save(onnx.parser.parse_model(TEXT), path / "net.onnx")
    np.savez(path / "one.npz", x=np.ones((1, 1), np.float32))
    return path


COMMANDS = [
    ("compile", "net.onnx", "-o", "out"),
    ("tile", "net.onnx", "--show", "map_f32_0"),
    ("verify", "out", "--samples", "1"),
    ("run", "out", "--inputs", "one.npz", "-o", "results.npz"),
    ("fuse", "net.onnx", "-o", "fused.onnx"),
    ("quantize", "net.onnx", "--inputs", "one.npz", "-o", "int8.onnx"),
    ("lint", "net.onnx"),
    ("explain", "net.onnx"),
    ("explain", "net.onnx", "--node", "Relu"),
    ("match", "net.onnx", "Relu(x)"),
    ("stats", "net.onnx", "--inputs", "one.npz", "-o", "shard.npz"),
    ("stats", "merge", "shard.npz", "-o", "joined.npz"),
    ("stats", "net.onnx", "--inputs", "one.npz", "-o", "measured.onnx"),
]


def test_one_of_a_thing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` said "1 passes" and `tile` "(1 tilings that nothing beats": in order, each with the files before."""
    monkeypatch.chdir(folder)
    found = {}
    for words in COMMANDS:
        done = command(*words)
        assert done.exit_code == 0, (words, done.output)
        found[words] = PLURAL.findall(done.output)
    assert {w: f for w, f in found.items() if f} == {}
