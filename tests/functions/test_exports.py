"""Each module's forms from torch's two exporters and jax2onnx, function, scope and plain, give the same plan, and the
evidence is stated."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fusion_engine.apply import apply
from fusion_engine.fuse import fuse_model
from fusion_engine.graph import FusedGraph
from fusion_engine.model import Model, read_model
from fusion_engine.planning import Planned, plan
from fusion_engine.reference import run_reference
from gap_fuse.compiling import compile as compile_model
from gap_fuse.export import outline
from gap_fuse.oracle import answers
from tests.graph.conftest import planner, random_inputs, rules, shipped  # noqa: F401  fixtures
from tests.graph.test_fused_again import calls

# module -> the class that every call of it must name where the file says it; "": calls that lie across classes
MODULES: dict[str, str] = {
    "gelu": "torch.nn.modules.activation.GELU",
    "gelu_tanh": "torch.nn.modules.activation.GELU",
    "silu": "torch.nn.modules.activation.SiLU",
    "hardswish": "torch.nn.modules.activation.Hardswish",
    "softmax": "torch.nn.modules.activation.Softmax",
    "layernorm": "torch.nn.modules.normalization.LayerNorm",
    "groupnorm": "torch.nn.modules.normalization.GroupNorm",
    "rmsnorm": "torch.nn.modules.normalization.RMSNorm",
    "instnorm": "torch.nn.modules.instancenorm.InstanceNorm2d",
    "gru": "torch.nn.modules.rnn.GRU",
    "lstm": "torch.nn.modules.rnn.LSTM",
    "mha": "torch.nn.modules.activation.MultiheadAttention",
    "sdpa": "",
    "conv_bn_relu": "",
    "linear_relu6": "",
    "dwsep": "",
    "encoder_layer": "",
    "nested_modules": "",
    "nested_region": "__main__.Blk",
}
UNMARKED = {"silu__dyn_op26"}  # torch's decomposition of Swish left no metadata
# What says so first, where a rule has a variant by name.
TRUSTED = {
    "gelu__ts_modfn": "function torch.nn.modules.activation::GELU",
    "gelu__dyn_opt": "operator, in scope",
    "silu__dyn_opt": "scope torch.nn.modules.activation.SiLU layer, its body matched",
    "silu__ts": "structure",
    "hardswish__ts_modfn": "function torch.nn.modules.activation::Hardswish",
    "layernorm__ts_modfn": "function torch.nn.modules.normalization::LayerNorm",
    "conv_bn_relu__ts_modfn": "structure, in function __main__::Block",
    "nested_modules__ts_modfn": "operator, in function torch.nn.modules.linear::Linear",
}

Plans = Callable[..., Planned]


def work(planned: Planned) -> list[tuple[object, ...]]:
    """The kernel calls with their operands' types and shapes."""
    graph = apply(planned.view, planned.plan, planned.kernels)
    return [
        (c.kernel, [(n, graph.buffer[b].dtype, graph.buffer[b].shape) for n, b in (*c.operands, *c.results)])
        for c in graph.calls
    ]


def forms(shared: Path, module: str) -> list[str]:
    return sorted(p.stem for p in (shared / "torch_exports").glob(f"{module}__*.onnx"))


def word(form: str, cls: str) -> str:
    """What every call's evidence says where the file marks the class: by a function, else by metadata."""
    if not cls or form in UNMARKED:
        return ""
    if "__ts_modfn" in form:
        return "function " + "::".join(cls.rsplit(".", 1))
    return "" if form.endswith("__ts") else f"scope {cls}"


@pytest.fixture(scope="module")
def planned(shared: Path, planner: Plans) -> Callable[[str], Planned]:  # noqa: F811
    """The plan of a file, each made once."""
    template = planner(read_model(shared / "torch_exports" / "softmax__dyn_opt.onnx"))  # for the rules and kernels

    def find(name: str) -> Planned:
        return plan(source(shared, name), template.rules, template.kernels, check=answers)

    return cache(find)


def source(shared: Path, name: str) -> Model:
    return read_model(shared / "torch_exports" / f"{name}.onnx")


Files = Callable[[str], Planned]


