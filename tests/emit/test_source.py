"""The emitted network.c as text: what it may not hold, hostile names, and plans broken on purpose."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.kernels import load_kernels
from tests.conftest import ROOT
from tiler import Schedule, emit
from tiler.emit.args import args_header

HOSTILE = ('a"b\\', "*/ int x; /*", "línea\n#error", "%s??/", "")


def _network(names: tuple[str, ...] = ("x", "m", "conv", "y", "g")) -> onnx.ModelProto:
    """Conv, Relu, under the given names of input, middle, node, output and graph."""
    x, m, node, y, graph = names
    w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Conv", [x, "w"], [m], node, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Softmax", [m], [y], f"{node}.soft", axis=1),
    ]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, 9, 9]) for n, c in ((x, 3), (y, 4))]
    made = helper.make_graph(nodes, graph or "g", ports[:1], ports[1:], [w])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@cache
def _compiled() -> gap_fuse.Result:
    return gap_fuse.compile(_network(), l1=9000)


@pytest.mark.parametrize("name", ["digits_int8", "digits_fp32"])
def test_no_allocation_recursion_or_variable_arrays(name: str) -> None:
    text = gap_fuse.compile(ROOT / "examples" / "digits" / f"{name}.onnx", l1=2500).source.files["network.c"]
    code = re.sub(r"/\*.*?\*/", "", bytes(text).decode(), flags=re.S)
    assert not re.search(r"\b(malloc|calloc|realloc|free|alloca|goto)\b", code)
    for size in re.findall(r"^\s+(?:static )?(?:const )?\w+ \w+\[([^\]]*)\]", code, flags=re.M):
        assert re.fullmatch(r"\d*|[A-Z_0-9]+", size), size
    bodies = re.findall(r"^(?:static )?\w+ (\w+)\([^;{]*\) \{\n(.*?)^\}", code, flags=re.M | re.S)
    assert len(bodies) > 5
    known: set[str] = set()
    for function, body in bodies:  # each calls only what stands before it: no recursion
        called = set(re.findall(r"\b(\w+)\(", body)) & {f for f, _ in bodies}
        assert called <= known, function
        known.add(function)


@pytest.mark.parametrize("at", range(4))
def test_hostile_names_compile_and_verify(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", "-O1")
    base = ["x", "m", "conv", "y", "g"]
    for k in range(5):
        base[k] = f"{HOSTILE[at]}{k}"
    gap_fuse.compile(_network(tuple(base)), l1=9000).write(tmp_path)
    assert gap_fuse.verify(tmp_path, samples=1).passed


# ---- plans broken on purpose: each must be noticed ----


def _overlapping(s: Schedule) -> Schedule:
    """The result's L1 tile where the input's is."""
    call = s.calls[0]
    at = next(o.l1 for o in call.operands if o.operand.role == "in")
    operands = tuple(replace(o, l1=(at[0],) * len(o.l1)) if o.operand.role == "out" else o for o in call.operands)
    return replace(s, calls=(replace(call, operands=operands), *s.calls[1:]))


def _miscounted(s: Schedule) -> Schedule:
    call = s.calls[0]
    first, *rest = call.operands
    wrong = replace(first, transfers={**first.transfers, "l2_l1": first.transfers["l2_l1"] + 1})
    return replace(s, calls=(replace(call, operands=(wrong, *rest)), *s.calls[1:]))


def _thin_halo(s: Schedule) -> Schedule:
    """The input's far side one element off."""
    call = s.calls[0]
    operands = tuple(
        replace(o, operand=replace(o.operand, far_offset=o.operand.far_offset + 1)) if o.operand.role == "in" else o
        for o in call.operands
    )
    return replace(s, calls=(replace(call, operands=operands), *s.calls[1:]))


def _same_home(s: Schedule) -> Schedule:
    """Every activation at the address of the first."""
    lives = tuple(replace(r, offset=s.residencies[0].offset) for r in s.residencies)
    far = min(o.far for o in s.calls[0].operands)
    calls = tuple(replace(c, operands=tuple(replace(o, far=far) for o in c.operands)) for c in s.calls)
    return replace(s, residencies=lives, calls=calls)


def _low_peak(s: Schedule) -> Schedule:
    """L1 ends where the greatest call's scratch begins."""
    call = max(s.calls, key=lambda c: c.l1_bytes)
    assert call.scratch
    return replace(s, peaks={**s.peaks, "l1": min(at for at, _ in call.scratch.values())})


@pytest.mark.parametrize("broken", [_overlapping, _miscounted, _thin_halo, _same_home, _low_peak])
def test_a_broken_plan_is_noticed(tmp_path: Path, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", "-O1")
    good = _compiled()
    plan = broken(good.schedule)  # type: ignore[operator]
    assert plan != good.schedule
    source = emit(good.graph, good.kernels, plan, good.target)
    replace(good, schedule=plan, source=source).write(tmp_path)
    try:
        passed = gap_fuse.verify(tmp_path, samples=1).passed
    except GapFuseError as e:  # the hostile port stopped it
        assert "the C failed" in str(e)
    else:
        assert not passed


def test_the_plan_itself_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", "-O1")
    _compiled().write(tmp_path)
    assert gap_fuse.verify(tmp_path, samples=1).passed


def test_implementations_that_share_a_function_share_its_header() -> None:
    """quantize_linear portable and reorder in one network, conv2d grouped and portable: their headers differed in the
    implementation's name, and the network was refused."""
    headers: dict[str, str] = {}
    for kernel in load_kernels([ROOT / "kernels"]).values():
        for i in kernel.implementations:
            if i.generate is None and i.symbol:
                header = args_header(kernel, i, 1, "")
                assert headers.setdefault(i.symbol, header) == header
    assert len(headers) > 50
