"""The shipped digits networks under hostile conditions: small memories, every timing of the copies, core orders and
threads, sanitizers; and what must not matter (node order, order of rule files, a second run) does not."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

import gap_fuse
from fusion_engine import apply, fuse_model, graph_from_json, graph_to_json
from gap_fuse import library
from gap_fuse.arrays import Samples, read_samples
from gap_fuse.compiling import Compiled, read_compiled
from gap_fuse.running import TIMINGS, Build, counter_mismatches, execute, ports
from tests.conftest import ROOT
from tiler.schedule_json import schedule_from_json, schedule_to_json

DIGITS = ROOT / "examples" / "digits"
NETWORKS = ("digits_int8", "digits_fp32")
MEMORIES = ((None, None), (2200, 9000), (1500, 4000))
SANITIZED = Build("address,undefined", trace=True)
WATCHED = Build("thread", threads=True, trace=True)


@pytest.fixture(autouse=True)
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", "-O1")


@cache
def _result(name: str, l1: int | None = None, l2: int | None = None) -> gap_fuse.Result:
    return gap_fuse.compile(DIGITS / f"{name}.onnx", l1=l1, l2=l2)


def _compiled(name: str, folder: Path, l1: int | None, l2: int | None) -> tuple[Compiled, Samples]:
    _result(name, l1, l2).write(folder)
    compiled = read_compiled(folder)
    graph = compiled.graph
    data = read_samples(DIGITS / "test_images.npz", ports(compiled, graph.inputs), 2)
    return compiled, data


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_changes_the_answer(tmp_path: Path, name: str) -> None:
    """All runs of one network at one memory agree bit for bit, whatever the timing, seed and cores; integers at every
    memory."""
    answers: set[bytes] = set()
    for i, (l1, l2) in enumerate(MEMORIES[::2]):  # the whole network in L2, and the least of it
        compiled, data = _compiled(name, tmp_path / str(i), l1, l2)
        assert all(np.ptp(a) > 0 for a in data.inputs.values()), "real inputs"
        seeds = (1, 2) if i else (1,)
        runs = [execute(compiled, data, SANITIZED, timing=t, seed=s) for t in TIMINGS for s in seeds]
        if (l1, l2) == MEMORIES[-1]:
            runs += [execute(compiled, data, WATCHED, seed=s) for s in (1, 2)]
        for run in runs:
            assert counter_mismatches(compiled, run) == ()
            for buffer, value in run.buffers.items():
                assert value.tobytes() == runs[0].buffers[buffer].tobytes(), buffer
        answers.add(b"".join(a.tobytes() for a in runs[0].outputs.values()))
    assert name != "digits_int8" or len(answers) == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_small_memories_stream_and_spill(name: str) -> None:
    """The memories above are small enough to mean something."""
    whole, _, least = (_result(name, l1, l2).schedule for l1, l2 in MEMORIES)
    assert sum(c.tiles for c in least.calls) > sum(c.tiles for c in whole.calls)
    assert whole.bytes["l3_l2"] == 0 < least.bytes["l3_l2"]
    assert all(least.peaks[level] <= least.budgets[level] for level in least.budgets)


def _reordered(model: onnx.ModelProto) -> onnx.ModelProto:
    """The nodes in another topological order (the last that is ready first), initializers reversed."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    waiting = list(model.graph.node)
    known = {i.name for i in (*model.graph.input, *model.graph.initializer)} | {""}
    del result.graph.node[:], result.graph.initializer[:]
    while waiting:
        node = next(n for n in reversed(waiting) if set(n.input) <= known)
        waiting.remove(node)
        known |= set(node.output)
        result.graph.node.append(node)
    result.graph.initializer.extend(reversed(model.graph.initializer))
    return result


@pytest.mark.parametrize("name", NETWORKS)
def test_same_input_same_bytes(name: str) -> None:
    """A second time, and with the nodes of the file in another order."""
    model = onnx.load(DIGITS / f"{name}.onnx")
    other = _reordered(model)
    if name == "digits_int8":  # the float network is a chain: only its constants can be moved
        assert [n.name for n in other.graph.node] != [n.name for n in model.graph.node]
    first = gap_fuse.compile(model, l1=3000).source.files
    assert gap_fuse.compile(model, l1=3000).source.files == first
    again = gap_fuse.compile(other, l1=3000).source.files
    assert [p for p in first if first[p] != again.get(p)] == []
    assert list(again) == list(first)


def test_order_of_rule_files_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules under file names that sort the other way round."""
    first = _result("digits_int8")
    files = sorted(p for p in (ROOT / "rules").rglob("*.yaml"))
    for i, path in enumerate(files):
        plain = path.name if path.parent == ROOT / "rules" else f"{len(files) - i:03}_{path.name}"
        target = tmp_path / path.parent.relative_to(ROOT / "rules") / plain
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    rooms = library.room
    monkeypatch.setattr(library, "room", lambda n: tmp_path if n == "rules" else rooms(n))
    again = gap_fuse.compile(DIGITS / "digits_int8.onnx")
    assert all(r.span.file.startswith(str(tmp_path)) for r in again.rules.rules)
    assert again.source.files == first.source.files


@pytest.mark.parametrize("name", NETWORKS)
def test_values_round_trip(name: str) -> None:
    result = _result(name, *MEMORIES[1])
    text = graph_to_json(result.graph)
    assert graph_to_json(graph_from_json(text)) == text
    plan = schedule_to_json(result.schedule)
    assert schedule_from_json(plan) == result.schedule
    assert schedule_to_json(schedule_from_json(plan)) == plan


@pytest.mark.parametrize("name", NETWORKS)
def test_a_fused_model_compiled_again_answers_alike(name: str) -> None:
    """apply is a function of its arguments, and fusing what is fused finds the same calls."""
    result = _result(name)
    view, plan = result.planned.view, result.planned.plan
    once, twice = (graph_to_json(apply(view, plan, result.kernels)) for _ in range(2))
    assert once == twice
    fused = gap_fuse.compile(fuse_model(result.planned))
    assert [c.kernel for c in fused.graph.calls] == [c.kernel for c in result.graph.calls]
