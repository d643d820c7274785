"""gf_math.h beside float64: the errors that its head promises, over the whole range, as the host builds it
either way."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gap_fuse.proof.tiles.building import RUNNER

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gf_expf": np.exp,
    "gf_sigmoidf": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "gf_tanhf": np.tanh,
    "gf_erff": np.vectorize(math.erf, otypes=[np.float64]),
}
FLAGS = {"plain": ["-O1"], "fast": ["-O3", "-march=native", "-ffp-contract=fast"]}
LINE = "void line_{0}(const float *x, float *y, int n) {{ for (int i = 0; i < n; i++) y[i] = {0}(x[i]); }}\n"


@pytest.fixture(scope="module", params=FLAGS)
def functions(request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("math")
    lines = "".join(LINE.format(f) for f in FUNCTIONS)
    sums = (
        "void sums(const float *x, float *y, int n) {"
        " y[0] = gf_sum(x, n); y[1] = gf_sum_of_squares(x, n, 0.5f); y[2] = gf_greatest(x, n); }\n"
    )
    (folder / "lines.c").write_text('#include "gf_math.h"\n' + RUNNER + lines + sums)
    command = ["gcc", "-std=c99", *FLAGS[request.param], "-fPIC", "-shared", f"-I{root / 'kernels' / 'common'}"]
    subprocess.run([*command, "lines.c", "-lm", "-o", "lines.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "lines.so"))


def apply(functions: ctypes.CDLL, name: str, x: np.ndarray, results: int | None = None) -> np.ndarray:
    y = np.empty(x.size if results is None else results, np.float32)
    getattr(functions, name if name == "sums" else f"line_{name}")(
        x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p), ctypes.c_int(x.size)
    )
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(functions: ctypes.CDLL, name: str) -> None:
    rng = np.random.default_rng(0)
    near, far = np.linspace(-12, 12, 200001), rng.uniform(-110, 89, 20000)
    tiny = 10.0 ** rng.uniform(-30, 0, 2000) * rng.choice([-1, 1], 2000)
    x = np.concatenate([near, far, tiny, [0.0, -0.0, 88.7, -87.4, -103.9]]).astype(np.float32)
    y = apply(functions, name, x).astype(np.float64)
    with np.errstate(over="ignore"):
        exact = FUNCTIONS[name](x.astype(np.float64))
    inside = exact < np.finfo(np.float32).max
    assert np.max(np.abs(y - exact)[inside] / np.maximum(np.abs(exact[inside]), 1.0)) < 3e-7
    assert np.all(np.isinf(y[~inside]))


def test_exp_is_close_relative_to_itself(functions: ctypes.CDLL) -> None:
    x = np.linspace(-87, 88.7, 300001).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert np.max(np.abs(apply(functions, "gf_expf", x) - exact) / exact) < 2e-7


def test_ends_of_the_range(functions: ctypes.CDLL) -> None:
    x = np.array([np.inf, -np.inf, 1e30, -1e30, 89.0, -105.0], np.float32)
    np.testing.assert_array_equal(
        apply(functions, "gf_expf", x), np.array([np.inf, 0, np.inf, 0, np.inf, 0], np.float32)
    )
    np.testing.assert_array_equal(apply(functions, "gf_sigmoidf", x[:4]), np.array([1, 0, 1, 0], np.float32))
    np.testing.assert_array_equal(apply(functions, "gf_tanhf", x[:4]), np.array([1, -1, 1, -1], np.float32))
    np.testing.assert_array_equal(apply(functions, "gf_erff", x[:4]), np.array([1, -1, 1, -1], np.float32))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_number_stays_none(functions: ctypes.CDLL, name: str) -> None:
    assert np.all(np.isnan(apply(functions, name, np.full(20, np.nan, np.float32))))


@pytest.mark.parametrize("n", [1, 3, 8, 17, 100])
def test_sums(functions: ctypes.CDLL, n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    wide = x.astype(np.float64)
    y = apply(functions, "sums", x, 3)
    np.testing.assert_allclose(y[:2], [wide.sum(), ((wide - 0.5) ** 2).sum()], rtol=1e-5, atol=1e-6)
    assert y[2] == x.max()
