"""The picture of `gap-fuse tile --plot`: everything that is in L1 and L2, to the byte, and as long as the run."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import gap_fuse
from gap_fuse import tiling_blocks as blocks
from gap_fuse.tiling import tiling
from gap_fuse.tiling_plot import draw
from tests.conftest import ROOT

MODEL = ROOT / "examples" / "digits" / "digits_int8.onnx"
SIZES = [(3000, 4000), (6000, 20000), (2000, 3000)]  # streamed from L3, plenty, in between


@pytest.mark.parametrize(("l1", "l2"), SIZES)
def test_blocks_reach_the_peaks_and_meet_no_other(l1: int, l2: int) -> None:
    """Rings, scratch, sums and the stages of what is streamed from L3 were missing."""
    result = gap_fuse.compile(MODEL, l1=l1, l2=l2)
    plan = result.schedule
    calls, copies = blocks.spans(tiling(result, l1, l2, "cycles"))
    near = list(blocks.near_blocks(plan, result.kernels, result.target.cores, calls))
    far = list(blocks.far_blocks(plan, calls))
    assert max(b.offset + b.bytes for b in near) <= plan.peaks["l1"] < max(b.offset + b.bytes for b in near) + 16
    assert max(b.offset + b.bytes for b in far) <= plan.peaks["l2"] < max(b.offset + b.bytes for b in far) + 16
    over = {b.name for b in near if b.kind == blocks.STAYS}
    for found in (near, far):
        for i, a in enumerate(found):
            met = [b for b in found[i + 1 :] if _meet(a, b) and not {a.name, b.name} <= over]  # results over inputs
            assert met == [], a
    assert any(b.kind == blocks.STAGE for b in far) == any(o.stage for c in plan.calls for o in c.operands)
    bars = blocks.engine_bars(plan, calls, copies)
    computing = sum(b.cycles for b in bars if b.kind == blocks.COMPUTING)
    assert computing == pytest.approx(plan.compute_cycles, abs=len(calls))
    assert all(b.start >= 0 and b.start + b.cycles <= calls[-1][1] + 1 for b in bars if b.row)


def _meet(a: blocks.Block, b: blocks.Block) -> bool:
    return (
        a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes and a.start + 1 < b.end and b.start + 1 < a.end
    )


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_names_legends_and_budgets_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    result = gap_fuse.compile(MODEL, l1=3000, l2=4000)
    draw(tiling(result, 3000, 4000, "cycles"), result, tmp_path / f"plan.{ending}")
    drawn = (tmp_path / f"plan.{ending}").read_bytes()
    if ending == "png":
        assert (int.from_bytes(drawn[16:20], "big"), int.from_bytes(drawn[20:24], "big")) == (2400, 1560)
        return
    words = drawn.decode()
    for said in ("conv2d_i8_0", "max_pool2d_stored", "budget 3,000 B", "budget 4,000 B", "L2&lt;-&gt;L1, waited for"):
        assert said in words


def test_names_are_no_formulas(tmp_path: Path) -> None:
    """A graph's name with two dollars ended in a traceback, a tensor's in an error of matplotlib's."""
    text = '<ir_version: 8, opset_import: ["" : 17]> a (float[1,64] x) => (float[1,64] y) { y = Relu(x) }'
    model = onnx.parser.parse_model(text)
    model.graph.name = model.graph.node[0].input[0] = model.graph.input[0].name = "$x_{$"
    result = gap_fuse.compile(model)
    draw(tiling(result, None, None, "cycles"), result, tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").is_file()
