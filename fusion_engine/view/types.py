"""The view: what the matcher sees of a model. Built by `view()`, never written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fusion_engine.graph import Quantisation
from fusion_engine.opened import opened

Dim = int | str | None
AttrValue = int | float | str | bytes | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | np.ndarray | None


@dataclass(frozen=True, slots=True, eq=False)
class ViewValue:
    """A tensor of the view.

    `dtype` is numpy's name of the element type (`float32`, `int8`, ...), None where inference does not know.
    `shape` has an int, a symbol, or None (unknown) per axis; the shape itself is None where the rank is unknown.
    `const` is the value where it is known at compile time.
    `quantisation` is set where the integers stand for reals (result of QuantizeLinear, operand of DequantizeLinear).
    """

    name: str
    dtype: str | None
    shape: tuple[Dim, ...] | None
    const: np.ndarray | None = None
    quantisation: Quantisation | None = None

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape when every extent is a known int, else None."""
        if self.shape is None or not all(isinstance(d, int) for d in self.shape):
            return None
        return tuple(d for d in self.shape if isinstance(d, int))


_OpenValue = opened(ViewValue)


def view_value(
    name: str,
    dtype: str | None,
    shape: tuple[Dim, ...] | None,
    const: np.ndarray | None = None,
    quantisation: Quantisation | None = None,
) -> ViewValue:
    """`ViewValue(...)`, in less time."""
    value = object.__new__(_OpenValue)
    value.name, value.dtype, value.shape, value.const, value.quantisation = name, dtype, shape, const, quantisation
    value.__class__ = ViewValue
    made: ViewValue = value
    return made


MODULE, FUNCTION = "module", "function"


@dataclass(frozen=True, slots=True)
class Scope:
    """One level of the module hierarchy that an exporter recorded: class path and instance name.

    `kind` says by what: a node's metadata (MODULE), or a call of a model-local function that was opened (FUNCTION).
    """

    cls: str
    name: str
    kind: str = field(default=MODULE, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class ViewNode:
    """An operator in its opset-neutral (newest) form.

    `op` is the ONNX operator type; operators outside the default domain are written `domain::Name`.
    `inputs` holds value names, None for an absent optional input; trailing absents are kept up to the schema's arity.
    `attrs` holds every attribute, the schema's defaults filled in; an attribute without default and absent is None.
    Axes are non-negative where the rank is known. `origins` are the names of the nodes of the file it stands for.
    `scopes` are the modules and functions around it, outermost first, `metadata` what else the file says of it.
    An absent output is "". A subgraph is an attribute holding a serialised GraphProto; `captures` are the outer values
    that it reads.
    """

    index: int
    op: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, AttrValue]
    origins: tuple[str, ...]
    scopes: tuple[Scope, ...] = ()
    overload: str = ""
    captures: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Nodes in topological order with their values, producers and users.

    `nodes[i].index == i`. `producer[v]` is the index of the node that makes `v` (absent for inputs and constants).
    `users[v]` lists the indices of the nodes that read `v`, once per node, ascending; that `v` is a graph output is not
    in it: see `outputs`.
    `aliases` maps names of the file that were merged away (Identity, no-op Cast, common subexpression) to the value
    that stands for them.
    """

    name: str
    opset: int
    nodes: Sequence[ViewNode]
    values: Mapping[str, ViewValue]
    producer: Mapping[str, int]
    users: Mapping[str, tuple[int, ...]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def const(self, name: str | None) -> np.ndarray | None:
        """The compile-time value of `name`, or None."""
        value = self.values.get(name) if name is not None else None
        return value.const if value is not None else None
