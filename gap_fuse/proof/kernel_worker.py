"""The process in which C under test runs: whatever it does to memory ends here. Started by kernel_running.py.

Reads a pickled Task from the file named on the command line; writes one JSON object per line: `begin` in front of each
implementation, `proof` behind it.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fusion_engine.kernels import load_kernels
from gap_fuse.proof.kernel_calls import KernelCall
from gap_fuse.proof.kernel_proving import prove_implementation


@dataclass(frozen=True, slots=True)
class Task:
    """Implementations by (kernel, implementation), the calls of their kernels, and how to build."""

    kernels: tuple[Path, ...]
    todo: tuple[tuple[str, str], ...]
    calls: Mapping[str, Sequence[KernelCall]]
    seed: int
    flags: tuple[str, ...]


def work(task: Task) -> None:
    """Prove one implementation after the other."""
    kernels = load_kernels(task.kernels)
    for name, implementation in task.todo:
        _say("begin", [name, implementation])
        kernel = kernels[name]
        chosen = next(i for i in kernel.implementations if i.name == implementation)
        _say("proof", asdict(prove_implementation(kernel, chosen, task.calls[name], task.seed, task.flags)))


def _say(what: str, value: object) -> None:
    print(json.dumps({what: value}), flush=True)


if __name__ == "__main__":
    work(pickle.loads(Path(sys.argv[1]).read_bytes()))
