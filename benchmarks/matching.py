"""Seconds of CPU from a model to its fused graph, stage by stage, on networks of 1k to 49k nodes: transformers as an
exporter writes them (gen_graphs.py in ../shared/bench; skipped without it), and int8 QDQ networks (qdq_graphs.py).

The collector of garbage is paused, as `gap_fuse.compile` pauses it. "growth" is the time per node over the smallest
graph's. `--rivals` adds onnxscript's rewriter and onnxruntime's optimiser on the largest transformer in the same run,
`--decoys` what rules that never fire cost there. "emit" makes the calls of the chosen candidates.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import qdq_graphs
from benchmarks.decoys import absent_roots, common_roots, with_decoys
from benchmarks.networks import SHARED
from benchmarks.rivals import onnxruntime_seconds, onnxscript_rules, onnxscript_seconds
from fusion_engine import apply, cover, load_kernels, load_rules, match, order_layouts, read_model, view
from fusion_engine.collection import paused
from fusion_engine.covering.cost import kernel_calls
from gap_fuse.rooms import room

BLOCKS = (20, 192, 1000)
NODES_PER_BLOCK = 49  # of a transformer
STAGES = ("read", "view", "match", "cover", "emit", "apply", "layouts")


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds by stage, and what there was to do."""

    network: str
    nodes: int
    candidates: int
    calls: int
    seconds: dict[str, float]

    def together(self, *stages: str) -> float:
        return sum(self.seconds[s] for s in stages)

    def per_node(self) -> float:
        return self.together("match", "cover") / self.nodes


def transformer(blocks: int, norm: str) -> onnx.ModelProto | None:
    """A transformer of so many blocks, as an exporter writes it; None where the generator is not there."""
    path = SHARED / "gen_graphs.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("gen_graphs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: onnx.ModelProto = module.build(blocks, norm=norm)
    return model


def measure(network: str, model: onnx.ModelProto, rules: Any, kernels: Any, last: str = "layouts") -> Timing:
    """Every stage up to `last`."""
    seconds: dict[str, float] = {}
    calls = 0

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
        plan = timed("cover", lambda: cover(seen, found.candidates, calls=kernel_calls(kernels)))
        timed("emit", lambda: [c.calls for c in plan.chosen])
        if last == "layouts":
            graph = timed("apply", lambda: apply(seen, plan, kernels))
            timed("layouts", lambda: order_layouts(graph, kernels))
            calls = len(graph.calls)
    return Timing(network, len(model.graph.node), len(found.candidates), calls, seconds)


def stages(blocks: Sequence[int], norm: str, rules: Any, kernels: Any) -> list[list[Timing]]:
    """Transformers, then int8 networks of as many nodes."""
    found: list[list[Timing]] = [[], []]
    for count in track(blocks, description="graphs", console=Console(stderr=True)):
        model = transformer(count, norm)
        if model is not None:
            found[0].append(measure("transformer", model, rules, kernels))
        quantised = qdq_graphs.build(count * NODES_PER_BLOCK // qdq_graphs.NODES)
        found[1].append(measure("int8 QDQ", quantised, rules, kernels))
    return [f for f in found if f]


def stage_table(found: list[list[Timing]], title: str) -> Table:
    table = Table("network", "nodes", "candidates", "calls", *STAGES, "match + cover growth", title=title)
    for timings in found:
        for t in timings:
            times = (f"{t.seconds[s]:.2f}" for s in STAGES)
            growth = f"{t.per_node() / timings[0].per_node():.2f}x"
            table.add_row(t.network, f"{t.nodes:,}", f"{t.candidates:,}", f"{t.calls:,}", *times, growth)
    return table


def rival_table(model: onnx.ModelProto, rules: Any, kernels: Any) -> Table:
    """Ours is the middle of three runs, taken around the others."""
    table = Table("matcher", "seconds", "ours is so many times faster")
    theirs: dict[str, float] = {}
    ours = [measure("", model, rules, kernels, "emit")]
    found = onnxscript_rules()
    if found is not None:
        theirs[f"onnxscript, {len(found)} rules"] = onnxscript_seconds(model, found)
    ours.append(measure("", model, rules, kernels, "emit"))
    theirs["onnxruntime EXTENDED"] = onnxruntime_seconds(model)
    ours.append(measure("", model, rules, kernels, "emit"))
    middle = sorted(t.together("view", "match", "cover") for t in ours)[1]
    table.add_row(f"view, match and cover, {len(rules.rules)} rules", f"{middle:.2f}", "1x")
    for name, seconds in theirs.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / middle:.1f}x")
    return table


def decoy_table(model: onnx.ModelProto, rules: Any, kernels: Any) -> Table:
    """Least of three interleaved runs each."""
    libraries = {
        "library": rules,
        "400 more, roots that never occur": with_decoys(rules, absent_roots(400)),
        "150 more at Mul, Add, MatMul": with_decoys(rules, common_roots(150)),
    }
    least: dict[str, float] = {}
    for _ in range(3):
        for name, library in libraries.items():
            t = measure("", model, library, kernels, "emit").together("match", "cover")
            least[name] = min(t, least.get(name, t))
    table = Table("rules", "match + cover", "ratio")
    for name, seconds in least.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / least['library']:.2f}x")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--blocks", type=int, nargs="*", default=BLOCKS, help="transformer blocks (default 20 192 1000)"
    )
    parser.add_argument("--norm", choices=("layer", "rms"), default="layer", help="the normalisation in each block")
    parser.add_argument("--rivals", action="store_true", help="onnxscript and onnxruntime in the same run")
    parser.add_argument("--decoys", action="store_true", help="what rules that never fire cost")
    options = parser.parse_args()
    kernels = load_kernels([room("kernels")])
    rules = load_rules([room("rules")], kernels)
    variants = sum(len(r.variants) for r in rules.rules)
    title = f"seconds of CPU, {len(rules.rules)} rules in {variants} variants"
    console = Console(width=130)
    console.print(stage_table(stages(options.blocks, options.norm, rules, kernels), title))
    largest = transformer(max(options.blocks), options.norm) or qdq_graphs.build(max(options.blocks))
    if options.rivals:
        console.print(rival_table(largest, rules, kernels))
    if options.decoys:
        console.print(decoy_table(largest, rules, kernels))


if __name__ == "__main__":
    main()
