"""The harness against a few kernels of each kind: named dims, any rank, borders, accumulators, generated code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_engine.kernels import load_kernels, reference
from gap_fuse.proof.tiles import StrayAccess
from tests.conftest import ROOT
from tests.harness import bind_kernel, run_tiled, tilings


def _arrays(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _check(data: st.DataObject, name: str, operands: dict[str, np.ndarray], attrs: dict[str, object]) -> None:
    kernel = load_kernels([ROOT / "kernels"])[name]
    implementation = kernel.implementations[0]
    bound = bind_kernel(kernel, implementation, operands, attrs)
    assert not isinstance(bound, str), bound
    tiles = data.draw(tilings(bound[1]))
    got = run_tiled(kernel, implementation, operands, attrs, tiles, cores=data.draw(st.sampled_from([1, 3, 8])))
    variadic = next((o.name for o in kernel.inputs if o.variadic), None)
    inputs = operands if variadic is None else {variadic: tuple(operands.values())}
    want = reference(kernel)(**inputs, **bound[1].attrs)
    np.testing.assert_allclose(got["y"], want, rtol=1e-6, atol=1e-6)


@settings(max_examples=10)
@given(st.data(), st.integers(0, 100))
def test_any_rank_broadcast(data: st.DataObject, seed: int) -> None:
    rng = _arrays(seed)
    a = rng.integers(-128, 128, (2, 5, 3, 7), dtype=np.int8)
    b = rng.integers(-128, 128, (5, 1, 7), dtype=np.int8)
    _check(data, "add_i8", {"a": a, "b": b}, {"ma": 1 << 20, "mb": 3 << 19, "shift": 21, "a_zero": 3})


@settings(max_examples=10)
@given(st.data(), st.integers(0, 100))
def test_borders(data: st.DataObject, seed: int) -> None:
    x = _arrays(seed).integers(-128, 128, (1, 3, 9, 8), dtype=np.int8)
    _check(data, "maxpool_i8", {"x": x}, {"kernel": (3, 2), "strides": (2, 1), "pads": (1, 0, 2, 1)})


@settings(max_examples=10)
@given(st.data(), st.integers(0, 100))
def test_accumulator(data: st.DataObject, seed: int) -> None:
    x = _arrays(seed).standard_normal((1, 6, 5, 4)).astype(np.float32)
    _check(data, "global_avgpool_f32", {"x": x}, {"factor": 1 / 20})


@settings(max_examples=10)
@given(st.data(), st.integers(0, 100))
def test_generated(data: st.DataObject, seed: int) -> None:
    rng = _arrays(seed)
    operands = {
        "x0": rng.standard_normal((3, 4)).astype(np.float32),
        "x1": rng.standard_normal((4,)).astype(np.float32),
    }
    _check(data, "map_f32", operands, {"expr": "add(mul(x0, x1), 2)"})


BAD = """\
kernel: bad
signature:
  inputs: {x: "int8[N]"}
  outputs: {y: "int8[N]"}
semantics: reference.py:bad
axes: {n: N}
access: |
  x[n]
  y[n]
implementations:
- {name: bad, source: bad.c, symbol: gf_bad, cycles: n}
"""


def test_guards_catch_a_stray_write(tmp_path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "kernels" / "bad"
    folder.mkdir(parents=True)
    (tmp_path / "kernels" / "common").symlink_to(ROOT / "kernels" / "common")
    (folder / "reference.py").write_text("def bad(x):\n    return x\n")
    (folder / "kernel.yaml").write_text(BAD)
    (folder / "bad.c").write_text(
        '#include "gf_bad_args.h"\nvoid gf_bad(const void *args) { const gf_bad_args *a = args; a->y[a->n] = 1; }\n'
    )
    kernel = load_kernels([tmp_path / "kernels"])["bad"]
    with pytest.raises(StrayAccess, match="wrote behind `y`"):
        run_tiled(kernel, kernel.implementations[0], {"x": np.zeros(5, np.int8)}, {})
