"""Kernels with a mistake that people make: each is caught by `gap-fuse kernels test`, saying what it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_engine.language.types import RuleSet
from gap_fuse.proof import ImplementationProof, calls_of, prove_kernels, select_kernels
from gap_fuse.proof.kernel_running import sanitizer_runtime

FOLDER = Path(__file__).parent / "wrong"
CAUGHT = {  # words of the failure
    "another_symbol": "defines no function `gf_another_symbol`",
    "border_off_by_one": "integers differ",
    "clamp_ignored": "integers differ",
    "cycles_fall": "cycles fall",
    "fills_beside": "beside the tile of `y`, inside its tensor in L1",
    "line_ignored": "beside the tile of `y`, inside its tensor in L1",
    "pitch_ignored": "integers differ",
    "does_not_end": "does not end",
    "every_core_does_all": "cores 0 and 1 both wrote",
    "first_core_does_all": "only one core ever writes",
    "reads_past_the_row": "the C reads memory that is not its own: reads_past_the_row.c:",
    "reference_fails": "reference.py:2:12",  # operands go by position: the parameter is `v`, the operand `x`
    "signed_overflow": "signed integer overflow",
    "unsigned_overflow": "integers differ",
    "writes_past_the_row": "the C writes memory that is not its own: writes_past_the_row.c:",
}


@pytest.fixture(scope="module")
def proofs() -> dict[str, ImplementationProof]:
    if sanitizer_runtime() is None:
        pytest.skip("this compiler has no ASan: stray reads cannot be seen")
    chosen = select_kernels([str(FOLDER)])
    calls = calls_of(chosen.kernels, RuleSet((), {}), {}, 6, 0)
    return {p.kernel: p for p in prove_kernels(chosen.kernels, chosen.every, calls)}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_wrong_kernel_is_caught(proofs: dict[str, ImplementationProof], name: str) -> None:
    assert CAUGHT[name] in " ".join(proofs[name].failures)


def test_every_wrong_kernel_is_listed(proofs: dict[str, ImplementationProof]) -> None:
    assert set(proofs) == set(CAUGHT)
