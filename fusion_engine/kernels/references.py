"""The executable meaning of a kernel: its numpy function, loaded by path."""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.kernels.descriptor import Kernel


def reference(kernel: Kernel) -> Callable[..., Any]:
    """The function named by `semantics:`. Raises GapFuseError: none declared, or its file does not load."""
    if kernel.semantics is None:
        raise GapFuseError(f"the kernel `{kernel.name}` has no reference")
    file, function = kernel.semantics
    path = (kernel.folder / file).resolve()
    found = getattr(load_module(path), function, None)
    if found is None:
        raise GapFuseError(Diagnostic(f"defines no function `{function}`", Span(str(path))))
    return found  # type: ignore[no-any-return]


def answer(kernel: Kernel, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """What the reference answers. Raises GapFuseError where the author's function fails, at the line that failed."""
    function = reference(kernel)
    try:
        return function(*operands, **attrs)
    except GapFuseError:
        raise
    except Exception as e:
        raise GapFuseError(_failure(kernel, e)) from e


def _failure(kernel: Kernel, error: Exception) -> Diagnostic:
    folder = str(kernel.folder.resolve())
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(folder)]
    message = f"the reference of {kernel.name} fails: {type(error).__name__}: {error}"
    if not own:
        return Diagnostic(message, help="its arguments: operands in order, attributes by name")
    line, col, end = own[-1].lineno or 0, (own[-1].colno or 0) + 1, (own[-1].end_colno or 0) + 1
    source = linecache.getline(own[-1].filename, line).rstrip()
    return Diagnostic(message, Span(own[-1].filename, line, col, end), source=source)


@cache
def load_module(path: Path) -> ModuleType:
    """A Python file of a data room as a module of its own name; nothing is put on sys.path. Raises GapFuseError."""
    name = f"gap_fuse_room_{path.parent.name}_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise GapFuseError(Diagnostic("is not a Python file", Span(str(path))))
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise GapFuseError(Diagnostic(f"does not load: {type(e).__name__}: {e}", Span(str(path)))) from e
    return module
