"""`gap-fuse rules test` and `kernels test` as their users meet them."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from gap_fuse.cli import main
from gap_fuse.proof import Effort, prove_rules, select_rules
from gap_fuse.proof.choices import smallest
from gap_fuse.proof.mutations import MUTATIONS
from tests.conftest import ROOT

WRONG = Path(__file__).parent / "wrong"


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.output


def test_a_sound_rule_shows_its_table() -> None:
    code, text = run("rules", "test", "prelu", "--cases", "2")
    assert code == 0
    assert "plain: drawn 2, fired 2" in text
    assert "near miss" in text
    assert text.rstrip().endswith("2 tests of their own: proved")


def test_a_wrong_rule_shows_the_smallest_model_and_where() -> None:
    path = WRONG / "gemm_beta_ignored.yaml"
    code, text = run("rules", "test", str(path))
    assert code == 1
    assert f"{path}:9:5: values: rule gemm_beta_ignored (plain)" in text
    assert "drawn (float[1,1] x) => (float[1,1]" in text, "one row, one column, one term"


def test_a_rule_that_rewrites_is_proved_too() -> None:
    code, text = run("rules", "test", "clamps", "--cases", "2", "--mutants", "1")
    assert code == 0, text
    assert "relu: drawn 2, fired 2" in text
    assert "  2  rewrite 1" in text
    assert text.rstrip().endswith("3 tests of their own: proved")


def test_json_says_everything() -> None:
    code, text = run("rules", "test", str(WRONG / "inner_output.yaml"), "--cases", "1", "--json")
    (rule,) = json.loads(text)["rules"]
    assert (code, rule["passed"], rule["failures"][0]["check"]) == (1, False, "example")
    assert rule["variants"][0]["near_misses"]["graph output"]["wrong"] == 0


def test_an_unknown_rule_is_a_request_that_cannot_be_met() -> None:
    code, text = run("rules", "test", "prelo")
    assert code == 2
    assert "there is no rule `prelo`" in text


def test_the_same_seed_proves_the_same() -> None:
    chosen = select_rules(["add"])
    few = Effort(cases=2, seed=5, bases=1, mutants=1)
    first, second = (prove_rules(chosen.rules, chosen.library, chosen.kernels, few)[0] for _ in range(2))
    assert [vars(v.worst) for v in first.variants] == [vars(v.worst) for v in second.variants]
    assert [v.reasons for v in first.variants] == [v.reasons for v in second.variants]


def test_kernels_test_shows_a_row_for_each_implementation() -> None:
    code, text = run("kernels", "test", "lut_i8", "--cases", "1")
    assert code == 0
    assert "lut_i8  portable" in text
    assert text.rstrip().endswith("proved")


def test_failing_choices_become_the_smallest_that_fail() -> None:
    assert smallest([7, 3, 9], lambda s: s[0] + s[2] >= 4) == [0, 0, 4]


def test_the_list_of_mutations_is_published() -> None:
    text = (ROOT / "docs" / "prove-a-rule.md").read_text()
    assert [k for k in MUTATIONS if f"| {k} |" not in text] == []
