"""What the compiler made of the emitted C, beside what the memory that holds code has left for it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

from gap_fuse.compiling import Compiled
from gap_fuse.running import Build

RESERVED = "code"  # the item of `levels.*.reserved` in target.yaml


@dataclass(frozen=True, slots=True)
class CodeSize:
    """Bytes in one memory: of `code` (network, kernels, copies; their variables and tables, but those that the plan
    counts), of plan data (`peak`, those tables included), and reserved for the rest; `bytes` in all, `reserved` of them
    for code."""

    level: str
    bytes: int
    reserved: int
    rest: int
    peak: int
    code: int

    @property
    def passed(self) -> bool:
        """Whether everything fits the memory, or the plan is for one larger than the target's anyway."""
        room = self.bytes - self.rest
        return self.peak + self.reserved > room or self.code + self.peak <= room

    def __str__(self) -> str:
        item = f"levels.{self.level}.reserved.{RESERVED} of target.yaml"
        what = f"{self.code:,} B of code and tables by the compiler here; {self.reserved:,} are set aside ({item})"
        if self.passed:
            return what + ("" if self.code <= self.reserved else f": more, but beside {self.peak:,} of data they fit")
        least = self.bytes - self.rest - self.code
        return f"{what}: too much beside {self.peak:,} of data (compile with --{self.level} {max(least, 1)})"


def code_size(compiled: Compiled, how: Build) -> CodeSize | None:
    """Of a program that `build` made. None where the target reserves nothing for code, or `size` is not installed."""
    level = next((v for v in compiled.target.levels.values() if RESERVED in v.reserved), None)
    if level is None or shutil.which("size") is None:
        return None
    folder = compiled.folder / how.folder
    objects = [folder / "network.o", folder / "port" / "gf_copy.o", *sorted(folder.glob("kernels/*/*.o"))]
    done = subprocess.run(["size", *map(str, objects)], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    code = sum(int(n) for line in done.stdout.splitlines()[1:] for n in line.split()[:3])
    reserved = level.reserved[RESERVED]
    rest = sum(level.reserved.values()) - reserved
    report = compiled.report
    tables = report["tables"] if level.name == "l2" else 0
    return CodeSize(level.name, level.bytes, reserved, rest, report["peaks"][level.name] + tables, code - tables)
