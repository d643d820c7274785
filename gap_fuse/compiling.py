"""compile(): the whole road from an ONNX model to a folder of C."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from fusion_engine import (
    FusedGraph,
    GapFuseError,
    Kernel,
    KernelSet,
    Model,
    Planned,
    RuleSet,
    apply,
    fuse_model,
    graph_from_json,
    graph_to_json,
    load_kernels,
    order_layouts,
    plan,
    read_model,
)
from fusion_engine.collection import paused
from fusion_engine.diagnostics import Diagnostic, Span, counted, did_you_mean
from fusion_engine.view.types import View
from gap_fuse.islands import explained_islands
from gap_fuse.library import load_library
from gap_fuse.oracle import answers
from gap_fuse.report import build_report, summary
from gap_fuse.rooms import room
from tiler import Schedule, SourceTree, Target, emit, load_target, order_and_schedule
from tiler.checking import l2_faults

MANIFEST = "gap-fuse.json"
MODEL = "model.onnx"
GRAPH = "graph.json"
REPORT = "report.json"
FUSED = "fused.onnx"


@dataclass(frozen=True)
class Result:
    """Every intermediate value of one compilation, in the order they were made."""

    model: Model
    rules: RuleSet
    kernels: KernelSet
    target: Target
    planned: Planned
    graph: FusedGraph
    schedule: Schedule
    source: SourceTree
    kernel_folders: tuple[Path, ...]  # beside the shipped ones, which come with the program

    def __repr__(self) -> str:
        """One line: the values print themselves, one by one."""
        calls = counted(len(self.graph.calls), "kernel call")
        return f"Result({self.graph.name!r} for {self.target.folder.name}, {calls})"

    @cached_property
    def report(self) -> dict[str, Any]:
        notes = (
            *_port_notes(self.target), *self.kernels.notes, *self.rules.notes, *self.planned.matches.notes,
        )  # fmt: skip
        islands = explained_islands(self.graph, self.planned)
        return build_report(self.graph, self.schedule, notes, islands, self.target.clock)

    @property
    def summary(self) -> str:
        return summary(self.report)

    def write(self, folder: Path | str) -> Path:
        """Write the C, the report and what `verify` needs. Raises GapFuseError where the folder cannot be written, or
        holds files of these names that are not from a compilation before."""
        folder = Path(folder)
        self._check_own(folder)
        try:
            for path, data in self._files():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data)
        except OSError as e:
            raise GapFuseError(
                Diagnostic(f"cannot write the output: {e.strerror or e}", Span(str(e.filename or folder)))
            ) from e
        return folder

    def _check_own(self, folder: Path) -> None:
        if (folder / MANIFEST).is_file():
            return
        for path, _ in self._files():
            if (folder / path).exists():
                said = "is there already, and no compiled network: it would be overwritten"
                raise GapFuseError(Diagnostic(said, Span(str(folder / path)), help="choose another folder"))

    def _files(self) -> list[tuple[str, bytes]]:
        manifest = {
            "format": 1,
            "model": MODEL,
            "graph": GRAPH,
            "target": self._target_name(),
            "kernels": [str(f) for f in self.kernel_folders],
        }
        return [
            *self.source.files.items(),
            (REPORT, _json(self.report)),
            (MANIFEST, _json(manifest)),
            (GRAPH, graph_to_json(self.graph).encode()),
            (FUSED, fuse_model(self.planned).SerializeToString(deterministic=True)),
            (MODEL, self.model.proto.SerializeToString(deterministic=True)),
        ]

    def _target_name(self) -> str:
        """As find_target takes it: a shipped target by name, another by its folder."""
        folder = self.target.folder.resolve()
        return folder.name if folder.parent == room("targets") else str(folder)


def _port_notes(target: Target) -> list[str]:
    if target.has_port:
        return []
    name = target.folder.name
    return [f"target {name} has no port yet: this C cannot be built here; `--target host` verifies the network"]


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def compile(
    model: str | Path | bytes | onnx.ModelProto,
    target: str | Path = "host",
    *,
    l1: int | None = None,
    l2: int | None = None,
    l3: int | None = None,
    dims: Mapping[str, int] | None = None,
    rules: Sequence[Path | str] = (),
    kernels: Sequence[Path | str] = (),
    minimise: str = "cycles",
    fused: bool = True,
) -> Result:
    """Compile an ONNX model for a target; write the result with `Result.write(folder)`.

    `l1`, `l2` and `l3` are bytes for plan data, in place of the target's. `minimise` is cycles, bytes, energy, l1, l2
    or a sum such as bytes+200*tiles; with `fused` off every call is by itself, layer by layer. `dims` binds symbolic
    dimensions. `rules` and `kernels` are further folders beside the shipped ones, later ones overriding. Raises
    GapFuseError for anything that cannot be compiled, saying why.
    """
    folders = tuple(Path(k).resolve() for k in kernels)
    with paused():
        machine = find_target(target).with_budgets(l3=l3)
        library = load_library([Path(r) for r in rules], folders)
        read = read_model(model, dims or {})
        _check_not_empty(read)
        planned = plan(read, library.rules, library.kernels, machine.cores, machine.isa, answers)
        _check_outputs(read, planned.view)
        calls = apply(planned.view, planned.plan, library.kernels)
        stored = order_layouts(calls, library.kernels, machine.cores, machine.isa)
        graph, timetable = order_and_schedule(
            stored, library.kernels, machine, l1=l1, l2=l2, minimise=minimise, fused=fused
        )
        _check_l2(timetable)
        source = emit(graph, library.kernels, timetable, machine, room("targets") / "common")
        return Result(read, library.rules, library.kernels, machine, planned, graph, timetable, source, folders)


def _check_l2(timetable: Schedule) -> None:
    """Wrong results are worse than none."""
    if faults := l2_faults(timetable):
        raise GapFuseError(
            Diagnostic(f"this plan is wrong, a mistake of the tiler: {faults[0]}", help="try another --l2")
        )


def _check_not_empty(model: Model) -> None:
    where = Span(str(model.path)) if model.path is not None else None
    if not model.outputs:
        raise GapFuseError(Diagnostic("the graph has no outputs: there is nothing to compile", where))
    given = set(model.inputs).intersection(model.outputs)
    if given:
        raise GapFuseError(
            Diagnostic(f"the graph's output `{min(given)}` is its input: there is nothing to compute for it", where)
        )


def _check_outputs(model: Model, view: View) -> None:
    where = Span(str(model.path)) if model.path is not None else None
    for name in view.outputs:
        shape = view.values[name].static_shape
        if shape is not None and 0 in shape:
            said = f"the graph's output `{name}` has no element, its shape is {list(shape)}"
            raise GapFuseError(Diagnostic(said, where, "cut it out of the graph's outputs"))


def find_target(target: str | Path) -> Target:
    """A shipped target by name, or one by its folder. Raises GapFuseError for an unknown one."""
    shipped = room("targets") / str(target)
    folder = shipped if (shipped / "target.yaml").is_file() else Path(target)
    if not (folder / "target.yaml").is_file():
        known = sorted(p.parent.name for p in room("targets").glob("*/target.yaml"))
        guess = did_you_mean(str(target), known)
        raise GapFuseError(
            Diagnostic(
                f"unknown target `{target}`; shipped: {', '.join(known)}",
                help=guess or "or give a folder with a target.yaml",
            )
        )
    return load_target(folder)


@dataclass(frozen=True)
class Compiled:
    """A compiled folder, read back."""

    folder: Path
    model: onnx.ModelProto
    fused: onnx.ModelProto
    graph: FusedGraph
    kernels: Mapping[str, Kernel]
    target: Target
    report: Mapping[str, Any]


def read_compiled(folder: Path) -> Compiled:
    """Read what `Result.write` wrote. Raises GapFuseError where the folder is not one of those."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        target, kernel_folders = str(manifest["target"]), [Path(k) for k in manifest["kernels"]]
        model, fused = read_proto(folder / manifest["model"]), read_proto(folder / FUSED)
        text = (folder / manifest["graph"]).read_text()
        report = json.loads((folder / REPORT).read_text())
        lacking = {"calls", "hops"} - set(report)
        if lacking:
            raise ValueError(f"{REPORT} has no `{min(lacking)}`")
    except (OSError, ValueError, KeyError, TypeError, DecodeError) as e:
        raise GapFuseError(
            Diagnostic(
                f"this is not a folder as `gap-fuse compile` writes it: {_words(e)}",
                Span(str(folder)),
                help="gap-fuse compile MODEL.onnx -o DIR",
            )
        ) from e
    kernels = load_kernels([room("kernels"), *kernel_folders])
    return Compiled(folder, model, fused, graph_from_json(text), kernels, find_target(target), report)


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return f"{MANIFEST} has no {error}" if isinstance(error, KeyError) else str(error)


def read_proto(path: Path) -> onnx.ModelProto:
    """An ONNX file with a graph. Raises OSError, DecodeError or ValueError."""
    proto = onnx.load(path)
    if not proto.graph.node:
        raise ValueError(f"{path.name} holds no graph")
    return proto
