"""Schedules of real networks: bounds, budgets, speed."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import pytest

import fusion_engine as fe
from tests.tiler.calls import TARGET
from tests.tiler.networks import KERNELS
from tiler import schedule
from tiler.schedule_json import schedule_from_json, schedule_to_json

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("resnet8", "dscnn", "mobilenetv1_025", "autoencoder")


@cache
def fused(path: Path) -> fe.FusedGraph:
    rules = fe.load_rules([ROOT / "rules"], KERNELS)
    planned = fe.plan(fe.read_model(path, {}), rules, KERNELS, TARGET.cores)
    return fe.order_layouts(fe.apply(planned.view, planned.plan, KERNELS), KERNELS)


def network(shared: Path, name: str) -> fe.FusedGraph:
    return fused(shared / "bench" / "models" / f"{name}.onnx")


@pytest.mark.shared
@pytest.mark.parametrize("name", [f"{n}{kind}" for n in NAMES for kind in ("", "_int8_qdq")])
def test_figures_stand_above_their_bounds(shared: Path, name: str) -> None:
    graph = network(shared, name)
    begun = time.process_time()
    s = schedule(graph, KERNELS, TARGET)
    assert time.process_time() - begun < 10
    assert s.bounds.fused_bytes <= s.bytes["l2_l1"] <= 2.1 * s.bounds.bytes_per_call  # weights come again for each tile
    assert s.bounds.compute_cycles <= s.compute_cycles <= s.total_cycles
    assert all(s.peaks[level] <= s.budgets[level] for level in s.peaks)
    assert schedule_from_json(schedule_to_json(s)) == s


@pytest.mark.shared
@pytest.mark.parametrize("name", [f"{n}_int8_qdq" for n in NAMES])
def test_layer_by_layer_activations_lie_at_the_live_bound(shared: Path, name: str) -> None:
    s = schedule(network(shared, name), KERNELS, TARGET, fused=False)
    constants = sum(-(-c.bytes // 16) * 16 for c in s.constants)
    assert s.activations == s.bounds.live_bytes
    assert s.peaks["l2"] <= constants + -(-s.bounds.live_bytes // 16) * 16 + 64


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "then"), [("resnet8", 8192), ("dscnn", 2048), ("mobilenetv1_025", 27648), ("autoencoder", 2560)]
)
def test_at_32_kb_only_the_input_need_be_in_l2(shared: Path, name: str, then: int) -> None:
    """The image as it is given, in float, and when that is read, less than it would be in integers (or little)."""
    graph = network(shared, f"{name}_int8_qdq")
    s = schedule(graph, KERNELS, TARGET, 32768, minimise="l2")
    image, result = (graph.buffer[n].nbytes for n in (*graph.inputs, *graph.outputs))
    assert s.activations == s.bounds.kept_bytes == max(image, result)
    constants = {c.name for c in s.constants}
    rest = [r for r in s.residencies if r.root not in constants and r.root not in graph.inputs]
    assert max(sum(r.bytes for r in rest if r.first <= i <= r.last) for i in range(len(s.calls))) <= then


@pytest.mark.shared
@pytest.mark.parametrize(("l1", "name"), [(8000, "resnet8_int8_qdq"), (4000, "autoencoder_int8_qdq")])
def test_more_l2_makes_runs_shorter(shared: Path, l1: int, name: str) -> None:
    graph = network(shared, name)
    cycles = [schedule(graph, KERNELS, TARGET, l1, l2).total_cycles for l2 in (12000, 40000, 120000, 400000)]
    assert cycles == sorted(cycles, reverse=True)


@pytest.mark.shared
def test_the_same_network_gives_the_same_schedule(shared: Path) -> None:
    """Cut, fetched in pieces, what stays in L2 searched."""
    graph = network(shared, "autoencoder_int8_qdq")
    text = schedule_to_json(schedule(graph, KERNELS, TARGET, 4000, 12000))
    assert schedule_to_json(schedule(graph, KERNELS, TARGET, 4000, 12000)) == text
