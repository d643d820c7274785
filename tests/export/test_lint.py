"""gap-fuse lint and outline: what marks there are, what a tool lost, what an exporter could add."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import onnx.version_converter
import pytest
from click.testing import CliRunner, Result

from gap_fuse.cli import main
from gap_fuse.linting import lint, losses, marks_of
from gap_fuse.oracle import prepared
from quantizer import annotate, constant_statistics

MODEL = """<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
g (float[2,6] x) => (float[2,6] y) {
  ["block/Tanh"] h = Tanh(x)
  ["block/Op"] t = my.Op(h)
  y = Neg(t)
}
<domain: "my", opset_import: ["" : 20]> Op (a) => (b) { b = Relu(a) }
"""


def marked() -> onnx.ModelProto:
    model = annotate(onnx.parser.parse_model(MODEL), {"h": constant_statistics(np.ones((2, 6), np.float32))})
    node = model.graph.node[0]
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'block', 'tanh']")
    node.metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value="['net.Net', 'net.Block', 'aten.tanh']")
    note = model.graph.quantization_annotation.add(tensor_name="x")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.5), "s"))
    return model


def test_marks_are_counted() -> None:
    marks = marks_of(marked())
    assert (marks.opset, marks.nodes, marks.values) == (20, 4, 4)
    assert marks.functions == {"my::Op": 1}
    assert marks.classes == {"net.Block": 1, "net.Net": 1}
    assert (marks.scoped, marks.named, marks.statistics, marks.ranges, marks.annotations) == (1, 2, 1, 1, 1)


def test_what_a_tool_lost_is_said_and_what_it_kept_is_not() -> None:
    before = marked()
    assert not list(losses(marks_of(before), marks_of(before)))
    bare = onnx.inliner.inline_local_functions(before)
    for entry in (*bare.graph.node, *bare.graph.input, *bare.graph.value_info, *bare.graph.output):
        del entry.metadata_props[:]
    del bare.graph.quantization_annotation[:]
    text = "\n".join(lint(before, bare).lost)
    for part in (
        "functions: my::Op gone (1 call)",
        "module scopes: all 1 gone",
        "statistics: all 1 gone",
        "annotation",
    ):
        assert part in text


# ---- real tools ----


def converted(before: Path, after: Path) -> None:
    onnx.save(onnx.version_converter.convert_version(onnx.load(before), 21), after)


def saved_by_onnxruntime(before: Path, after: Path) -> None:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.optimized_model_filepath = str(after)
    options.log_severity_level = 4
    ort.InferenceSession(str(before), options, providers=["CPUExecutionProvider"])


def inlined(before: Path, after: Path) -> None:
    onnx.save(onnx.inliner.inline_local_functions(onnx.load(before)), after)


def simplified(before: Path, after: Path) -> None:
    onnxsim = pytest.importorskip("onnxsim", reason="onnxsim is absent: what it loses is not tested")
    onnx.save(onnxsim.simplify(onnx.load(before))[0], after)


def slimmed(before: Path, after: Path) -> None:
    onnxslim = pytest.importorskip("onnxslim", reason="onnxslim is absent: what it loses is not tested")
    onnx.save(onnxslim.slim(onnx.load(before)), after)


def optimised(before: Path, after: Path) -> None:
    optimizer = pytest.importorskip("onnxoptimizer", reason="onnxoptimizer is absent: what it loses is not tested")
    onnx.save(optimizer.optimize(onnx.load(before)), after)


def copied(before: Path, after: Path) -> None:
    after.write_bytes(before.read_bytes())


TOOLS = (converted, saved_by_onnxruntime, inlined, simplified, slimmed, optimised, copied)


@pytest.mark.parametrize("tool", TOOLS)
def test_each_loss_of_a_real_tool_is_named_and_nothing_else(tmp_path: Path, tool: Callable[[Path, Path], None]) -> None:
    onnx.save(marked(), tmp_path / "before.onnx")
    tool(tmp_path / "before.onnx", tmp_path / "after.onnx")
    after = onnx.load(tmp_path / "after.onnx")
    graph = after.graph
    infos = (*graph.input, *graph.value_info, *graph.output)
    kept = {
        "functions: my::Op gone": any(n.op_type == "Op" for n in graph.node) and bool(after.functions),
        "nodes with the exporter's module scopes": any(p.key.endswith("name_scopes") for p in metadata(graph.node)),
        "values with statistics": any(p.key.startswith("tensor_statistics.") for p in metadata(infos)),
        "quantization_annotation entries": bool(graph.quantization_annotation),
    }
    lost = command("lint", str(tmp_path / "before.onnx"), "--after", str(tmp_path / "after.onnx")).output
    said = {text: f"lost: {text}" in lost for text in kept}
    assert said == {text: not there for text, there in kept.items()}, (kept, lost)
    assert (tool is copied) == all(kept.values())


def metadata(
    entries: Iterable[onnx.NodeProto] | Iterable[onnx.ValueInfoProto],
) -> Iterator[onnx.StringStringEntryProto]:
    return (p for e in entries for p in e.metadata_props)


def test_advice_names_what_has_no_kernel() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 20]> g (float[2,3] x) => (float[2,3] y) { h = Det(x)  y = Relu(x) }"""
    )
    model.graph.node[0].op_type = "Softsign"
    model.graph.output[0].name = "h"
    del model.graph.node[1]
    advice = "\n".join(lint(model).advice)
    assert "no functions and no module scopes" in advice
    assert "no statistics and no ranges" in advice


