"""Each module's forms from torch's two exporters and jax2onnx, function, scope and plain, give the same plan, and the
evidence is stated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fusion_engine.apply import apply
from fusion_engine.model import read_model
from fusion_engine.planning import Planned, plan
from fusion_engine.reference import run_reference
from gap_fuse.oracle import answers
from tests.graph.conftest import planner, random_inputs, rules, shipped  # noqa: F401  fixtures
from tests.graph.test_fused_again import calls

# module -> forms -> a word of the evidence of every call (the most trusted that the form allows)
FORMS: dict[str, dict[str, str]] = {
    "gelu": {
        "ts_modfn": "function torch.nn.modules.activation::GELU",
        "dyn_opt": "operator, in scope torch.nn.modules.activation.GELU",
        "dyn_raw": "operator, in scope torch.nn.modules.activation.GELU",
        "ts": "operator",
    },
    "gelu_tanh": {"dyn_opt": "operator, in scope", "dyn_raw": "operator, in scope", "dyn_op23": "operator, in scope"},
    "silu": {
        "dyn_opt": "scope torch.nn.modules.activation.SiLU layer, its body matched",
        "dyn_raw": "scope torch.nn.modules.activation.SiLU layer, its body matched",
        "ts": "structure",
    },
    "hardswish": {
        "ts_modfn": "function torch.nn.modules.activation::Hardswish",
        "dyn_opt": "operator, in scope torch.nn.modules.activation.Hardswish",
        "ts": "operator",
    },
    "layernorm": {
        "ts_modfn": "function torch.nn.modules.normalization::LayerNorm",
        "dyn_opt": "operator, in scope torch.nn.modules.normalization.LayerNorm",
        "dyn_raw": "operator, in scope torch.nn.modules.normalization.LayerNorm",
        "ts": "operator",
    },
    "groupnorm": {
        "ts_modfn": "in function torch.nn.modules.normalization::GroupNorm",
        "dyn_opt": "in scope torch.nn.modules.normalization.GroupNorm",
        "dyn_raw": "in scope torch.nn.modules.normalization.GroupNorm",
    },
    "conv_bn_relu": {
        "ts_modfn": "in function __main__::Block",
        "ts_modfn_sel": "structure",
        "dyn_opt": "structure",
        "dyn_raw": "structure",
        "ts": "structure",
    },
    "dwsep": {
        "ts_modfn": "in function torch.nn.modules",
        "ts_modfn_sel": "",
        "dyn_opt": "",
        "dyn_raw": "",
    },
    "gru": {
        "ts_modfn": "in function torch.nn.modules.rnn::GRU",
        "dyn_opt": "in scope torch.nn.modules.rnn.GRU",
        "dyn_raw": "in scope torch.nn.modules.rnn.GRU",
        "ts": "operator",
    },
    "lstm": {
        "dyn_opt": "in scope torch.nn.modules.rnn.LSTM",
        "dyn_raw": "in scope torch.nn.modules.rnn.LSTM",
        "ts": "operator",
    },
    "mha": {
        "ts_modfn": "in function torch.nn.modules.activation::MultiheadAttention",
        "dyn_opt": "in scope torch.nn.modules.activation.MultiheadAttention",
        "dyn_raw": "in scope torch.nn.modules.activation.MultiheadAttention",
        "ts": "",
    },
    "encoder_layer": {"dyn_opt": "", "dyn_raw": ""},
    "nested_modules": {"ts_modfn": "function", "dyn_opt": "scope"},
}

Plans = Callable[..., Planned]


def work(planned: Planned) -> list[tuple[object, ...]]:
    """The kernel calls with their operands' types and shapes."""
    graph = apply(planned.view, planned.plan, planned.kernels)
    return [
        (c.kernel, [(n, graph.buffer[b].dtype, graph.buffer[b].shape) for n, b in (*c.operands, *c.results)])
        for c in graph.calls
    ]


def planned(shared: Path, name: str, template: Planned) -> Planned:
    path = shared / "torch_exports" / f"{name}.onnx"
    return plan(read_model(path), template.rules, template.kernels, check=answers)


@pytest.fixture(scope="module")
def template(shared: Path, planner: Plans) -> Planned:  # noqa: F811
    """Any plan, for the rules and kernels in it."""
    found: Planned = planner(read_model(shared / "torch_exports" / "softmax__dyn_opt.onnx"))
    return found


@pytest.mark.shared
@pytest.mark.parametrize("module", sorted(FORMS))
def test_every_form_gives_the_same_plan(shared: Path, template: Planned, module: str) -> None:
    plans = {form: planned(shared, f"{module}__{form}", template) for form in FORMS[module]}
    first, *others = plans
    for form in others:
        assert work(plans[form]) == work(plans[first]), form
    for form, word in FORMS[module].items():
        for c in plans[form].plan.chosen:
            assert word in c.evidence, (form, c.rule, c.evidence)
        assert plans[form].closed == frozenset(), form
        assert plans[form].matches.notes == (), form


@pytest.mark.shared
@pytest.mark.parametrize("module", sorted(FORMS))
def test_every_form_computes_what_onnxruntime_does(shared: Path, template: Planned, module: str) -> None:
    for form in FORMS[module]:
        found = planned(shared, f"{module}__{form}", template)
        graph = apply(found.view, found.plan, found.kernels)
        inputs = random_inputs(graph)
        values = run_reference(graph, found.kernels, inputs)
        for name, expected in answers(found.model.proto, inputs).items():
            np.testing.assert_allclose(values[name], expected, rtol=1e-4, atol=1e-5, err_msg=form)


@pytest.mark.shared
def test_functions_of_jax_and_their_plain_form_find_the_same_rules(shared: Path, template: Planned) -> None:
    """custom.Blk.1::Blk and custom.Blk.2::Blk are opened; each call says in which it lies."""
    found = planned(shared, "jax2onnx_fn", template)
    inside = {c.evidence.rpartition("in function ")[2] for c in found.plan.chosen if "in function" in c.evidence}
    assert inside == {"custom.Blk.1::Blk Blk_1", "custom.Blk.2::Blk Blk_2"}


@pytest.mark.shared
def test_scopes_are_named_in_a_fused_model_too(shared: Path, template: Planned) -> None:
    from fusion_engine.fuse import fuse_model

    found = planned(shared, "encoder_layer__dyn_opt", template)
    again = plan(read_model(fuse_model(found)), template.rules, template.kernels, check=answers)
    assert calls(again) == calls(found)
