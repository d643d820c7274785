"""The draft: the graph while it is brought to normal form. Mutable, never leaves this package."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import onnx

from fusion_engine.diagnostics import Diagnostic, GapFuseError, Span
from fusion_engine.view.operators import VIEW_OPSET
from fusion_engine.view.types import Dim, Scope, ViewValue, view_value

Shape = tuple[Dim, ...] | None
Type = tuple[str | None, Shape]
UNKNOWN: Type = (None, None)


@dataclass(slots=True, eq=False)
class Node:
    """A node on its way into the view. `version` is the operator set version its interface is written in.

    Absent inputs are None, absent outputs "". `captures` are outer values that its subgraphs read.
    """

    op: str
    inputs: list[str | None]
    outputs: list[str]
    attrs: dict[str, Any]
    origins: tuple[str, ...]
    scopes: tuple[Scope, ...] = ()
    version: int = VIEW_OPSET
    overload: str = ""
    captures: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()

    def derive(self, op: str, inputs: Iterable[str | None], outputs: Iterable[str], **attrs: Any) -> Node:
        """A node in the view's form that stands for the same nodes of the file."""
        return Node(op, list(inputs), list(outputs), attrs, self.origins, self.scopes, metadata=self.metadata)

    def moved(self, inputs: Iterable[str | None], outputs: Iterable[str]) -> Node:
        """This node on other values."""
        return replace(self, inputs=list(inputs), outputs=list(outputs), attrs=dict(self.attrs))

    def input(self, index: int) -> str | None:
        return self.inputs[index] if index < len(self.inputs) else None


@dataclass(slots=True, eq=False)
class Draft:
    """Values and the nodes already in normal form, in topological order."""

    where: Span | None = None
    values: dict[str, ViewValue] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    producer: dict[str, Node] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    declared: dict[str, Type] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    constants: dict[Hashable, str] = field(default_factory=dict)
    twins: dict[Hashable, Node] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def resolve(self, name: str | None) -> str | None:
        """The value that stands for `name`."""
        while name in self.aliases:
            name = self.aliases[name]
        return name

    def type(self, name: str | None) -> Type:
        value = self.values.get(name) if name is not None else None
        return (value.dtype, value.shape) if value is not None else UNKNOWN

    def dtype(self, name: str | None) -> str | None:
        value = self.values.get(name) if name is not None else None
        return value.dtype if value is not None else None

    def shape(self, name: str | None) -> Shape:
        value = self.values.get(name) if name is not None else None
        return value.shape if value is not None else None

    def static(self, name: str | None) -> tuple[int, ...] | None:
        value = self.values.get(name) if name is not None else None
        return value.static_shape if value is not None else None

    def rank(self, name: str | None) -> int | None:
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def const(self, name: str | None) -> np.ndarray | None:
        """The value of a constant (also of one that DequantizeLinear makes of a constant), or None."""
        value = self.values.get(name) if name is not None else None
        return value.const if value is not None else None

    def stored(self, name: str | None) -> np.ndarray | None:
        """The value of a constant that no node makes, or None."""
        return None if name in self.producer else self.const(name)

    def made_by(self, name: str | None, op: str) -> Node | None:
        """The node that makes `name`, if its operator is `op`."""
        node = self.producer.get(name) if name is not None else None
        return node if node is not None and node.op == op else None

    def fresh(self, base: str) -> str:
        """A value name that nothing else has: `base`, or `base` and a number."""
        name, n = base, self.counts.get(base, 1)
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.counts[base] = n
        self.taken.add(name)
        return name

    def put_const(self, array: np.ndarray, base: str) -> str:
        """The name of a constant with this value; equal constants share one."""
        array = np.asarray(array)
        key = constant_key(array)
        if (known := self.constants.get(key)) is not None:
            return known
        name = self.fresh(base)
        self.set_const(name, array)
        self.constants[key] = name
        return name

    def set_const(self, name: str, array: np.ndarray) -> None:
        self.values[name] = view_value(name, named(array.dtype), array.shape, array)
        self.taken.add(name)

    def name_const(self, name: str, array: np.ndarray) -> None:
        """Make `name` stand for this constant, sharing equal ones."""
        key = constant_key(array)
        known = self.constants.setdefault(key, name)
        if known == name:
            self.set_const(name, array)
        else:
            self.aliases[name] = known

    def fail(self, node: Node, message: str, help_: str | None = None) -> GapFuseError:
        return GapFuseError(Diagnostic(f"{describe(node)} {message}", self.where, help_))


def constant_key(array: np.ndarray) -> Hashable:
    kind = array.dtype
    data: Any = tuple(array.ravel().tolist()) if kind.kind == "O" else array.tobytes()
    return (kind.num if kind.kind in "biuf" else kind, array.shape, data)


@cache
def named(dtype: np.dtype[Any]) -> str:
    """numpy's name of an element type (which numpy works out anew each time)."""
    return str(dtype.name)


def describe(node: Node) -> str:
    """How messages name a node."""
    return f"node `{node.origins[0] if node.origins else node.outputs[0]}` ({node.op})"


def type_of(proto: onnx.TypeProto) -> Type:
    """dtype and shape of a tensor type; unknown for sequences, maps and optionals."""
    if not proto.HasField("tensor_type") or not proto.tensor_type.elem_type:
        return UNKNOWN
    tensor = proto.tensor_type
    shape = tuple(_dim(d) for d in tensor.shape.dim) if tensor.HasField("shape") else None
    return dtype_name(tensor.elem_type), shape


def _dim(d: onnx.TensorShapeProto.Dimension) -> Dim:
    if d.HasField("dim_value"):
        return d.dim_value if d.dim_value >= 0 else None
    return d.dim_param or None


def dtype_name(element: int) -> str | None:
    """numpy's name of an ONNX element type; None where this onnx does not know it."""
    try:
        return onnx.helper.tensor_dtype_to_np_dtype(element).name
    except KeyError:
        return None


def element_type(dtype: str) -> int:
    """ONNX's element type of a numpy dtype name."""
    if dtype in ("object", "str"):
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype)))


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of a name, ml_dtypes' included."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        small: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return small
