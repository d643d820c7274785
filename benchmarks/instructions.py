"""Instructions that an implementation's C takes, counted by valgrind's callgrind, tile by tile and core by core."""

from __future__ import annotations

import ctypes
import platform
import shutil
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.call_makers import KernelCall
from fusion_engine.expr import evaluate
from fusion_engine.graph import FusedGraph
from fusion_engine.kernels.descriptor import Implementation, Kernel
from gap_fuse.proof.tiles.building import COMPILER
from gap_fuse.proof.tiles.l1 import L1
from gap_fuse.proof.tiles.running import BoundKernel, Setting, TiledRun
from tiler.bound import BoundAxis, BoundCall
from tiler.emit.fill import Tile
from tiler.emit.sources import KernelSource, common_headers, kernel_source

CORES = 8
# As the emitted Makefile optimises; with SSE4.1 a lane's product is one instruction, as on the machines that are meant.
FLAGS = ("-std=c99", "-O2", "-w", *(("-msse4.1",) if platform.machine() == "x86_64" else ()))
BOUND_EARLY = ("-Wl,-z,now",)  # else the first call of memcpy looks it up, for a thousand instructions
CALLGRIND = ("valgrind", "--tool=callgrind", "--collect-atstart=no", "--callgrind-out-file=out")
HEADER = Path("/usr/include/valgrind/callgrind.h")

HARNESS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>
static int core;
int gf_core_id(void) { return core; }
int gf_core_count(void) { return CORES; }
DECLARATIONS
static void (*const functions[])(const void *) = {NAMES};
int main(int argc, char **argv) {
  FILE *f = fopen(argv[argc - 1], "rb");
  unsigned head[4];
  while (fread(head, 4, 4, f) == 4) {
    char *args = aligned_alloc(64, head[0] / 64 * 64 + 64), *l1 = aligned_alloc(64, head[1] / 64 * 64 + 64);
    if (fread(args, 1, head[0], f) != head[0] || fread(l1, 1, head[1], f) != head[1]) return 1;
    for (unsigned i = 0; i < head[2]; i++) {
      unsigned fix[2];
      if (fread(fix, 4, 2, f) != 2) return 1;
      char *to = l1 + fix[1];
      memcpy(args + fix[0], &to, sizeof to);
    }
    for (core = 0; core < CORES; core++) {
      CALLGRIND_TOGGLE_COLLECT;
      functions[head[3]](args);
      CALLGRIND_TOGGLE_COLLECT;
      CALLGRIND_DUMP_STATS;
    }
    free(args);
    free(l1);
  }
  return 0;
}
"""


class NoValgrindError(Exception):
    """valgrind, or its header callgrind.h, is not installed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One tiling of a call: what the `cycles` formula and what counting says, both of the busiest core of each tile,
    over all tiles."""

    tiles: Mapping[str, int]
    formula: float
    instructions: int
    count: int  # of tiles


@dataclass(frozen=True, slots=True)
class Case:
    """One implementation on one call, in several tilings."""

    implementation: Implementation
    bound: tuple[FusedGraph, BoundCall]
    call: KernelCall
    tilings: Sequence[Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of tile: its arguments and L1 as the harness reads them, the function that is called, and what the
    formula says."""

    args: bytes
    image: bytes
    pointers: bytes
    symbol: str
    formula: float


class _Recorder(TiledRun):
    """Keeps what each tile is called with instead of calling it; tiles with the same numbers once."""

    def record(self) -> tuple[dict[bytes, _Kind], Counter[bytes]]:
        self.kinds: dict[bytes, _Kind] = {}
        self.times: Counter[bytes] = Counter()
        self.all_tiles()
        return self.kinds, self.times

    def _junk(self, count: int, dtype: np.dtype) -> np.ndarray:
        return np.zeros(count, dtype)  # partial sums of earlier tiles: as harmless as real ones

    def _call(self, tile: Tile, l1: L1, first: bool, last: bool) -> None:
        args = self._arguments(tile, l1, first, last)
        numbers = bytes(self._without_places(args))
        self.times[numbers] += 1
        if numbers not in self.kinds:
            image, pointers = _image(self._pointers(args), l1)
            self.kinds[numbers] = _Kind(bytes(args), image, pointers, self.source.symbol, self._formula(tile))

    @cached_property
    def source(self) -> KernelSource:
        return kernel_source(self.kernel, self.implementation, dict(self.bound.attrs), self.variadic)

    def _pointers(self, args: ctypes.Structure) -> list[tuple[str, int]]:
        found = [(m.name, m.of) for m in self.members if m.kind in ("pointer", "scratch", "accumulator")]
        return [(of, getattr(type(args), name).offset) for name, of in found if getattr(args, name) is not None]

    def _without_places(self, args: ctypes.Structure) -> ctypes.Structure:
        copy = type(args).from_buffer_copy(args)
        for m in self.members:
            if m.kind in ("pointer", "scratch", "accumulator"):
                setattr(copy, m.name, None)
        return copy

    def _formula(self, tile: Tile) -> float:
        environment = {a: r.n.const for a, r in tile.ranges.items()} | {"cores": self.cores}
        for name, box in tile.boxes.items():
            environment |= {f"{name}_{d}": b.extent.const for d, b in zip(self.operands[name].dims, box, strict=True)}
        return float(evaluate(self.bound.cycles, environment))


