"""Rules with a mistake that people make: each is caught, by the check that should."""

from __future__ import annotations

from pathlib import Path

import pytest

from gap_fuse.proof import Effort, prove_rules, select_rules

FOLDER = Path(__file__).parent / "wrong"
CAUGHT = {  # the checks that find it
    "gemm_beta_ignored": {"values"},
    "clamp_bounds_swapped": {"values"},
    "relu_out_of_nothing": {"values"},
    "epsilon_wrong": {"values"},
    "epsilon_ignored": {"values"},
    "bias_broadcasts_up": {"near miss: shape"},
    "grouped_conv_map_as_bias": {"near miss: shape"},
    "inner_output": {"example"},
    "absent_attribute": {"values"},
    "maxpool_padded_with_0": {"values"},
    "multiplier_of_8_bits": {"values"},
    "rewrite_drops_the_value": {"values"},
    "rewrite_any_clamps": {"values"},
}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_wrong_rule_is_caught(name: str) -> None:
    chosen = select_rules([str(FOLDER / f"{name}.yaml")], kernels=[FOLDER / "kernels"])
    (proof,) = prove_rules(chosen.rules, chosen.library, chosen.kernels, Effort(cases=8, mutants=None))
    assert {f.check for f in proof.failures} == CAUGHT[name], [str(f) for f in proof.failures]
    for failure in proof.failures:
        assert failure.model is not None
        assert failure.span.file.endswith(f"{name}.yaml")
        assert failure.span.line > 1


def test_every_wrong_rule_is_listed() -> None:
    assert {p.stem for p in FOLDER.glob("*.yaml")} == set(CAUGHT)
