"""The edges of what can be asked: empty graphs and tensors, odd --dim, no compiler, targets without a port."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from gap_fuse.cli import main
from tests.conftest import ROOT
from tests.door.test_command import command, onnx_text, refused


def _model(folder: Path, text: str) -> str:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), path)
    return str(path)


def _command(*words: str) -> Result:
    done = CliRunner().invoke(main, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


RELU = "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }"


def test_a_graph_without_nodes_is_named(tmp_path: Path) -> None:
    """Its output was its input: compiling ended in a KeyError, and without outputs in a folder that verify refused."""
    port = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    for ports, word in (([port], "`x` is its input"), ([], "no outputs")):
        model = helper.make_model(helper.make_graph([], "g", ports, ports))
        with pytest.raises(GapFuseError, match=word):
            gap_fuse.compile(model)
    onnx.save(model, tmp_path / "m.onnx")
    done = _command("compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert f"{tmp_path / 'm.onnx'}: error:" in done.output


def test_an_input_of_no_elements_says_so(tmp_path: Path) -> None:
    model = _model(tmp_path, "g (float[1,0] x) => (float[1,0] y) { y = Relu(x) }")
    done = _command("compile", model, "-o", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "axis 1 of input `x` has extent 0" in done.output
    assert "--dim x:1=N" in done.output


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        (["N=2", "N=3"], "--dim N is given 2 values"),
        (["N=99999999999999999999"], "dimension `N` cannot be 99999999999999999999"),
        (["N=0"], "not NAME=VALUE with a positive whole number"),
        (["N=-1"], "not NAME=VALUE"),
        (["=2"], "not NAME=VALUE"),
        (["N"], "not NAME=VALUE"),
        (["N=2", "x:1=4"], "axis 1 of input `x` is fixed at 3"),
        (["M=2"], "no dimension is called `M`"),
        (["N=999999999"], "too small"),
    ],
)
def test_dims_that_cannot_be(tmp_path: Path, dims: list[str], words: str) -> None:
    options = [w for d in dims for w in ("--dim", d)]
    done = _command("compile", _model(tmp_path, RELU), "-o", str(tmp_path / "out"), *options)
    assert done.exit_code == 2
    assert words in done.output


def test_an_l3_that_is_too_small_names_the_option_that_helps(tmp_path: Path) -> None:
    """A MobileNetV2 of 14 MB was told the size of L3 that it needs, and no option could say it."""
    text = "g (float[1,64] x, float[64,64] w) => (float[1,64] y) { y = MatMul(x, w) }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w"))
    del model.graph.input[1]
    onnx.save(model, tmp_path / "m.onnx")
    words = ("compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"))
    done = _command(*words, "--l3", "64")
    assert done.exit_code == 2
    least = re.search(r"\(--l3 (\d+)\)", done.output)
    assert least is not None
    assert _command(*words, "--l3", least[1]).exit_code == 0


def test_the_same_dim_twice_is_one(tmp_path: Path) -> None:
    done = _command("compile", _model(tmp_path, RELU), "-o", str(tmp_path / "out"), "--dim", "N=2", "--dim", "N=2")
    assert done.exit_code == 0, done.output


def test_a_target_without_a_port_is_said_in_the_summary(tmp_path: Path) -> None:
    words = ("compile", _model(tmp_path, RELU), "-o", str(tmp_path / "out"), "--dim", "N=2")
    assert "target gap8 has no port yet" in _command(*words, "--target", "gap8").output
    assert "no port" not in _command(*words).output


def test_make_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gap_fuse.compile(_model(tmp_path, RELU), dims={"N": 1}).write(tmp_path / "out")
    make = shutil.which("make")
    assert make is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "make").symlink_to(make)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CC", raising=False)
    done = _command("verify", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "`gcc` is not installed: the C cannot be built" in done.output
    assert "apt-get install gcc" in done.output


def test_a_kernel_of_ones_own_takes_the_place_of_a_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", "-O1")
    mine = tmp_path / "kernels" / "flip_sign"
    shutil.copytree(ROOT / "kernels" / "flip_sign", mine)
    source = mine / "flip_sign_i8.c"
    source.write_text("/* mine */\n" + source.read_text())
    model = _model(tmp_path, "g (uint8[2,8] x) => (uint8[2,8] y) <float s = {0.1}, uint8 z = {128}> {"
                             " d = DequantizeLinear(x, s, z) r = Relu(d) y = QuantizeLinear(r, s, z) }")  # fmt: skip
    out = tmp_path / "out"
    done = _command("compile", model, "-o", str(out), "--kernels", str(tmp_path / "kernels"))
    assert done.exit_code == 0, done.output
    assert f"kernel flip_sign_i8 of {mine} overrides the one of" in done.output
    assert any(p.read_text().startswith("/* mine */") for p in out.rglob("flip_sign_i8.c"))
    assert _command("verify", str(out), "--samples", "1").exit_code == 0


def test_checking_a_folder_that_is_absent_counts_no_rules(tmp_path: Path) -> None:
    done = _command("rules", "check", str(tmp_path / "nodir"))
    assert done.exit_code == 2
    assert "0 rules, 1 error" in done.output


def test_values_print_in_a_line(tmp_path: Path) -> None:
    result = gap_fuse.compile(_model(tmp_path, RELU), dims={"N": 1})
    assert repr(result.planned) == "Planned('model', 1 node, 1 candidate chosen)"


@pytest.mark.parametrize("terminal", [True, False])
def test_long_verification_shows_a_bar_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    gap_fuse.compile(_model(tmp_path, RELU), dims={"N": 1}).write(tmp_path / "out")
    monkeypatch.setenv("OPT", "-O1")
    monkeypatch.setattr("gap_fuse.progress.QUIET_SECONDS", -1.0)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    assert gap_fuse.verify(tmp_path / "out").passed
    out, err = capsys.readouterr()
    assert ("verifying" in err) is terminal
    assert out == ""


def test_help_loads_neither_numpy_nor_onnx() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from gap_fuse.cli import main;"
        "assert CliRunner().invoke(main, ['compile', '--help']).exit_code == 0;"
        "print(sorted({'numpy', 'onnx', 'onnxruntime', 'ortools', 'rich', 'yaml'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]", "a command's module may import these inside its function alone"


def test_the_package_knows_its_names() -> None:
    assert set(gap_fuse.__all__) <= set(dir(gap_fuse))
    with pytest.raises(AttributeError, match="no attribute `compiled`"):
        gap_fuse.compiled  # noqa: B018


@pytest.mark.parametrize(("value", "said"), [(np.nan, "64 NaN"), (np.inf, "64 Inf")])
def test_samples_without_a_finite_number(tmp_path: Path, value: float, said: str) -> None:
    """`quantize` gave advice about a Python function, and no place."""
    text = "t (float[1,16] x) => (float[1,16] y) <float[1,16] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> { y = Mul(x, w) }"
    model = onnx_text(tmp_path / "m.onnx", f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    x = np.full((4, 1, 16), value, np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    arguments = ("quantize", model, "--inputs", tmp_path / "x.npz", "-o", tmp_path / "q.onnx")
    refusal = refused(*arguments)
    assert f"x.npz: error: the range of tensor 'x' is not known: no finite number, {said}" in refusal
    assert "quantizer.activations" not in refusal
    x[1:] = 1.0
    np.savez(tmp_path / "x.npz", x=x)
    done = command(*arguments)
    assert done.exit_code == 0, done.output
    assert "note: of x only finite values count: 48 in [1, 1]" in done.stdout
