"""Kernels proved in a process of their own, built with ASan and UBSan where the compiler has them."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fusion_engine.kernels.descriptor import Kernel
from gap_fuse.proof.kernel_calls import KernelCall
from gap_fuse.proof.kernel_proving import ImplementationProof
from gap_fuse.proof.kernel_worker import Task
from gap_fuse.proof.tiles.building import COMPILER, FLAGS, LIMIT

SANITIZERS = ("-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
STRAY = re.compile(
    r"AddressSanitizer: (?P<kind>[\w-]+).*?(?P<access>READ|WRITE) of size.*?"
    r"#0 \S+ in (?P<function>\S+) (?P<place>\S+)",
    re.DOTALL,
)
MARKS = ("runtime error:", "ERROR: AddressSanitizer", "SUMMARY")
SHOWN = 5  # lines of another report


def prove_kernels(
    chosen: Sequence[Kernel],
    folders: Sequence[Path],
    calls: Mapping[str, Sequence[KernelCall]],
    seed: int = 0,
    done: Callable[[], None] = lambda: None,
) -> tuple[ImplementationProof, ...]:
    """Prove every implementation of the kernels, loaded from `folders`; `done` is called behind each.

    C that ends the process (a sanitizer's report, a crash) is a failure of that implementation; the others go on.
    """
    every = [(k.name, i.name) for k in chosen if k.view is None for i in k.implementations]
    runtime = sanitizer_runtime()
    flags = (*FLAGS, *(SANITIZERS if runtime else ()))
    proofs: list[ImplementationProof] = []
    while left := every[len(proofs) :]:
        task = Task(tuple(folders), tuple(left), {n: calls[n] for n, _ in left}, seed, flags)
        proofs += _one_process(task, runtime, done)
    if runtime is None:
        for proof in proofs:
            proof.notes.append("not built with ASan and UBSan: this compiler lacks their runtime")
    return tuple(proofs)


def sanitizer_runtime() -> str | None:
    """ASan's shared library, which must be loaded in front of Python; None where the compiler has none."""
    try:
        found = subprocess.run(
            [COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return None
    return found if Path(found).is_absolute() else None


def _one_process(task: Task, runtime: str | None, done: Callable[[], None]) -> list[ImplementationProof]:
    """What the process said before it ended; the implementation that ended it failed."""
    with tempfile.TemporaryDirectory() as folder:
        path, errors = Path(folder) / "task.pickle", Path(folder) / "stderr"
        path.write_bytes(pickle.dumps(task))
        with errors.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "gap_fuse.proof.kernel_worker", str(path)],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=_environment(runtime),
            )
            proofs, current = _heard(process, done)
            process.wait()
        if current is not None:
            proofs.append(ImplementationProof(*current, failures=[_last_words(errors.read_text(), process.returncode)]))
            done()
        elif process.returncode:
            raise RuntimeError(f"the process that runs kernels did not start:\n{errors.read_text()}")
    return proofs


def _environment(runtime: str | None) -> dict[str, str]:
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    if runtime is not None:
        env |= {
            "LD_PRELOAD": runtime,
            "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0",
            "PYTHONMALLOC": "malloc",
        }
    return env


def _heard(
    process: subprocess.Popen[str], done: Callable[[], None]
) -> tuple[list[ImplementationProof], tuple[str, str] | None]:
    """Proofs so far, and the implementation that was begun and not finished."""
    proofs: list[ImplementationProof] = []
    current: tuple[str, str] | None = None
    for line in process.stdout or ():
        message = json.loads(line)
        if "begin" in message:
            current = tuple(message["begin"])
        else:
            proof = ImplementationProof(**message["proof"])
            proofs.append(proof)
            current = None
            done()
    return proofs, current


def _last_words(text: str, code: int) -> str:
    """The sanitizer's finding and where, or the signal."""
    if code == -signal.SIGVTALRM:
        return f"the C does not end: one tile took more than {LIMIT} s"
    if stray := STRAY.search(text):
        verb = "reads" if stray["access"] == "READ" else "writes"
        place = f"{Path(stray['place']).name} in {stray['function']}"
        return f"the C {verb} memory that is not its own: {place} (AddressSanitizer: {stray['kind']})"
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if any(mark in line for mark in MARKS)]
    return "the C ends the process: " + (" | ".join(telling[:SHOWN]) or f"exit code {code}; {' '.join(lines[-SHOWN:])}")
