"""The command as its users meet it: what it prints, what it writes, its exit codes, and what it says of bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from gap_fuse.cli import main

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
INT8, FP32, IMAGES = DIGITS / "digits_int8.onnx", DIGITS / "digits_fp32.onnx", DIGITS / "test_images.npz"

SQUARED_RELU = """
<ir_version: 8, opset_import: ["" : 17]>
squared_relu (float[2,3,40] x) => (float[2,3,40] y) {
  r = Relu(x)
  y = Mul(r, r)
}
"""
RULE = """\
rule: squared_relu
summary: Relu squared, one pass.
given: {x: "float32[*S]"}
match:
  - variant: plain
    pattern: |
      r = Relu(x)
      y = r * r
emit:
  - {kernel: squared_relu_f32, args: {x: x}}
"""
KERNEL = """\
kernel: squared_relu_f32
summary: max(x, 0) squared.
signature:
  inputs: {x: "float32[*S]"}
  outputs: {y: "float32[*S]"}
semantics: reference.py:squared_relu_f32
axes: {i: "*S"}
access: |
  x[i]
  y[i]
implementations:
- {name: portable, source: squared_relu_f32.c, symbol: my_squared_relu, rank: 1, orders: {x: any, y: "same:x"}, team: i,
   cycles: 20 + ceil(i0 / cores)}
"""
REFERENCE = """\
import numpy as np


def squared_relu_f32(x):
    r = np.maximum(x, np.float32(0))
    return r * r
"""
SOURCE = """\
#include "my_squared_relu_args.h"

