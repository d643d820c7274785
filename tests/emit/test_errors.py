"""What the emitter refuses, and how it says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from fusion_engine.diagnostics import GapFuseError
from fusion_engine.graph import Alias, Buffer, Call, FusedGraph, Provenance
from fusion_engine.kernels import load_kernels
from tests.conftest import ROOT
from tiler import emit, load_target, schedule
from tiler.emit.tree import constant_value


def _negate(expr: str, shape: tuple[int, ...] = (4,)) -> FusedGraph:
    call = Call("call", "map_f32", (("x0", "x"),), (("y", "y"),), (("expr", expr),), Provenance("r", "v", "", ()))
    buffers = (Buffer("x", "float32", shape), Buffer("y", "float32", shape))
    return FusedGraph("g", buffers, (call,), ("x",), ("y",))


def _emit(graph: FusedGraph, kernels_folder: Path) -> dict[str, bytes]:
    kernels = load_kernels([kernels_folder])
    target = load_target(ROOT / "targets" / "host")
    return dict(emit(graph, kernels, schedule(graph, kernels, target), target).files)


def test_generated_functions_of_different_attributes_are_different_files() -> None:
    kernels = ROOT / "kernels"
    first, second = (
        {n for n in _emit(_negate(e), kernels) if n.startswith("kernels/map_f32/gf_")} for e in ("neg(x0)", "abs(x0)")
    )
    assert len(first) == len(second) == 1
    assert first != second


def test_a_failing_generator_is_named() -> None:
    with pytest.raises(GapFuseError, match=r"map\.py.*`generate` failed"):
        _emit(_negate("no_such_function(x0)"), ROOT / "kernels")


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    shutil.copytree(ROOT / "kernels" / "common", folder / "common")
    shutil.copytree(ROOT / "kernels" / "flip_sign", folder / "flip_sign")
    call = Call("c", "flip_sign_i8", (("x", "x"),), (("y", "y"),), (), Provenance("r", "v", "", ()))
    kernel = load_kernels([folder])["flip_sign_i8"]
    dtypes = (kernel.inputs[0].dtype, kernel.outputs[0].dtype)
    graph = FusedGraph("g", (Buffer("x", dtypes[0], (4,)), Buffer("y", dtypes[1], (4,))), (call,), ("x",), ("y",))
    kernels = load_kernels([folder])
    target = load_target(ROOT / "targets" / "host")
    timetable = schedule(graph, kernels, target)
    source = kernel.implementations[0].source
    assert source is not None
    (folder / "flip_sign" / source).unlink()
    with pytest.raises(GapFuseError, match=f"{source}.*cannot be read"):
        emit(graph, kernels, timetable, target)


def test_more_axes_than_the_runtime_has() -> None:
    with pytest.raises(GapFuseError, match="9 axes"):
        _emit(_negate("neg(x0)", (1,) * 8 + (4,)), ROOT / "kernels")


def test_a_computed_buffer_is_no_constant() -> None:
    with pytest.raises(GapFuseError, match="`y` is packed as a constant"):
        constant_value(_negate("neg(x0)"), "y")


def test_a_view_of_a_constant_is_one() -> None:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    buffers = (
        Buffer("c", "float32", (3, 4), order=(1, 0), data=data),
        Buffer("t", "float32", (2, 3), alias=Alias("u", perm=(1, 0))),
        Buffer("u", "float32", (3, 2), alias=Alias("c", start=(0, 1), step=(1, 2))),
    )
    graph = FusedGraph("g", buffers, (), (), ())
    np.testing.assert_array_equal(constant_value(graph, "t"), data[:, 1::2].T)
