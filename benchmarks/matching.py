"""Seconds of CPU from a model to its fused graph, stage by stage, on generated transformers of 1k to 49k nodes.

The graphs come from gen_graphs.py in ../shared/bench; without that folder there is nothing to run. The collector of
garbage is paused, as `gap_fuse.compile` pauses it. "growth" is the time per node over the smallest graph's.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.networks import SHARED
from fusion_engine import apply, cover, load_kernels, load_rules, match, order_layouts, read_model, view
from fusion_engine.collection import paused
from gap_fuse.rooms import room

BLOCKS = (20, 192, 1000)
STAGES = ("read", "view", "match", "cover", "apply", "layouts")


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds by stage, and what there was to do."""

    nodes: int
    candidates: int
    calls: int
    seconds: dict[str, float]


def generate(blocks: int, norm: str) -> onnx.ModelProto:
    """A transformer of so many blocks, as an exporter writes it. Ends the program where the generator is not there."""
    path = SHARED / "gen_graphs.py"
    if not path.is_file():
        sys.exit(f"skipped: there is no {path}")
    spec = importlib.util.spec_from_file_location("gen_graphs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: onnx.ModelProto = module.build(blocks, norm=norm)
    return model


def measure(model: onnx.ModelProto, rules: Any, kernels: Any) -> Timing:
    seconds: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = work()
        seconds[stage] = time.process_time() - start
        return result

    gc.collect()
    with paused():
        read = timed("read", lambda: read_model(model, {}))
        seen = timed("view", lambda: view(read))
        found = timed("match", lambda: match(seen, rules, kernels))
        plan = timed("cover", lambda: cover(seen, found.candidates))
        graph = timed("apply", lambda: apply(seen, plan, kernels))
        timed("layouts", lambda: order_layouts(graph, kernels))
    return Timing(len(model.graph.node), len(found.candidates), len(graph.calls), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--blocks", type=int, nargs="*", default=BLOCKS, help="transformer blocks (default 20 192 1000)"
    )
    parser.add_argument("--norm", choices=("layer", "rms"), default="layer", help="the normalisation in each block")
    options = parser.parse_args()
    kernels = load_kernels([room("kernels")])
    rules = load_rules([room("rules")], kernels)
    variants = sum(len(r.variants) for r in rules.rules)
    sizes = track(options.blocks, description="graphs", console=Console(stderr=True))
    timings = [measure(generate(blocks, options.norm), rules, kernels) for blocks in sizes]
    table = Table("nodes", "candidates", "calls", *STAGES, "match + cover growth")
    table.title = f"seconds of CPU, {len(rules.rules)} rules in {variants} variants"
    for t in timings:
        growth = (_per_node(t) / _per_node(timings[0])) if _per_node(timings[0]) else 1.0
        times = (f"{t.seconds[s]:.2f}" for s in STAGES)
        table.add_row(f"{t.nodes:,}", f"{t.candidates:,}", f"{t.calls:,}", *times, f"{growth:.2f}x")
    Console(width=120).print(table)


def _per_node(t: Timing) -> float:
    return (t.seconds["match"] + t.seconds["cover"]) / t.nodes


if __name__ == "__main__":
    main()