void my_squared_relu(const void *args) {
  const my_squared_relu_args *a = args;
  const gf_range r = gf_share(a->i[0]);
  for (int32_t j = r.begin; j < r.end; j++) {
    const float v = a->x[j * a->x_s[0]];
    a->y[j * a->y_s[0]] = v > 0.0f ? v * v : 0.0f;
  }
}
"""


def command(*arguments: object) -> Result:
    """The command in this process; an exception other than its exit fails the test."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*arguments: object) -> str:
    """What a refused command says: exit code 2, a paragraph that names an error, no traceback."""
    result = command(*arguments)
    assert result.exit_code == 2, result.output
    assert "error" in result.stderr.lower()
    assert "Traceback" not in result.output
    assert len(result.stderr.splitlines()) <= 12
    return result.stderr


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped int8 network, compiled; its path has a space and an umlaut."""
    folder = tmp_path_factory.mktemp("door") / "größe und raum" / "out"
    result = command("compile", INT8, "-o", folder)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def copied(compiled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compiled, tmp_path / "copy", ignore=shutil.ignore_patterns("build*")))


def onnx_text(path: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(text), path)
    return path


# ---- what each command does ----


def test_verify_passes_on_what_compile_wrote(compiled: Path) -> None:
    result = command("verify", compiled, "--inputs", IMAGES, "--samples", 8)
    assert result.exit_code == 0, result.output
    assert "verified on 8 samples" in result.output
    assert "accuracy: model" in result.output


def test_verify_fails_when_a_weight_is_another(copied: Path) -> None:
    image = bytearray((copied / "weights.bin").read_bytes())
    image[len(image) // 3] ^= 0x40
    (copied / "weights.bin").write_bytes(image)
    result = command("verify", copied, "--samples", 2)
    assert result.exit_code == 1, result.output
    assert "C and reference differ" in result.output
    assert "FAILED" in result.output


def test_run_writes_the_outputs(compiled: Path, tmp_path: Path) -> None:
    result = command("run", compiled, "--inputs", IMAGES, "-o", tmp_path / "out.npz")
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "out.npz") as z, np.load(IMAGES) as images:
        assert list(z) == ["digit"]
        classes = z["digit"].reshape(len(images["labels"]), -1).argmax(1)
        assert np.mean(classes == images["labels"]) > 0.9


def test_fused_model_is_valid_and_answers_the_same(tmp_path: Path) -> None:
    assert command("fuse", INT8, "-o", tmp_path / "fused.onnx").exit_code == 0
    onnx.checker.check_model(tmp_path / "fused.onnx", full_check=True)
    with np.load(IMAGES) as z:
        name = onnx.load(INT8).graph.input[0].name
        image = z[name][:1].astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    answers = [
        onnxruntime.InferenceSession(str(p), options).run(None, {name: image})[0]
        for p in (INT8, tmp_path / "fused.onnx")
    ]
    np.testing.assert_array_equal(*answers)


def test_explain_names_rules_and_reasons() -> None:
    every = command("explain", INT8)
    assert every.exit_code == 0
    assert "by rule conv2d" in every.output
    assert "fired" in command("explain", INT8, "--rule", "conv2d").output
    assert "taken by" in command("explain", INT8, "--node", "Conv").output
    assert "Conv" in refused("explain", INT8, "--node", "Konv")
    assert "conv2d" in refused("explain", INT8, "--rule", "conv3d")


def test_shipped_rules_are_right() -> None:
    result = command("rules", "check")
    assert result.exit_code == 0, result.output
    assert result.output.rstrip().endswith("0 errors")


@pytest.mark.parametrize(
    ("wrong", "right", "word"),
    [
        ("Rellu(x)", "Relu(x)", "Rellu"),
        ("kernel: squared_relu_f23", "kernel: squared_relu_f32", "squared_relu_f23"),
        ("sumary:", "summary:", "sumary"),
        ("args: {x: q}", "args: {x: x}", "q"),
        ("y = r * * r", "y = r * r", "*"),
    ],
)
def test_a_mistake_in_a_rule_has_its_place(wrong: str, right: str, word: str, tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    path = rules / "squared_relu.yaml"
    assert command("rules", "check", path, "--kernels", kernels).exit_code == 0
    path.write_text(RULE.replace(right, wrong))
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if wrong in text)
    said = refused("rules", "check", path, "--kernels", kernels)
    assert f"squared_relu.yaml:{line}" in said
    assert word in said


# ---- a user's own rule and kernel ----


def own_rooms(folder: Path) -> tuple[Path, Path]:
    """A folder of rules and one of kernels, as a user writes them."""
    rules, kernels = folder / "my rules", folder / "my kernels"
    (kernels / "squared_relu").mkdir(parents=True)
    rules.mkdir()
    (rules / "squared_relu.yaml").write_text(RULE)
    (kernels / "squared_relu" / "kernel.yaml").write_text(KERNEL)
    (kernels / "squared_relu" / "reference.py").write_text(REFERENCE)
    (kernels / "squared_relu" / "squared_relu_f32.c").write_text(SOURCE)
    return rules, kernels


def test_own_rule_and_kernel_are_used_and_verified(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    model = onnx_text(tmp_path / "m.onnx", SQUARED_RELU)
    result = command("compile", model, "-o", tmp_path / "out", "--rules", rules, "--kernels", kernels)
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [(c["kernel"], c["rule"]) for c in report["calls"]] == [("squared_relu_f32", "squared_relu")]
    verdict = command("verify", tmp_path / "out")
    assert verdict.exit_code == 0, verdict.output


def test_own_rule_of_a_shipped_name_replaces_it_with_a_note(tmp_path: Path) -> None:
    rules, kernels = own_rooms(tmp_path)
    (rules / "squared_relu.yaml").write_text(RULE.replace("rule: squared_relu", "rule: clamp"))
    model = onnx_text(tmp_path / "m.onnx", SQUARED_RELU)
    result = command("compile", model, "-o", tmp_path / "out", "--rules", rules, "--kernels", kernels)
    assert result.exit_code == 0, result.output
    assert "note" in result.output
    assert "clamp" in result.output


def test_own_target_folder_is_found_again_by_verify(tmp_path: Path) -> None:
    target = shutil.copytree(ROOT / "targets" / "host", tmp_path / "my target")
    assert command("compile", FP32, "-o", tmp_path / "out", "--target", target).exit_code == 0
    verdict = command("verify", tmp_path / "out", "--samples", 1)
    assert verdict.exit_code == 0, verdict.output


# ---- bad input ----


@pytest.mark.parametrize("content", [b"hello\n", b"", FP32.read_bytes()[:2000]], ids=["text", "empty", "cut off"])
@pytest.mark.parametrize("name", ["compile", "fuse", "explain"])
def test_not_an_onnx_file(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    output = {"compile": ["-o", tmp_path / "out"], "fuse": ["-o", tmp_path / "out.onnx"]}.get(name, [])
    assert "not an ONNX file" in refused(name, tmp_path / "m.onnx", *output)


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile", "MISSING", "-o", "out"],
        ["compile", FP32, "-o", "out", "--rules", "MISSING"],
        ["compile", FP32, "-o", "out", "--kernels", "MISSING"],
        ["compile", FP32, "-o", "out", "--target", "MISSING"],
        ["fuse", "MISSING", "-o", "out.onnx"],
        ["explain", "MISSING"],
        ["rules", "check", "MISSING"],
        ["rules", "check", "--kernels", "MISSING"],
        ["verify", "MISSING"],
        ["run", "MISSING", "--inputs", IMAGES, "-o", "out.npz"],
    ],
    ids=lambda a: " ".join(str(getattr(x, "name", x)) for x in a),
)
def test_a_missing_file_is_named(arguments: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "MISSING" in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_unsupported_operator_is_named_with_the_nearest_rules(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> t (float[2,3] x) => (float[2,3] y) { y = CumSum(x, <int64 {1}>) }'
    text = text.replace("CumSum(x, <int64 {1}>)", "Hardmax(x)")
    said = refused("compile", onnx_text(tmp_path / "m.onnx", text), "-o", tmp_path / "out")
    assert "Hardmax" in said
    prelu = '<ir_version: 8, opset_import: ["" : 17]> t (double[2,3] x) => (double[2,3] y) { y = Softmax(x) }'
    said = refused("compile", onnx_text(tmp_path / "p.onnx", prelu), "-o", tmp_path / "out")
    assert "rule softmax" in said
    assert "declined" in said


def test_dynamic_dimension_without_a_value(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> t (float[N,3] x) => (float[N,3] y) { y = Relu(x) }'
    model = onnx_text(tmp_path / "m.onnx", text)
    assert "--dim N=" in refused("compile", model, "-o", tmp_path / "out")
    assert "M" in refused("compile", model, "-o", tmp_path / "out", "--dim", "M=2")
    for bad in ("N", "N=", "N=x", "N=-1", "=2"):
        assert "--dim" in refused("compile", model, "-o", tmp_path / "out", "--dim", bad)
    assert command("compile", model, "-o", tmp_path / "out", "--dim", "N=2").exit_code == 0


def test_external_data_missing(tmp_path: Path) -> None:
    onnx.save(onnx.load(FP32), tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=16)
    assert command("compile", tmp_path / "m.onnx", "-o", tmp_path / "out").exit_code == 0
    (tmp_path / "m.data").unlink()
    assert "m.data" in refused("compile", tmp_path / "m.onnx", "-o", tmp_path / "out2")


def test_npz_of_wrong_names_shapes_and_kinds(compiled: Path, tmp_path: Path) -> None:
    name = onnx.load(INT8).graph.input[0].name
    shape = [d.dim_value for d in onnx.load(INT8).graph.input[0].type.tensor_type.shape.dim]
    path = tmp_path / "s.npz"
    np.savez(path, elsewhere=np.zeros(shape, np.float32))
    assert name in refused("verify", compiled, "--inputs", path)
    np.savez(path, **{name: np.zeros((2, 2), np.float32)})
    assert "shape" in refused("verify", compiled, "--inputs", path)
    np.savez(path, **{name: np.zeros(shape, np.float64)})
    assert "float64" in refused("run", compiled, "--inputs", path, "-o", tmp_path / "o.npz")
    path.write_bytes(b"PK\x03\x04 not a zip")
    assert "npz" in refused("verify", compiled, "--inputs", path)
    assert "s2.npz" in refused("verify", compiled, "--inputs", tmp_path / "s2.npz")
    assert "npz" in refused("verify", compiled, "--inputs", tmp_path)


def test_compiler_absent(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "nonexistent-cc")
    assert "nonexistent-cc" in refused("verify", copied)
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "not installed" in refused("verify", copied)


def test_output_that_cannot_be_written(compiled: Path, tmp_path: Path) -> None:
    """A file in the way: these tests may run as root, whom permissions do not stop."""
    (tmp_path / "file").touch()
    assert "file" in refused("compile", FP32, "-o", tmp_path / "file")
    assert "file" in refused("compile", FP32, "-o", tmp_path / "file" / "out")
    assert "file" in refused("fuse", FP32, "-o", tmp_path / "file" / "x.onnx")
    assert "file" in refused("run", compiled, "--inputs", IMAGES, "-o", tmp_path / "file" / "x.npz")


def test_memory_too_small_says_how_much_would_do(tmp_path: Path) -> None:
    said = refused("compile", FP32, "-o", tmp_path / "out", "--l1", 64)
    assert "smallest L1 that would do is" in said
    enough = int(said.rpartition("--l1 ")[2].rstrip(")\n"))
    assert command("compile", FP32, "-o", tmp_path / "out", "--l1", enough).exit_code == 0
    assert "smallest L2" in refused("compile", FP32, "-o", tmp_path / "out2", "--l2", 64)


@pytest.mark.parametrize(
    "name", ["gap-fuse.json", "graph.json", "report.json", "model.onnx", "fused.onnx", "network.c"]
)
def test_a_compiled_folder_with_a_file_missing_or_spoilt(name: str, copied: Path) -> None:
    (copied / name).write_bytes(b"{}")
    refused_long("verify", copied)
    (copied / name).unlink()
    refused_long("verify", copied)


def refused_long(*arguments: object) -> None:
    """As `refused`, with the compiler's own words after the paragraph."""
    result = command(*arguments)
    assert (result.exit_code, "Traceback" in result.output) == (2, False), result.output


