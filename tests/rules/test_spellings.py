"""Spellings that exporters write: what must be found all the same."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from tests.networks.proving import planned_of
from tests.rules.test_wrong_fusions import checked, model_of, norm

GELU = "s = {scale}  e = Erf(s)  f = {plus}  g = {times}  y = {half}"
PLAIN = {"scale": "Div(x, r)", "plus": "Add(e, one)", "times": "Mul(x, f)", "half": "Mul(g, half)"}
SPELLINGS: dict[str, dict[str, str]] = {
    "scalar constant of shape [1]": {"types": "float[1] "},
    "swapped operands": {"plus": "Add(one, e)", "times": "Mul(f, x)", "half": "Mul(half, g)"},
    "a no-op Cast": {"plus": "Add(ee, one)", "before": "ee = Cast<to = 1>(e) "},
    "an Identity": {"plus": "Add(ee, one)", "before": "ee = Identity(e) "},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_gelu_are_found(spelling: str) -> None:
    how = SPELLINGS[spelling]
    parts = PLAIN | {k: v for k, v in how.items() if k in PLAIN}
    body = GELU.format(**parts).replace("f = ", how.get("before", "") + "f = ", 1)
    kind = how.get("types", "float ")
    model = model_of(
        f"""t (float[2,3] x) => (float[2,3] y)
        <{kind}r = {{1.4142135}}, {kind}one = {{1.0}}, {kind}half = {{0.5}}> {{ {body} }}"""
    )
    checked(model)
    assert [d.rule for d in planned_of(model)[0].plan.chosen] == ["gelu"]


@pytest.mark.parametrize("axis", [2, -1])
@pytest.mark.parametrize("opset", [13, 17, 18])
def test_layernorm_is_found_with_a_positive_axis_and_axes_as_input(axis: int, opset: int) -> None:
    model = norm("[4]", axis)
    if opset == 18:
        model = onnx.version_converter.convert_version(model, 18)
    else:
        model.opset_import[0].version = opset
    assert "layernorm_f32" in checked(model)


def test_no_shape_information_in_the_file() -> None:
    model = norm("[4]", -1)
    assert not model.graph.value_info
    assert "layernorm_f32" in checked(model)
