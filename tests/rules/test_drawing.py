"""What the prover draws is a legal model; what onnxruntime says of one that is not, in its own words alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from gap_fuse.oracle import session, words_of
from gap_fuse.proof import Effort, prove_rules, select_rules
from gap_fuse.proof.choices import Choices
from gap_fuse.proof.operands import DRAWN

CLAMP = """\
rule: own_clamp
given: {x: "float32[*S]", lo: const real, hi: const real}
match:
  - {variant: captured, pattern: 'y = Clip(x, lo, hi)'}
  - {variant: fixed, pattern: 'y = Clip(x, 0.0, 6.0)', let: {lo: 0.0, hi: 6.0}}
emit: {kernel: map_f32, args: {x: "[x]"}, attrs: {expr: 'tree("clip", "x0", lo, hi)'}}
"""
TILED = """\
rule: own_tile
given: {x: "float32[A, B]"}
match: {pattern: 'y = Tile(x, [1, 2])'}
emit: {kernel: concat, args: {x: "[x, x]"}, attrs: {axis: 1}}
"""


@pytest.mark.parametrize("text", [CLAMP, TILED])
def test_operands_of_one_legal_form(tmp_path: Path, text: str) -> None:
    """A captured bound was drawn of any shape, repeats as floats: most cases were refused, in onnxruntime's words."""
    (tmp_path / "own.yaml").write_text(text)
    chosen = select_rules([str(tmp_path / "own.yaml")])
    (proof,) = prove_rules(chosen.rules, chosen.library, chosen.kernels, Effort(cases=6, mutants=1))
    assert proof.passed, proof.failures
    assert [(v.fired.total() >= 6, dict(v.discarded)) for v in proof.variants] == [(True, {})] * len(proof.variants)


MOVED = """\
rule: own_moved
given: {x: "float32[*S]", pads: const int}
match: {pattern: 'y = Relu(Pad(x, pads, 0.0, None, mode="constant"))'}
let: {front: 0 * range(4 - rank(x))}
where: [all(pads >= 0)]
emit:
  calls:
    - {kernel: reshape, args: {x: x}, attrs: {shape: "concat(front + 1, shape(x))"}, results: {y: four}}
    - {kernel: map_f32, args: {x: "[four]"}, attrs: {expr: '"max(x0, 0.0)"'}, results: {y: t}}
    - kernel: pad_f32
      args: {x: t}
      attrs: {pads: "concat(front, pads[:rank(x)], front, pads[rank(x):])", value: 0.0}
      results: {y: out}
    - {kernel: reshape, args: {x: out}, attrs: {shape: shape(y)}, results: {y: y}}
"""
SLICED = """\
rule: own_sliced
given: {x: "float32[A]", starts: const int, ends: const int}
match: {pattern: 'y = Relu(Slice(x, starts, ends, [0], [1]))'}
emit:
  calls:
    - kernel: slice
      args: {x: x}
      attrs: {starts: starts, ends: "min(ends, A)", steps: "[1]"}
      results: {y: t}
    - {kernel: map_f32, args: {x: "[t]"}, attrs: {expr: '"max(x0, 0.0)"'}}
"""


@pytest.mark.parametrize("text", [MOVED, SLICED])
def test_what_moves_nothing_is_no_failure(tmp_path: Path, text: str) -> None:
    """Pads of 0 were drawn, which the view looks through: the rule failed as one that declines its own pattern."""
    (tmp_path / "own.yaml").write_text(text)
    chosen = select_rules([str(tmp_path / "own.yaml")])
    (proof,) = prove_rules(chosen.rules, chosen.library, chosen.kernels, Effort(cases=20, mutants=1))
    assert proof.passed, [str(f) for f in proof.failures]
    assert proof.variants[0].fired.total() >= 20


def test_pads_are_drawn_that_pad() -> None:
    """Only where no axis of the last two has two elements (a reflection needs them) are all of them 0."""
    for seed in range(200):
        shape = (2, 1 + seed % 3, 1 + seed % 4)
        pads = DRAWN["Pad", 1](Choices(seed), shape, [])
        assert pads is not None
        assert pads.any() == (max(shape[1:]) > 1)


def refusal(text: str, **inputs: object) -> str:
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]>\n' + text)
    with pytest.raises(Exception, match=r".") as caught:
        session(model).run(None, {n: np.asarray(v, np.float32) for n, v in inputs.items()})
    return words_of(caught.value)


def test_onnxruntimes_words() -> None:
    clip = "t (float[3] x, float[2] a) => (float[3] y) { y = Clip(x, a) }"
    assert refusal(clip, x=[1, 2, 3], a=[0, 1]) == "Clip: min should be a scalar."
    starting = (
        "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Exception during initialization: /a/mod.cc:86 M::M(const K&) "
    )
    assert words_of(Exception(f"{starting}fmod_ was false. fmod must be 1\n")) == "fmod must be 1"
    add = "t (float[A] x, float[B] a) => (float[C] y) { [sum] y = Add(x, a) }"
    assert refusal(add, x=[1, 2, 3], a=[0, 1]) == (
        "Add `sum`: Attempting to broadcast an axis by a dimension other than 1. 2 by 3"
    )
