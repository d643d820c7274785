"""Compiles one implementation to a shared library, once per text."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from fusion_engine.kernels.descriptor import Implementation, Kernel
from gap_fuse.rooms import room
from tiler.emit.args import ArgMember
from tiler.emit.sources import KernelSource, common_headers, kernel_source

COMPILER = os.environ.get("CC", "gcc")
LIMIT = 10  # seconds of computing that one tile may take; milliseconds are usual
FLAGS = (
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    "-Wno-psabi",
    "-O1",
    "-fPIC",
    "-shared",
    "-Wl,-Bsymbolic",
)

RUNNER = """
static int core, cores;
int gf_core_id(void);
int gf_core_count(void);
int gf_core_id(void) { return core; }
int gf_core_count(void) { return cores; }
void gf_run_cores(void (*fn)(const void *), const void *args, int team, int n, const int *order);
void gf_run_cores(void (*fn)(const void *), const void *args, int team, int n, const int *order) {
  cores = team;
  for (int i = 0; i < n; i++) {
    core = order[i];
    fn(args);
  }
}
void gf_hide(const void *p, unsigned long n);
void gf_reveal(const void *p, unsigned long n);
#ifdef __SANITIZE_ADDRESS__
void __asan_poison_memory_region(void const volatile *, unsigned long);
void __asan_unpoison_memory_region(void const volatile *, unsigned long);
void gf_hide(const void *p, unsigned long n) { __asan_poison_memory_region(p, n); }
void gf_reveal(const void *p, unsigned long n) { __asan_unpoison_memory_region(p, n); }
#else
void gf_hide(const void *p, unsigned long n) { (void)p; (void)n; }
void gf_reveal(const void *p, unsigned long n) { (void)p; (void)n; }
#endif
"""


class Library:
    """A loaded implementation. `run(args, team, order)` calls it for every core number of `order` in turn, in a team
    of so many.

    Raises GapFuseError for one that defines no such function. C that does not end is killed with the process
    (SIGVTALRM) after `LIMIT` seconds of computing.
    """

    def __init__(self, path: Path, symbol: str, unit: str) -> None:
        try:
            self._lib = ctypes.CDLL(str(path))
            self._fn = ctypes.cast(getattr(self._lib, symbol), ctypes.c_void_p)
        except (OSError, AttributeError) as e:
            what = f"{unit} defines no function `{symbol}`" if isinstance(e, AttributeError) else f"{unit}: {e}"
            raise GapFuseError(Diagnostic(what, help="it is the `symbol` of kernel.yaml")) from e

    def run(self, args: ctypes.Structure, team: int, order: tuple[int, ...]) -> None:
        numbers = (ctypes.c_int * len(order))(*order)
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
        self._lib.gf_run_cores(self._fn, ctypes.byref(args), team, len(order), numbers)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def hide(self, address: int, size: int) -> None:
        """Whoever touches these bytes from C is reported, where the address sanitizer is built in."""
        self._lib.gf_hide(ctypes.c_void_p(address), ctypes.c_ulong(size))

    def reveal(self, address: int, size: int) -> None:
        """Undo `hide`."""
        self._lib.gf_reveal(ctypes.c_void_p(address), ctypes.c_ulong(size))


def library(
    kernel: Kernel,
    implementation: Implementation,
    attrs: Mapping[str, object],
    variadic: int,
    flags: tuple[str, ...] = FLAGS,
) -> Library:
    """Compile (with every warning an error) and load. Raises GapFuseError with what the compiler says."""
    source = kernel_source(kernel, implementation, attrs, variadic)  # type: ignore[arg-type]
    files = tuple(sorted({**_headers(kernel), **source.files}.items()))
    return _library(source.symbol, source.unit, files, flags)


def _headers(kernel: Kernel) -> Mapping[str, str]:
    """Those of the kernel's own room, or the shipped ones."""
    own = (kernel.folder.parent / "common" / "gf_kernel.h").is_file()
    home = kernel if own else replace(kernel, folder=room("kernels") / kernel.name)
    return common_headers({kernel.name: home})


@cache
def _library(symbol: str, unit: str, files: tuple[tuple[str, str], ...], flags: tuple[str, ...]) -> Library:
    key = hashlib.sha256(repr((symbol, unit, files, flags, COMPILER, RUNNER)).encode()).hexdigest()[:24]
    path = _folder() / f"{key}.so"
    if not path.exists():
        compile_library(path, KernelSource(symbol, unit, dict(files)), flags)
    return Library(path, symbol, unit)


@cache
def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"gap_fuse_kernel_cache_{os.getuid()}"
    folder.mkdir(exist_ok=True)
    return folder


def compile_library(path: Path, source: KernelSource, flags: tuple[str, ...]) -> None:
    """The host's compiler, in a folder of its own; the result appears whole or not at all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in source.files.items():
            (folder / file).write_text(text)
        (folder / "gf_cores.c").write_text(RUNNER)
        command = [COMPILER, *flags, "-I.", source.unit, "gf_cores.c", "-lm", "-o", "out.so"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise GapFuseError(Diagnostic(f"{source.unit} does not compile:\n{done.stderr}"))
        temporary = path.with_suffix(f".{id(source)}.part")
        temporary.write_bytes((folder / "out.so").read_bytes())
        temporary.replace(path)


_CTYPES = {
    "float": ctypes.c_float, "double": ctypes.c_double,
    "int8_t": ctypes.c_int8, "int16_t": ctypes.c_int16, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
    "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64,
}  # fmt: skip


def structure(members: tuple[ArgMember, ...]) -> type[ctypes.Structure]:
    """The argument struct as a ctypes class."""

    def field(m: ArgMember) -> tuple[str, Any]:
        base: Any = ctypes.c_void_p if m.ctype.endswith("*") else _CTYPES[m.ctype]
        return m.name, (base * m.length) if m.length is not None else base

    return type("Args", (ctypes.Structure,), {"_fields_": [field(m) for m in members]})
