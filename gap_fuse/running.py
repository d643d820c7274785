"""Building a compiled folder with the target's compiler, and running it on samples."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, counted
from gap_fuse.arrays import Port, Samples, read_samples, write_samples
from gap_fuse.compiling import Compiled, read_compiled

PROGRAM = "network_test"
TIMINGS = ("start", "wait", "random")


@dataclass(frozen=True, slots=True)
class Build:
    """How to build: the Makefile's switches (targets/host/Makefile). `sanitize` is gcc's list, "" for none."""

    sanitize: str = ""
    threads: bool = False
    fast: bool = False
    trace: bool = False

    @property
    def folder(self) -> str:
        words = (
            ("-fast", self.fast),
            ("-trace", self.trace),
            ("-threads", self.threads),
            (f"-{self.sanitize.replace(',', '-')}", bool(self.sanitize)),
        )
        return "build" + "".join(word for word, on in words if on)

    @property
    def arguments(self) -> list[str]:
        switches = {"FAST": self.fast, "TRACE": self.trace, "THREADS": self.threads}
        chosen = [f"{name}=1" for name, on in switches.items() if on]
        return [*chosen, *([f"SANITIZE={self.sanitize}"] if self.sanitize else []), f"BUILD={self.folder}"]


@dataclass(frozen=True)
class Execution:
    """What one run of the C gave, sample axis first.

    `buffers` are the results of every call where they were traced; `counters` map each call to hop to (bytes,
    transfers) of one inference; `nanoseconds` is the least time of one inference where it was asked for.
    """

    outputs: Mapping[str, np.ndarray]
    buffers: Mapping[str, np.ndarray]
    counters: Mapping[str, Mapping[str, tuple[int, int]]]
    nanoseconds: int | None = None


def build(compiled: Compiled, how: Build = Build()) -> Path:
    """The test program. Raises GapFuseError where the compiler or make is absent, or the build fails."""
    if not (compiled.folder / "Makefile").is_file():
        raise GapFuseError(
            Diagnostic(
                f"target {compiled.target.folder.name} cannot be built here: it has no port and no Makefile",
                Span(str(compiled.folder)),
                help="compile with --target host to verify and run on this machine",
            )
        )
    compiler = os.environ.get("CC") or compiled.target.compiler
    for tool in ("make", compiler.split()[0]):
        if shutil.which(tool) is None:
            raise GapFuseError(
                Diagnostic(
                    f"`{tool}` is not installed: the C cannot be built",
                    help="on Debian: apt-get install gcc make; another compiler: CC=clang",
                )
            )
    command = ["make", "-C", str(compiled.folder), f"-j{os.cpu_count() or 1}", f"CC={compiler}", *how.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GapFuseError(
            Diagnostic(
                "the C does not build", Span(str(compiled.folder)), notes=tuple(done.stderr.strip().splitlines()[:20])
            )
        )
    return compiled.folder / how.folder / PROGRAM


def execute(
    compiled: Compiled,
    samples: Samples,
    how: Build = Build(),
    *,
    timing: str = "random",
    seed: int = 1,
    repeat: int = 0,
) -> Execution:
    """Build and run. `timing` says when copies land ("start", "wait", "random"). Raises GapFuseError where the
    program fails."""
    program = build(compiled, how).resolve()
    graph = compiled.graph
    with tempfile.TemporaryDirectory(prefix="gap-fuse-") as name:
        scratch = Path(name)
        (scratch / "in").write_bytes(_packed(samples, graph.inputs))
        options = ["--samples", str(samples.count), "--timing", timing, "--seed", str(seed)]
        options += ["--repeat", str(repeat)] if repeat else []
        said = _run(program, [*_files(compiled, how), *options], scratch)
        results = [buffer for call in graph.calls for _, buffer in call.results]
        return Execution(
            _unpack(scratch / "out", ports(compiled, graph.outputs), samples.count),
            _unpack(scratch / "dump", ports(compiled, results), samples.count) if how.trace else {},
            _counters(scratch / "counters", samples.count),
            int(said) if repeat else None,
        )


def _files(compiled: Compiled, how: Build) -> list[str]:
    """What the program reads and writes, in the folder where it runs; the weights where they are."""
    weights = str((compiled.folder / "weights.bin").resolve())
    named = ["--inputs", "in", "--outputs", "out", "--weights", weights, "--counters", "counters"]
    return [*named, *(["--dump", "dump"] if how.trace else [])]


def _run(program: Path, arguments: Sequence[str], folder: Path) -> str:
    """What the program prints. Raises GapFuseError where it fails."""
    done = subprocess.run([str(program), *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        why = tuple(done.stderr.strip().splitlines()[:20]) or (f"exit code {done.returncode}",)
        raise GapFuseError(Diagnostic("the C failed", Span(str(program)), notes=why))
    return done.stdout


def _packed(samples: Samples, names: Sequence[str]) -> bytes:
    """Samples one after the other, each with every input's dense row-major bytes."""
    rows = [samples.inputs[n][i] for i in range(samples.count) for n in names]
    return b"".join(np.ascontiguousarray(r).tobytes() for r in rows)