@pytest.mark.shared
@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_form_gives_the_same_plan(shared: Path, planned: Files, module: str) -> None:
    first, *others = forms(shared, module)
    assert others
    for form in (first, *others):
        found = planned(form)
        assert work(found) == work(planned(first)), form
        for c in found.plan.chosen:
            assert word(form, MODULES[module]) in c.evidence, (form, c.rule, c.evidence)
        assert found.closed == frozenset(), form
        assert found.matches.notes == (), form


@pytest.mark.shared
@pytest.mark.parametrize("form", sorted(TRUSTED))
def test_the_most_trusted_evidence_is_told(planned: Files, form: str) -> None:
    assert planned(form).plan.chosen[0].evidence.startswith(TRUSTED[form])


@pytest.mark.shared
@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_form_computes_what_torch_did(shared: Path, planned: Files, module: str) -> None:
    """onnxruntime rejects some of torch's files of opset 23 and newer; torch's own answers lie beside them."""
    for form in forms(shared, module):
        found = planned(form)
        graph = apply(found.view, found.plan, found.kernels)
        inputs, expected = recorded(shared / "torch_exports" / f"{form}.npz", graph)
        if not expected:
            expected = answers(found.model.proto, inputs)
        values = run_reference(graph, found.kernels, inputs)
        for name, value in expected.items():
            np.testing.assert_allclose(values[name], value, rtol=1e-4, atol=1e-5, err_msg=form)


def recorded(path: Path, graph: FusedGraph) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Inputs and outputs by name, as torch had them; random inputs and no outputs where there is no such file."""
    if not path.exists():
        return random_inputs(graph), {}
    with np.load(path) as file:
        inputs = {name: file[f"in{k}"] for k, name in enumerate(graph.inputs)}
        return inputs, {name: file[f"out{k}"] for k, name in enumerate(graph.outputs)}


@pytest.mark.shared
@pytest.mark.parametrize("module", sorted(MODULES))
def test_outlined_models_give_the_plan_of_the_plain_ones(shared: Path, planned: Files, module: str) -> None:
    """gap_fuse.export.outline, so fusion_friendly_export: the same calls, each with the function it lies in."""
    marked = [f for f in forms(shared, module) if "__ts" not in f and f not in UNMARKED]
    for form in marked:
        plain = planned(form)
        outlined = outline(source(shared, form).proto, ["torch.nn.modules.*", "__main__.*"])
        found = plan(read_model(outlined.model), plain.rules, plain.kernels, check=answers)
        assert outlined.calls, form
        assert work(found) == work(plain), form
        assert found.matches.notes == (), form
        for c in found.plan.chosen:
            assert "function " + "::".join(MODULES[module].rsplit(".", 1)).strip(":") in c.evidence, (form, c.evidence)


@pytest.mark.shared
def test_a_transformers_layer_says_which_part_each_call_is(planned: Files) -> None:
    found = planned("encoder_layer__dyn_opt")
    places = {(call.kernel, c.evidence.rpartition("scope ")[2]) for c in found.plan.chosen for call in c.calls or ()}
    for part in (
        ("attention_f32", "torch.nn.modules.activation.MultiheadAttention self_attn"),
        ("layernorm_f32", "torch.nn.modules.normalization.LayerNorm norm1"),
        ("layernorm_f32", "torch.nn.modules.normalization.LayerNorm norm2"),
    ):
        assert part in places


@pytest.mark.shared
def test_the_report_names_the_module(shared: Path) -> None:
    report = str(compile_model(shared / "torch_exports" / "gru__dyn_opt.onnx").report)
    assert "operator, in scope torch.nn.modules.rnn.GRU rnn" in report


@pytest.mark.shared
def test_functions_of_jax_are_opened_and_named(planned: Files) -> None:
    """custom.Blk.1::Blk and custom.Blk.2::Blk are opened; each call says in which it lies."""
    found = planned("jax2onnx_fn")
    inside = {c.evidence.rpartition("in function ")[2] for c in found.plan.chosen if "in function" in c.evidence}
    assert inside == {"custom.Blk.1::Blk Blk_1", "custom.Blk.2::Blk Blk_2"}


@pytest.mark.shared
def test_scopes_are_named_in_a_fused_model_too(planned: Files) -> None:
    found = planned("encoder_layer__dyn_opt")
    again = plan(read_model(fuse_model(found)), found.rules, found.kernels, check=answers)
    assert calls(again) == calls(found)
