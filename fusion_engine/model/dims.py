"""Symbolic dimensions: every dimension of an input gets a value, or the error says how to give one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span, did_you_mean


@dataclass(frozen=True, slots=True)
class _Open:
    """A dimension of an input whose extent the file leaves open."""

    value: str
    axis: int
    symbol: str
    is_zero: bool  # the file says 0: an empty tensor, or, from some exporters, an unknown extent

    @property
    def place(self) -> str:
        return f"{self.value}:{self.axis}"

    @property
    def key(self) -> str:
        """The name to give it by: the symbol if it has one that can be typed, else INPUT:AXIS."""
        return self.symbol if re.search(r"\w", self.symbol) else self.place


def bind_dims(proto: onnx.ModelProto, dims: dict[str, int], where: Span | None) -> dict[str, int]:
    """Write `dims` into the inputs, value_info and outputs; return them sorted by name.

    Raises GapFuseError for an open input dimension without a value, an unknown name or an extent below 1.
    """
    constants = {t.name for t in proto.graph.initializer}
    inputs = [i for i in proto.graph.input if i.name not in constants]
    opens = [o for i in inputs for o in _open_dims(i)]
    problems = [*_unknown(proto, dims, opens, inputs, where), *_unbound(dims, opens, where), *_shapeless(inputs, where)]
    if problems:
        raise GapFuseError(problems)
    for value in inputs:
        _bind_input(value, dims)
    for value in [*proto.graph.value_info, *proto.graph.output]:
        _bind_symbols(value, _symbols(dims, opens))
    return dict(sorted(dims.items()))


def _open_dims(value: onnx.ValueInfoProto) -> list[_Open]:
    shape = value.type.tensor_type.shape
    return [
        _Open(value.name, axis, d.dim_param, d.HasField("dim_value") and d.dim_value == 0)
        for axis, d in enumerate(shape.dim)
        if d.dim_value < 1
    ]


def _unknown(
    proto: onnx.ModelProto,
    dims: dict[str, int],
    opens: list[_Open],
    inputs: list[onnx.ValueInfoProto],
    where: Span | None,
) -> list[Diagnostic]:
    known = sorted({o.key for o in opens} | {o.symbol for o in opens if o.symbol} | {o.place for o in opens})
    found = []
    for name, extent in sorted(dims.items()):
        if name not in known and name not in _all_symbols(proto):
            found.append(
                Diagnostic(f"no dimension is called `{name}`{_fixed(name, inputs)}", where, _names_help(name, opens))
            )
        elif isinstance(extent, bool) or not isinstance(extent, int) or not 1 <= extent < 2**31:
            found.append(
                Diagnostic(
                    f"dimension `{name}` cannot be {extent!r}", where, "an extent is a whole number from 1 to 2^31 - 1"
                )
            )
    return found


def _fixed(name: str, inputs: list[onnx.ValueInfoProto]) -> str:
    value, _, axis = name.rpartition(":")
    for i in inputs:
        shape = i.type.tensor_type.shape.dim
        if i.name == value and axis.isdigit() and int(axis) < len(shape):
            return f": axis {axis} of input `{value}` is fixed at {shape[int(axis)].dim_value}"
    return ""


def _names_help(name: str, opens: list[_Open]) -> str:
    keys = list(dict.fromkeys(o.key for o in opens))
    if not keys:
        return "every input of this model has a fixed shape: leave --dim out"
    return did_you_mean(name, keys) or "the open dimensions are " + ", ".join(f"`{k}`" for k in keys)


def _all_symbols(proto: onnx.ModelProto) -> set[str]:
    values = [*proto.graph.input, *proto.graph.output, *proto.graph.value_info]
    return {d.dim_param for v in values for d in v.type.tensor_type.shape.dim if d.dim_param}


def _unbound(dims: dict[str, int], opens: list[_Open], where: Span | None) -> list[Diagnostic]:
    missing = [o for o in opens if not (o.place in dims or (o.symbol and o.symbol in dims))]
    every = " ".join(f"--dim {_shell(o.key)}={_guess(o)}" for o in _one_per_key(missing))
    return [Diagnostic(_says(o), where, f"give its extent, for example {every}") for o in _one_per_key(missing)]


def _one_per_key(opens: list[_Open]) -> list[_Open]:
    first: dict[str, _Open] = {}
    for o in opens:
        first.setdefault(o.key, o)
    return list(first.values())


def _says(o: _Open) -> str:
    called = f" is called `{o.symbol}` and" if o.symbol else ""
    batch = "; as the leading axis it is usually the batch" if o.axis == 0 else ""
    extent = "has extent 0: it is empty, or the exporter did not know it" if o.is_zero else "has no extent"
    return f"axis {o.axis} of input `{o.value}`{called} {extent}{batch}"


def _guess(o: _Open) -> str:
    return "1" if o.axis == 0 else "N"


def _shell(key: str) -> str:
    return key if re.fullmatch(r"[\w:./-]+", key) else f"'{key}'"


def _shapeless(inputs: list[onnx.ValueInfoProto], where: Span | None) -> list[Diagnostic]:
    found = []
    for value in inputs:
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not tensor.elem_type:
            found.append(Diagnostic(f"input `{value.name}` is not a tensor with an element type", where))
        elif not tensor.HasField("shape"):
            message = f"input `{value.name}` has no shape, not even a rank"
            found.append(Diagnostic(message, where, "export the model with the shapes of its inputs"))
    return found


def _bind_input(value: onnx.ValueInfoProto, dims: dict[str, int]) -> None:
    for o in _open_dims(value):
        extent = dims.get(o.place, dims.get(o.symbol) if o.symbol else None)
        assert extent is not None
        value.type.tensor_type.shape.dim[o.axis].dim_value = extent


def _symbols(dims: dict[str, int], opens: list[_Open]) -> dict[str, int]:
    """What each symbol stands for, where its inputs agree."""
    given: dict[str, set[int]] = {}
    for o in opens:
        if o.symbol:
            given.setdefault(o.symbol, set()).add(dims.get(o.place, dims.get(o.symbol, 0)))
    agreed = {symbol: next(iter(extents)) for symbol, extents in given.items() if len(extents) == 1}
    return {**{k: v for k, v in dims.items() if k not in given}, **agreed}


def _bind_symbols(value: onnx.ValueInfoProto, symbols: dict[str, int]) -> None:
    for d in value.type.tensor_type.shape.dim:
        if d.dim_param in symbols:
            d.dim_value = symbols[d.dim_param]
