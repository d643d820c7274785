"""The operators table: interface of each ONNX operator, per operator set version, from onnx's own schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx import defs, numpy_helper

VIEW_OPSET = min(26, defs.onnx_opset_version())
"""The operator set whose interfaces the view uses."""

FLIP_SIGN = "gap_fuse::FlipSign"
"""uint8 <-> int8 by x ^ 0x80: the meaning of a quantised value is kept when its zero point moves by 128."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Interface of an operator: `arity` formal inputs (the last repeats if `variadic`), defaults of every attribute
    (None where there is none), those of them that are values, and the attributes' ONNX types."""

    op: str
    since: int
    arity: int
    variadic: bool
    outputs: int
    defaults: Mapping[str, Any]
    written: Mapping[str, Any]
    types: Mapping[str, int]
    schema: Any


@lru_cache(maxsize=4096)
def operator(op: str, version: int = VIEW_OPSET) -> Operator | None:
    """The interface of `op` (`Name` or `domain::Name`) at operator set `version`; None if ONNX does not define it."""
    domain, name = split_op(op)
    try:
        schema = defs.get_schema(name, version, domain)
    except Exception:  # SchemaError is not public in every release
        return None
    if schema.deprecated:
        return None
    formals = list(schema.inputs)
    variadic = bool(formals) and formals[-1].option == defs.OpSchema.FormalParameterOption.Variadic
    defaults = {k: _default(a) for k, a in sorted(schema.attributes.items())}
    types = {k: _type_number(a.type) for k, a in schema.attributes.items()}
    return Operator(
        op=op,
        since=schema.since_version,
        arity=len(formals),
        variadic=variadic,
        outputs=len(schema.outputs),
        defaults=MappingProxyType(defaults),
        written=MappingProxyType({k: v for k, v in defaults.items() if v is not None}),
        types=types,
        schema=schema,
    )


@lru_cache(maxsize=4096)
def written_version(op: str, version: int) -> int:
    """The operator set whose interface the view uses for `op` of a file of operator set `version`: VIEW_OPSET, but the
    file's own where that is newer and changed the operator, or where the operator is gone by now."""
    own = operator(op, version)
    if operator(op) is None or (own is not None and own.since > VIEW_OPSET):
        return version
    return VIEW_OPSET


@lru_cache(maxsize=64)
def newest(domain: str) -> int:
    """The operator set version of `domain` that the view uses."""
    if domain == "":
        return VIEW_OPSET
    return max((s.since_version for s in defs.get_all_schemas() if s.domain == domain), default=1)


def split_op(op: str) -> tuple[str, str]:
    """`domain::Name` -> (domain, Name); the default domain is ''."""
    domain, found, name = op.rpartition("::")
    return (domain, name) if found else ("", op)


def join_op(domain: str, name: str) -> str:
    return name if domain in ("", "ai.onnx") else f"{domain}::{name}"


def _type_number(kind: Any) -> int:
    """The schema's attribute type as AttributeProto numbers it; an enum in every release so far."""
    return int(getattr(kind, "value", kind))


def _default(attribute: Any) -> Any:
    value = attribute.default_value
    return attribute_value(value) if value.name else None


def attribute_value(a: onnx.AttributeProto) -> Any:
    """The Python value of an attribute: tuples for lists, str for strings, arrays for tensors; graphs stay protos."""
    kind = a.type
    if kind == onnx.AttributeProto.INT:
        return a.i
    if kind == onnx.AttributeProto.INTS:
        return tuple(a.ints[:])
    if kind == onnx.AttributeProto.FLOAT:
        return a.f
    if kind == onnx.AttributeProto.FLOATS:
        return tuple(a.floats[:])
    if kind == onnx.AttributeProto.STRING:
        return _text(a.s)
    if kind == onnx.AttributeProto.STRINGS:
        return tuple(_text(s) for s in a.strings)
    if kind == onnx.AttributeProto.TENSOR:
        return numpy_helper.to_array(a.t)
    if kind == onnx.AttributeProto.GRAPH:
        return a.g
    if kind == onnx.AttributeProto.SPARSE_TENSOR:
        return dense(a.sparse_tensor)
    return a.SerializeToString()


def _text(s: bytes) -> str:
    return s.decode("utf-8", "backslashreplace")


def array_of(tensor: onnx.TensorProto) -> np.ndarray:
    """The array of a tensor. Many small ones are read: the plain kinds are decoded here."""
    plain = _PLAIN.get(tensor.data_type)
    raw = b"" if plain is None or tensor.data_location or tensor.HasField("segment") else tensor.raw_data
    return np.frombuffer(raw, plain).reshape(tensor.dims[:]) if raw else numpy_helper.to_array(tensor)


_PLAIN: dict[int, np.dtype[Any]] = {
    onnx.TensorProto.FLOAT: np.dtype("<f4"),
    onnx.TensorProto.INT8: np.dtype("i1"),
    onnx.TensorProto.UINT8: np.dtype("u1"),
    onnx.TensorProto.INT32: np.dtype("<i4"),
    onnx.TensorProto.INT64: np.dtype("<i8"),
}


def dense(sparse: onnx.SparseTensorProto) -> np.ndarray:
    """The dense array of a sparse tensor."""
    values = numpy_helper.to_array(sparse.values)
    indices = numpy_helper.to_array(sparse.indices)
    result = np.zeros(tuple(sparse.dims), values.dtype)
    where = np.unravel_index(indices, result.shape) if indices.ndim == 1 else tuple(indices.T)
    result[where] = values
    return result
