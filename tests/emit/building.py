"""Writes an emitted tree, builds and runs it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusion_engine.graph import FusedGraph
from tiler.emit import SourceTree
from tiler.schedule import Schedule


@dataclass(frozen=True)
class Ran:
    """Outputs and every call's results by buffer name, one sample; counters as call -> hop -> (bytes, transfers)."""

    outputs: Mapping[str, np.ndarray]
    results: Mapping[str, np.ndarray]
    counters: Mapping[str, Mapping[str, tuple[int, int]]]


def build(tree: SourceTree, folder: Path, *options: str) -> Path:
    """The program, traced, built with every warning an error."""
    for path, data in tree.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    command = ["make", "-s", "-j2", "OPT=-O0", "TRACE=1", "BUILD=built", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "built" / "network_test"


def run(program: Path, graph: FusedGraph, inputs: Mapping[str, np.ndarray], *options: str) -> Ran:
    """One sample through the program."""
    folder = program.parent.parent
    (folder / "in").write_bytes(b"".join(np.ascontiguousarray(inputs[n]).tobytes() for n in graph.inputs))
    files = ["--inputs", "in", "--outputs", "out", "--counters", "counters", "--dump", "dump"]
    done = subprocess.run([str(program), *files, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    entries = json.loads((folder / "counters").read_text())
    return Ran(
        _unpack(folder / "out", graph, graph.outputs),
        _unpack(folder / "dump", graph, [b for c in graph.calls for _, b in c.results]),
        {
            e["call"]: {h: (v["bytes"], v["transfers"]) for h, v in e.items() if h != "call"}
            for e in entries
            if e["call"] != "opening"
        },
    )


def _unpack(path: Path, graph: FusedGraph, names: Sequence[str]) -> dict[str, np.ndarray]:
    raw, at, result = path.read_bytes(), 0, {}
    for name in names:
        b = graph.buffer[name]
        result[name] = np.frombuffer(raw[at : at + b.nbytes], b.dtype).reshape(b.shape)
        at += b.nbytes
    assert at == len(raw)
    return result


def planned(schedule: Schedule) -> dict[str, dict[str, tuple[int, int]]]:
    """What the counters must say: per call, and the whole buffers between calls."""
    result = {
        call.call: {
            hop: (sum(o.bytes.get(hop, 0) for o in call.operands), sum(o.transfers.get(hop, 0) for o in call.operands))
            for hop in ("l2_l1", "l3_l2")
        }
        for call in schedule.calls
    }
    for i, call in enumerate(schedule.calls):
        size, commands = schedule.fetched_inside(i)
        own = result[call.call]["l3_l2"]
        result[call.call]["l3_l2"] = (own[0] + size, own[1] + commands)
    moving = [t for t in schedule.transfers if t.start >= 0 and not t.start_step]
    result["between"] = {"l2_l1": (0, 0), "l3_l2": (sum(t.bytes for t in moving), sum(t.commands for t in moving))}
    return result