# ---- anything at all ----


@settings(max_examples=20)
@given(st.binary(max_size=64), st.integers(0, 10**6), st.sampled_from(["model", "rule", "kernel", "target"]))
def test_spoilt_files_never_end_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int, what: str
) -> None:
    folder = tmp_path_factory.mktemp("spoilt")
    rules, kernels = own_rooms(folder)
    target = Path(shutil.copytree(ROOT / "targets" / "host", folder / "target"))
    files = {
        "model": onnx_text(folder / "m.onnx", SQUARED_RELU),
        "rule": rules / "squared_relu.yaml",
        "kernel": kernels / "squared_relu" / "kernel.yaml",
        "target": target / "target.yaml",
    }
    sound = files[what].read_bytes()
    place = at % (len(sound) + 1)
    files[what].write_bytes(sound[:place] + junk + sound[place + len(junk) :])
    options = ["--rules", rules, "--kernels", kernels, "--target", target]
    result = command("compile", files["model"], "-o", folder / "out", *options)
    assert result.exit_code in (0, 2), result.output


# ---- the process ----


def test_module_runs_from_another_directory(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "gap_fuse"]
    done = subprocess.run(
        [*program, "compile", str(FP32), "-o", "out"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "network.c").is_file()


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, gap_fuse.cli; print([m for m in ('onnxruntime', 'ortools', 'rich') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip() == "[]"