def ports(compiled: Compiled, names: Sequence[str]) -> tuple[Port, ...]:
    """Names, dtypes and shapes of buffers."""
    buffer = compiled.graph.buffer
    return tuple(Port(n, buffer[n].dtype, buffer[n].shape) for n in names)


def _unpack(path: Path, layout: Sequence[Port], count: int) -> dict[str, np.ndarray]:
    """Samples one after the other, each holding every port's dense row-major bytes."""
    raw = np.frombuffer(path.read_bytes(), np.uint8).reshape(count, -1)
    result: dict[str, np.ndarray] = {}
    at = 0
    for port in layout:
        size = int(np.prod(port.shape, dtype=np.int64)) * np.dtype(port.dtype).itemsize
        result[port.name] = np.ascontiguousarray(raw[:, at : at + size]).view(port.dtype).reshape(count, *port.shape)
        at += size
    return result


def _counters(path: Path, count: int) -> dict[str, dict[str, tuple[int, int]]]:
    """Per call and hop, of one inference. Raises GapFuseError where the inferences did not all move the same."""
    if not path.is_file():  # the fast port counts nothing
        return {}
    entries = json.loads(path.read_text())
    return {
        e["call"]: {
            hop: (_each(v["bytes"], count, e["call"]), _each(v["transfers"], count, e["call"]))
            for hop, v in e.items()
            if hop != "call"
        }
        for e in entries
        if e["call"] != "opening"
    }


def _each(total: int, count: int, call: str) -> int:
    if total % count:
        raise GapFuseError(
            Diagnostic(f"{call}: {total} bytes or transfers in {count} inferences: not all move the same")
        )
    return total // count


def counter_mismatches(compiled: Compiled, execution: Execution) -> tuple[str, ...]:
    """A sentence for each call and hop where the C moved otherwise than planned."""
    wrong = []
    for call in compiled.report["calls"]:
        for hop, planned in call["bytes"].items():
            want = (planned, call["transfers"][hop])
            got = execution.counters[call["name"]][hop]
            if got != want:
                wrong.append(
                    f"{call['name']}, {hop}: {got[0]} B in {counted(got[1], 'transfer')}, "
                    f"planned {want[0]} B in {want[1]}"
                )
    for hop, planned in compiled.report["hops"].items():
        total = [sum(c[hop][k] for c in execution.counters.values()) for k in (0, 1)]
        if total != [planned["bytes"], planned["transfers"]]:
            wrong.append(
                f"all calls, {hop}: {total[0]} B in {counted(total[1], 'transfer')}, "
                f"planned {planned['bytes']} B in {planned['transfers']}"
            )
    return tuple(wrong)


def run(folder: Path | str, inputs: Path | str, output: Path | str) -> Mapping[str, np.ndarray]:
    """Build the C in `folder`, run it on the samples of an npz file, write and return its outputs. Raises
    GapFuseError for bad input."""
    compiled = read_compiled(Path(folder))
    graph = compiled.graph
    samples = read_samples(Path(inputs), ports(compiled, graph.inputs))
    outputs = execute(compiled, samples).outputs
    try:
        write_samples(Path(output), outputs)
    except OSError as e:
        raise GapFuseError(Diagnostic(f"cannot write: {e.strerror or e}", Span(str(output)))) from e
    return outputs
