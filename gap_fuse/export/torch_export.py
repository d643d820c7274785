"""fusion_friendly_export(): torch's exporter, then module instances as functions with their constructor arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError
from gap_fuse.export.functions import Attribute
from gap_fuse.export.keep import NAMESPACE, Kept
from gap_fuse.export.marks import recording, resolved
from gap_fuse.export.outlining import Outlined, outline

if TYPE_CHECKING:
    from torch import nn

NOT_ATTRIBUTES = {"self", "device", "dtype"}


def fusion_friendly_export(
    module: nn.Module,
    args: tuple[Any, ...],
    path: str | Path | None = None,
    *,
    keep: Sequence[Kept] = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    opset: int | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> Outlined:
    """Export a torch module to ONNX whose high-level operators are functions named by where they came from.

    torch's exporter (dynamo) runs in evaluation mode; then each instance of a kept class, and of every class or
    function marked with `@namespaced`, becomes a call: domain = Python module path (or the mark's), name = class,
    constructor arguments as typed attributes, weights as inputs, body = torch's own decomposition. The model is checked
    and, with `path`, saved. Needs torch 2.13 or newer. Raises GapFuseError without torch, or for a malformed `keep`.
    """
    exported = _exported(module, args, dict(kwargs or {}), dynamic_shapes, opset, input_names, output_names)
    plain, rules = resolved(exported)
    marked = [type(m) for m in module.modules() if hasattr(type(m), NAMESPACE)]
    outlined = outline(plain, [*rules, *keep, *dict.fromkeys(marked)], arguments_of(module))
    onnx.checker.check_model(outlined.model)
    if path is not None:
        onnx.save(outlined.model, str(path))
    return outlined


def arguments_of(module: nn.Module) -> dict[str, dict[str, Attribute]]:
    """Each instance's constructor arguments, where it holds them under their names and ONNX has a type for them."""
    return {name: _arguments(m) for name, m in module.named_modules()}


def _exported(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    opset: int | None,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> onnx.ModelProto:
    try:
        import torch
    except ImportError:
        raise GapFuseError(Diagnostic("fusion_friendly_export needs torch", help="pip install torch")) from None
    with recording(), _evaluating(module):
        program = torch.onnx.export(
            module,
            args,
            kwargs=kwargs,
            dynamo=True,
            opset_version=opset,
            dynamic_shapes=dynamic_shapes,
            input_names=input_names,
            output_names=output_names,
            verbose=False,
        )
    assert program is not None
    return program.model_proto


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    training = [m for m in module.modules() if m.training]
    module.eval()
    try:
        yield
    finally:
        for m in training:
            m.training = True


def _arguments(module: nn.Module) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for parameter in _parameters(type(module)):
        name = parameter.name
        value = _attribute(getattr(module, name, None), parameter.default)
        if value is not None:
            found[name] = value
    return found


def _parameters(kind: type) -> Iterator[inspect.Parameter]:
    """Of the class and its bases: nn.GRU takes *args and leaves them to RNNBase."""
    seen = set(NOT_ATTRIBUTES)
    for base in kind.__mro__:
        if "__init__" in vars(base) and base is not object:
            for p in inspect.signature(base.__init__).parameters.values():  # type: ignore[misc]
                if p.name not in seen and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                    seen.add(p.name)
                    yield p


def _attribute(value: Any, default: Any) -> Attribute | None:
    """An int, float, text or list of one of them; a flag is 0 or 1, a parameter that a flag asked for is that flag."""
    if isinstance(default, bool) and not isinstance(value, int):
        return int(value is not None)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, list | tuple) and value and {type(v) for v in value} in ({int}, {float}, {str}):
        return list(value)
    return None
