"""What `gap-fuse tile` says in words: sums that add up, what more L1 buys or why not, what a size lacks."""

from __future__ import annotations

import re
from pathlib import Path

import onnx

from gap_fuse.tiling_text import _difference
from tests.conftest import ROOT
from tests.door.test_command import command, refused

MODEL = ROOT / "examples" / "digits" / "digits_int8.onnx"


def test_cycles_add_up() -> None:
    """The note of waiting for L3 stood beside waits inside the calls that it left out."""
    said = command("tile", MODEL, "--l1", "3000", "--l2", "4000").stdout
    found = re.search(
        r"cycles    ([\d,]+) = ([\d,]+) computing \+ ([\d,]+) moving data in the calls \+ ([\d,]+) for L3 beside", said
    )
    assert found is not None, said
    total, computing, moving, beside = (int(n.replace(",", "")) for n in found.groups())
    assert total == computing + moving + beside
    assert f"beside the calls' own cycles {beside:,} start copies from L3 and wait for them" in said
    assert "streamed from L3 tile by tile, in the calls' own cycles: 1 of 10 constants" in said
    assert sum(int(row["exposed"]) for row in _calls(said)) == moving


def test_bytes_of_l3_stand_beside_the_calls_and_add_up() -> None:
    """The table told of L2 and L1 alone, and the notes only how many constants come from L3."""
    said = command("tile", MODEL, "--l1", "3000", "--l2", "4000").stdout
    total = re.search(r"L3<->L2   ([\d,]+) B", said)
    assert total is not None, said
    assert sum(int(row["L3<->L2 B"]) for row in _calls(said)) == int(total[1].replace(",", ""))
    assert "L3<->L2" not in command("tile", MODEL, "--l1", "3000").stdout


def _calls(said: str) -> list[dict[str, str]]:
    """The table's lines of calls by its heads."""
    heads, *lines = (re.split(r"\s{2,}", line.strip()) for line in said.split("\n\n")[0].splitlines())
    return [dict(zip(heads, (c.replace(",", "") for c in line), strict=True)) for line in lines if line[0][0] != "="]


def test_why_each_implementation_is_out() -> None:
    """It named the implementation that needs least alone."""
    refusal = refused("tile", ROOT / "examples" / "digits" / "digits_fp32.onnx", "--l1", "600")
    assert "L1 is too small: call conv2d_f32_1 (kernel conv2d_f32) needs 944 bytes, 600 are there" in refusal
    for name in ("acc", "blocked", "patch", "portable"):
        assert f"note: implementation {name} " in refusal
    assert re.search(
        r"implementation portable lacks [\d,]+ bytes: its smallest tiles \(k 1, p 1.*\) need [\d,]+", refusal
    )
    assert "implementation acc lacks 344 bytes: " in refusal


def test_more_l1_without_a_plan_says_why() -> None:
    document = {"title": "vast L1", "refused": "L2 is too small: call a (kernel b) needs 9 bytes, 8 are there"}
    assert _difference("vast L1", document) == f"  vast L1   no plan with it: {document['refused']}"


def test_internal_buffers_bear_the_name_that_the_rule_gives_them(tmp_path: Path) -> None:
    """`b.b/kept` in notes: the value's name twice."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1,1,8,8] x) => (float[1,1,6,10] z)
        <int64[8] p = {0,0,-1,1,0,0,-1,1}> { a = Relu(x) b = Pad(a, p) z = Sigmoid(b) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    assert command("compile", tmp_path / "m.onnx", "-o", tmp_path / "out").exit_code == 0
    assert "b.kept" in (tmp_path / "out" / "graph.json").read_text()
    assert "b/" not in (tmp_path / "out" / "graph.json").read_text()
