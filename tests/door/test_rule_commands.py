"""The commands of a rule author, as the author meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gap_fuse.authoring.showing import rule_lines
from gap_fuse.library import load_library
from tests.door.test_command import RULE, command, own_rooms, refused


def test_list_names_every_rule_with_its_family_and_storages() -> None:
    listed = {r["name"]: r for r in json.loads(command("rules", "list", "--json").output)}
    conv = listed["conv2d"]
    assert (conv["family"], conv["storages"]) == ("conv", ["float", "int8"])
    assert {"plain", "bn"} <= set(conv["variants"])
    assert {"conv2d_f32", "conv2d_i8"} <= set(conv["kernels"])
    text = command("rules", "list").output
    assert all(name in text for name in listed)


def test_show_says_where_each_variant_is_looked_for() -> None:
    text = command("rules", "show", "layernorm").output
    assert "variant native\n  looked for at: LayerNormalization\n" in text
    assert "scale  const real[D]" in text
    assert "| (n * scale) with bias = none    # Mul" in text
    assert "emit 1: layernorm_f32" in text
    assert "did you mean `layernorm`?" in refused("rules", "show", "layernrm")


def test_every_shipped_rule_can_be_shown() -> None:
    rules = load_library().rules
    for rule in rules.rules:
        lines = list(rule_lines(rule, rules))
        assert {f"variant {v.name}" for v in rule.variants} <= set(lines)


def test_warnings_are_no_errors(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    twice = "  - {variant: again, pattern: 'y = (q := Relu(x)) * q'}\nemit:"
    (rules / "squared_relu.yaml").write_text(RULE.replace("emit:", twice))
    result = command("rules", "check", rules, "--kernels", kernels)
    assert result.exit_code == 0, result.output
    assert "warning: the variant `again` adds nothing: `plain`" in result.stderr
    assert result.stdout.rstrip() == "1 rule, 0 errors, 1 warning"


def test_shipped_fragments_are_known_to_own_rules(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    (rules / "squared_relu.yaml").write_text(
        "rule: own\nmatch: {pattern: 'y = square(Relu(x))'}\ngiven: {x: 'float32[*S]'}\n"
        "emit: {kernel: squared_relu_f32, args: {x: x}}\n"
    )
    assert command("rules", "check", rules, "--kernels", kernels).exit_code == 0


def test_a_rule_that_overrides_a_shipped_one_says_so(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    (rules / "squared_relu.yaml").write_text(RULE.replace("rule: squared_relu", "rule: conv2d"))
    listed = command("rules", "list", "--rules", rules, "--kernels", kernels)
    assert "note: rule conv2d of" in listed.output
    assert "overrides the one of" in listed.output


@pytest.mark.parametrize("target", ["host", "gap8"])
def test_the_shipped_rules_can_fire_on_every_shipped_target(target: str) -> None:
    result = command("rules", "check", "--target", target)
    assert (result.exit_code, result.stderr) == (0, "")


def test_an_unknown_target_is_refused() -> None:
    assert "shipped: gap8" in refused("rules", "check", "--target", "gap9")
