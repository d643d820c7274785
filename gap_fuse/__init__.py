"""gap-fuse: declarative fusion rules, an exact tiler and a C emitter for ONNX networks on small multi-core chips."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gap_fuse.compiling import Result, compile
    from gap_fuse.measuring import measure
    from gap_fuse.quantising import quantize
    from gap_fuse.running import run
    from gap_fuse.verdict import Verdict
    from gap_fuse.verifying import verify

__all__ = ["Result", "Verdict", "compile", "measure", "quantize", "run", "verify"]

_HOMES = {
    "Result": "compiling",
    "Verdict": "verdict",
    "compile": "compiling",
    "measure": "measuring",
    "quantize": "quantising",
    "run": "running",
    "verify": "verifying",
}


def __getattr__(name: str) -> Any:
    """Each name on first use, so that `gap-fuse --help` does not load numpy, onnx and the engines."""
    if name not in _HOMES:
        raise AttributeError(f"module `gap_fuse` has no attribute `{name}`")
    return getattr(import_module(f"gap_fuse.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