def test_the_command_prints_and_gives_json(tmp_path: Path) -> None:
    onnx.save(marked(), tmp_path / "m.onnx")
    text = command("lint", str(tmp_path / "m.onnx")).output
    assert "functions    my::Op x1" in text
    found = json.loads(command("lint", str(tmp_path / "m.onnx"), "--json").output)
    assert found["marks"]["functions"] == {"my::Op": 1}
    assert command("lint", str(tmp_path / "absent.onnx")).exit_code == 2


def test_the_command_outlines_by_node_names(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    args = ("outline", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "o.onnx"), "--keep", "my.nn::Block=block")
    assert "1 call of 2 functions" in command(*args).output
    model = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(model, full_check=True)
    x = np.ones((2, 6), np.float32)
    assert np.array_equal(prepared(model)({"x": x})["y"], -np.maximum(np.tanh(x), 0))


@pytest.mark.parametrize("form", ["dyn_opt", "ts_modfn", "ts"])
def test_exported_modules_lint(shared: Path, form: str) -> None:
    marks = lint(shared / "torch_exports" / f"gru__{form}.onnx").marks
    assert bool(marks.scoped) == (form == "dyn_opt")
    assert ("torch.nn.modules.rnn::GRU" in marks.functions) == (form == "ts_modfn")


def command(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def test_a_keep_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    result = command("outline", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "o.onnx"), "--keep", "zzz.*")
    assert result.exit_code == 2
    assert "no instance matches zzz.*" in result.output


@pytest.mark.parametrize("reads", ["x", "a"])
def test_a_cycle_is_an_error_that_names_its_nodes(reads: str, tmp_path: Path) -> None:
    """It stood among the advice, as a node without a kernel, and the command ended with 0."""
    wanted = {"x": "`n1` (Add) reads `n2` (Relu) reads `n1` (Add)", "a": "`n1` (Add) reads `n1` (Add)"}[reads]
    nodes = [onnx.helper.make_node("Add", [reads, "b" if reads == "x" else "x"], ["a"], name="n1")]
    nodes.append(onnx.helper.make_node("Relu", ["a"], ["b"], name="n2"))
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [3]) for n in ("x", "a")]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    (tmp_path / "m.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    done = CliRunner().invoke(main, ["lint", str(tmp_path / "m.onnx")])
    assert done.exit_code == 2
    assert f"error: the graph has a cycle: node {wanted}" in done.output
