"""The C files of one kernel call: its source or generated text, its argument header, the headers it may include."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.graph import CallAttr
from fusion_engine.kernels.descriptor import Implementation, Kernel
from fusion_engine.kernels.references import load_module
from tiler.emit.args import args_header, c_symbol


@dataclass(frozen=True)
class KernelSource:
    """`symbol` is the C function, `unit` the file to compile, `files` name -> text of it and of its own headers."""

    symbol: str
    unit: str
    files: Mapping[str, str]


def kernel_source(
    kernel: Kernel, implementation: Implementation, attrs: Mapping[str, CallAttr], variadic: int = 0
) -> KernelSource:
    """The files for one call. Generated functions differ by attributes and get a suffix each.

    Raises GapFuseError where the source is missing or its generator fails.
    """
    suffix = _suffix(implementation, attrs, variadic)
    symbol = c_symbol(implementation, suffix)
    header = {f"{symbol}_args.h": args_header(kernel, implementation, variadic, suffix)}
    if implementation.generate is not None:
        text = _generated(kernel, implementation.generate, attrs, symbol, variadic)
        return KernelSource(symbol, f"{symbol}.c", {f"{symbol}.c": text} | header)
    if implementation.source is None:
        raise GapFuseError(f"implementation `{implementation.name}` of kernel `{kernel.name}` has no C source")
    text = _read(kernel.folder / implementation.source)
    local = {path.name: _read(path) for path in sorted(kernel.folder.glob("*.h"))}
    return KernelSource(symbol, implementation.source, {implementation.source: text} | local | header)


def common_headers(kernels: Mapping[str, Kernel]) -> Mapping[str, str]:
    """Headers of the first `common` folder beside the kernels' folders. Raises GapFuseError if there is none."""
    rooms = sorted({kernel.folder.parent for kernel in kernels.values()})
    for room in rooms:
        if (room / "common" / "gf_kernel.h").is_file():
            return {path.name: _read(path) for path in sorted((room / "common").glob("*.h"))}
    raise GapFuseError("no kernel directory has common/gf_kernel.h")


def _suffix(implementation: Implementation, attrs: Mapping[str, CallAttr], variadic: int) -> str:
    if implementation.generate is None:
        return ""
    text = repr((sorted(attrs.items()), variadic))
    return "_" + hashlib.sha256(text.encode()).hexdigest()[:8]


def _generated(
    kernel: Kernel, generate: tuple[str, str], attrs: Mapping[str, CallAttr], symbol: str, variadic: int
) -> str:
    path = kernel.folder / generate[0]
    function = getattr(load_module(path.resolve()), generate[1], None)
    if function is None:
        raise GapFuseError(Diagnostic(f"defines no function `{generate[1]}`", Span(str(path))))
    try:
        return str(function(dict(attrs), symbol, variadic))
    except Exception as e:  # a generator is somebody else's code: name it, whatever it raised
        raise GapFuseError(Diagnostic(f"`{generate[1]}` failed: {type(e).__name__}: {e}", Span(str(path)))) from e


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as e:
        raise GapFuseError(Diagnostic(f"cannot be read: {e.strerror}", Span(str(path)))) from e