def _image(pointers: Sequence[tuple[str, int]], l1: L1) -> tuple[bytes, bytes]:
    """L1, and where in the arguments its places go."""
    places, image = dict[str, int](), b""
    for name, _ in pointers:
        if name not in places:
            places[name] = len(image)
            data = l1.bytes_of(name).tobytes()
            image += data + bytes(-len(data) % 64 + 64)
    return image, b"".join(struct.pack("II", at, places[name]) for name, at in pointers)


def _recorder(kernel: Kernel, case: Case, tiles: Mapping[str, int]) -> _Recorder:
    call = BoundKernel(kernel, case.implementation, case.call.operands, *case.bound)
    return _Recorder(call, Setting(tiles, CORES))


def measure(kernel: Kernel, cases: Sequence[Case]) -> list[list[Measured]]:
    """Of each case, each tiling's formula and instructions, in order. Raises NoValgrindError."""
    if not HEADER.is_file() or shutil.which("valgrind") is None:
        raise NoValgrindError("valgrind with its headers is not installed")
    recorded = [[(tiles, *_recorder(kernel, c, tiles).record()) for tiles in c.tilings] for c in cases]
    known = [{n: k for _, kinds, _ in one for n, k in kinds.items()} for one in recorded]
    counted = iter(
        _count(kernel, [_recorder(kernel, c, {}).source for c in cases], [k for kinds in known for k in kinds.values()])
    )
    found: list[list[Measured]] = []
    for one, kinds in zip(recorded, known, strict=True):
        instructions = {n: next(counted) for n in kinds}
        found.append([_measured(tiles, times, kinds, instructions) for tiles, _, times in one])
    return found


def _measured(
    tiles: Mapping[str, int], times: Counter[bytes], kinds: Mapping[bytes, _Kind], instructions: Mapping[bytes, int]
) -> Measured:
    return Measured(
        tiles,
        sum(kinds[k].formula * n for k, n in times.items()),
        sum(instructions[k] * n for k, n in times.items()),
        times.total(),
    )


def _count(kernel: Kernel, sources: Sequence[KernelSource], kinds: Sequence[_Kind]) -> list[int]:
    """The busiest core's instructions of each kind of tile."""
    by_symbol = {s.symbol: s for s in sources}
    symbols = list(by_symbol)
    records = [_record(k, symbols.index(k.symbol)) for k in kinds]
    harness = HARNESS.replace("CORES", str(CORES)).replace("NAMES", ", ".join(symbols))
    harness = harness.replace("DECLARATIONS", "\n".join(f"void {s}(const void *);" for s in symbols))
    with tempfile.TemporaryDirectory(prefix="gap-fuse-cycles-") as name:
        folder = Path(name)
        files = dict(common_headers({kernel.name: kernel})) | {f: t for s in sources for f, t in s.files.items()}
        for file, text in files.items():
            (folder / file).write_text(text)
        (folder / "harness.c").write_text(harness)
        (folder / "tiles.bin").write_bytes(b"".join(records))
        units = dict.fromkeys(s.unit for s in by_symbol.values())
        _run([COMPILER, *FLAGS, *BOUND_EARLY, "-I.", *units, "harness.c", "-lm", "-o", "harness"], folder)
        _run([*CALLGRIND, "./harness", "tiles.bin"], folder)
        parts = [_total(folder / f"out.{i}") for i in range(1, CORES * len(records) + 1)]
    return [max(parts[i : i + CORES]) for i in range(0, len(parts), CORES)]


def _record(kind: _Kind, function: int) -> bytes:
    sizes = struct.pack("IIII", len(kind.args), len(kind.image), len(kind.pointers) // 8, function)
    return sizes + kind.args + kind.image + kind.pointers


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr}")


def _total(part: Path) -> int:
    line = next(line for line in part.read_text().splitlines() if line.startswith(("summary:", "totals:")))
    return int(line.split()[1])


def tilings_of(bound: BoundCall, most: int, largest: int = 64) -> list[dict[str, int]]:
    """Legal tilings of at most `largest` tiles: the least split one, and others drawn from all halves, thirds, eighths
    and single steps of every axis."""
    sizes = [[(a.name, n) for n in _sizes(a)] for a in bound.axes]
    found = [dict(t) for t in product(*sizes) if _tiles(bound, dict(t)) <= largest]
    return [found[0], *Random(0).sample(found[1:], min(most, len(found)) - 1)]


def _sizes(axis: BoundAxis) -> list[int]:
    if axis.whole:
        return [axis.extent]
    most = min(axis.extent, axis.limit or axis.extent)
    parts = [most, *(-(-axis.extent // n) for n in (2, 3, 8)), 1]
    return list(dict.fromkeys(min(-(-n // axis.step) * axis.step, most) for n in parts))


def _tiles(bound: BoundCall, tiles: Mapping[str, int]) -> int:
    return prod(-(-a.extent // tiles[a.name]) for a in bound.axes)
