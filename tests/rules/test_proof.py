"""Every rule proved on a few drawn models, with near misses and the tests in its file (`gap-fuse rules test`)."""

from __future__ import annotations

import pytest

from fusion_engine.language import check_rules
from gap_fuse.proof import Effort, prove_rule
from gap_fuse.proof.applying import Bench
from tests.rules import running

FEW = Effort(cases=3, bases=1, mutants=1)


@pytest.mark.parametrize("name", [r.name for r in running.rules().rules])
def test_rule(name: str) -> None:
    (rule,) = running.only(name).rules
    proof = prove_rule(Bench(rule, running.rules().classes, running.kernels()), FEW)
    assert proof.passed, "\n".join(str(f) for f in proof.failures)
    fired = [v.name for v in proof.variants if v.fired]
    assert fired or name == "flip_sign", "only what no file can write is not drawn"


@pytest.mark.parametrize("cases", [1, 2])
def test_every_operator_of_a_class_fires_however_few_cases_are_asked_for(cases: int) -> None:
    """Operators were left to chance: of `integers`, BitwiseXor drew types that nothing runs until draws ran out."""
    (rule,) = running.only("integers").rules
    proof = prove_rule(Bench(rule, running.rules().classes, running.kernels()), Effort(cases, bases=1, mutants=1))
    assert proof.passed, [str(f) for f in proof.failures]


def test_the_library_is_sound() -> None:
    assert check_rules([running.ROOT / "rules"], running.kernels()) == ()


def test_every_rule_has_an_example() -> None:
    bare = [r.name for r in running.rules().rules if not any(t.kind == "fires" for t in r.tests)]
    assert bare == ["affine", "identity", "mean_i8"], "only what the proof draws itself"
