"""Whole networks at many sizes of L1 and L2, each proved on the hostile port. One network at one size is a unit:

    python -m tests.tiler.sweep --log sweep.jsonl [--only TEXT]

runs every unit that the log does not hold as passed (so a run can be stopped and taken up again), appends a line of
JSON for each, and ends with 1 where one failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

import gap_fuse
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.tolerances import NETWORK
from gap_fuse.arrays import Samples, draw_samples
from gap_fuse.compiling import Compiled, Result, read_compiled
from gap_fuse.running import Build, execute, ports
from tests.conftest import ROOT, SHARED
from tests.networks.test_shared_networks import unknown_dims
from tiler.checking import l2_faults
from tiler.schedule import CallPlan

KILO = 1024
L1, L2 = (8, 16, 32, 64, 128), (64, 128, 256, 512, 1536)  # kB
AMPLE = 1 << 26  # bytes of both for the untiled C
SMALLEST = 8 * KILO  # L1 that the MLPerf Tiny networks need at most
TINY = ("dscnn", "autoencoder", "resnet8", "mobilenetv1_025")
MODELS = SHARED / "models"
PATHS: Mapping[str, Path] = {
    "digits": ROOT / "examples" / "digits" / "digits_int8.onnx",
    "digits_f32": ROOT / "examples" / "digits" / "digits_fp32.onnx",
    **{n: SHARED / "bench" / "models" / f"{n}_int8_qdq.onnx" for n in TINY},
    **{f"{n}_f32": SHARED / "bench" / "models" / f"{n}.onnx" for n in TINY},
    "ad_mlperf": MODELS / "mlperf_ad" / "ad01_int8.tf2onnx.onnx",
    "ic_mlperf": MODELS / "mlperf_ic" / "pretrainedResnet_quant.tf2onnx.onnx",
    "kws_mlperf": MODELS / "mlperf_kws" / "kws_ref_model.tf2onnx.onnx",
    "ic_qdq": MODELS / "q_resnet8_qdq_s8s8_pc" / "model.onnx",
    "kws_micro": MODELS / "emx_micro_kws" / "micro_kws_m_qdq.onnx",
    "kws_qoperator": MODELS / "emx_micro_kws" / "micro_kws_m_static_qoperator.onnx",
    "frontnet": MODELS / "dory_frontnet" / "Frontnet.onnx",
    "dronet_f32": MODELS / "pulp_dronet_v2" / "model_original.onnx",
    "policy_f32": MODELS / "unitree_g1_policy" / "policy.onnx",
    "gru": MODELS / "gapsdk_mnist_gru" / "mnist.onnx",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """A network at one size; `l1` and `l2` in kB."""

    network: str
    l1: int
    l2: int

    @property
    def name(self) -> str:
        return f"{self.network} l1={self.l1}k l2={self.l2}k"


def units(networks: tuple[str, ...]) -> list[Unit]:
    """Every L1 at 512 kB of L2, and every L2 at 32 kB of L1."""
    sizes = [(a, 512) for a in L1] + [(32, b) for b in L2 if b != 512]
    return [Unit(n, a, b) for n in networks if PATHS[n].is_file() for a, b in sizes]


def prove(unit: Unit, folder: Path) -> str:
    """Compile, build and run one unit; what was proved. Raises AssertionError where anything is not as planned.

    Under every timing of the copies and random order of the cores, AddressSanitizer and UBSan watching: results equal
    the references, counters the plan; with cores as threads under TSan: the outputs of the untiled C.
    """
    result, said = _compiled(unit)
    assert not (faults := l2_faults(result.schedule)), faults
    folder = result.write(folder)
    verdict = gap_fuse.verify(folder, samples=1, sanitize=True)
    assert verdict.passed, str(verdict)
    assert not verdict.counters, verdict.counters
    compiled = read_compiled(folder)
    got = execute(compiled, _sample(compiled), Build("thread", threads=True)).outputs
    for name, wanted in _untiled(unit.network).items():
        _compare(unit.network, name, got[name], wanted)
    gap = result.schedule.gap
    proven = "nothing proven" if gap is None else f"gap {100 * gap:.2f} %"
    return f"{said}{len(result.schedule.stays)} stay, {len(result.schedule.rolls)} roll, {proven}"


def _compiled(unit: Unit) -> tuple[Result, str]:
    """The network at these sizes, or at the smallest that the error names, and a word on that."""
    l1, l2, said = unit.l1 * KILO, unit.l2 * KILO, ""
    for _ in range(3):
        try:
            return gap_fuse.compile(PATHS[unit.network], l1=l1, l2=l2, dims=unknown_dims(PATHS[unit.network])), said
        except GapFuseError as e:
            found = re.search(r"is too small: .* \d+ bytes.*\(--(l[12]) (\d+)\)", str(e), re.DOTALL)
            assert found is not None, str(e)
            level, least = found[1], int(found[2])
            assert level != "l1" or unit.network not in TINY or least <= SMALLEST, str(e)
            l1, l2 = (least, l2) if level == "l1" else (l1, least)
            said += f"{level} at least {least}, run there: "
    raise AssertionError(f"{unit.name}: the sizes named do not do")


@cache
def _untiled(network: str) -> dict[str, np.ndarray]:
    """The outputs of the C whose every call is one tile."""
    dims = unknown_dims(PATHS[network])
    result = gap_fuse.compile(PATHS[network], l1=AMPLE, l2=AMPLE, dims=dims, minimise="tiles", fused=False)
    assert all(c.tiles == 1 or _in_steps(c) for c in result.schedule.calls)
    with tempfile.TemporaryDirectory(prefix="gap-fuse-sweep-") as folder:
        compiled = read_compiled(result.write(Path(folder)))
        return dict(execute(compiled, _sample(compiled)).outputs)


def _in_steps(call: CallPlan) -> bool:
    """Recurrences, whose every step is a tile."""
    return any(loop.tile == 1 for loop in call.loops)


def _sample(compiled: Compiled) -> Samples:
    return draw_samples(ports(compiled, compiled.graph.inputs), 1, 0)


def _compare(network: str, name: str, got: np.ndarray, wanted: np.ndarray) -> None:
    """Bit for bit, floats of float networks within a network's tolerance (sums in another order)."""
    if got.dtype == np.float32 and (network.endswith("_f32") or network == "gru"):
        worst = float(np.max(np.abs(got - wanted), initial=0.0))
        assert worst <= NETWORK["float32"] * float(np.max(np.abs(wanted), initial=1.0)), (name, worst)
    else:
        assert got.tobytes() == wanted.tobytes(), f"{name} differs from the untiled C"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True, metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="units whose name contains TEXT")
    options = parser.parse_args()
    done = _passed(options.log)
    work = [u for u in units(tuple(PATHS)) if options.only in u.name and u.name not in done]
    failed = 0
    for unit in track(work, description="units", console=Console(stderr=True)):
        failed += not _logged(unit, options.log)
    print(f"{len(done) + len(work) - failed} units passed, {failed} failed")
    return 1 if failed else 0


def _passed(log: Path) -> set[str]:
    lines = log.read_text().splitlines() if log.is_file() else []
    return {entry["unit"] for entry in map(json.loads, lines) if entry["passed"]}


def _logged(unit: Unit, log: Path) -> bool:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gap-fuse-sweep-") as folder:
        try:
            passed, text = True, prove(unit, Path(folder))
        except (AssertionError, GapFuseError) as e:
            passed, text = False, str(e)
    entry = {"unit": unit.name, "passed": passed, "text": text, "seconds": round(time.monotonic() - begun)}
    with log.open("a") as f:
        f.write(json.dumps(entry) + "\n")
    return passed


if __name__ == "__main__":
    sys.exit(main())
