"""What the matcher asks of a view: makers and users through the quantisation lens, reals behind integers, sameness."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fusion_engine.graph import Quantisation
from fusion_engine.view.types import Dim, View, ViewNode

SCALAR = 8  # bytes: constants up to this are always told apart by content
SMALL = 64  # bytes of a constant that is compared by content
DEQUANTIZE, QUANTIZE = "DequantizeLinear", "QuantizeLinear"


@dataclass(frozen=True, slots=True)
class Virtual:
    """The real value behind the integers `stored`, where no DequantizeLinear makes it (it sank below a movement)."""

    stored: str
    quantisation: Quantisation


@dataclass(frozen=True, slots=True)
class Known:
    """A number, text or list that a name stands for: an attribute, the meaning of an absent input, None for absent."""

    value: object


Tensor = str | Virtual


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The integers behind a real value. `node` is the DequantizeLinear, None where the value is itself integers."""

    name: str
    dtype: str
    quantisation: Quantisation
    const: np.ndarray | None
    node: int | None


@dataclass(frozen=True, slots=True)
class Quantiser:
    """A QuantizeLinear that reads a real value: its node and its result."""

    node: int
    name: str
    dtype: str
    quantisation: Quantisation


@dataclass(frozen=True, eq=False)
class Facts:
    """A view with what was worked out about it so far (kept, so that each question costs once)."""

    view: View
    more: frozenset[str] = frozenset()  # operators that rewriting may bring in
    _keys: dict[str, Hashable] = field(default_factory=dict)
    _reals: dict[str, np.ndarray | None] = field(default_factory=dict)
    _lenses: dict[int, Quantisation | None] = field(default_factory=dict)
    _read: dict[Hashable, Quantisation | None] = field(default_factory=dict)  # by the names of scale and zero point

    @cached_property
    def outputs(self) -> frozenset[str]:
        return frozenset(self.view.outputs)

    @cached_property
    def operators(self) -> frozenset[str]:
        return frozenset(node.op for node in self.view.nodes) | self.more

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Constants that are quantised weights, scales or zero points somewhere."""
        quantisers = (n for n in self.view.nodes if n.op in (QUANTIZE, DEQUANTIZE))
        return frozenset(v for n in quantisers for v in n.inputs if v is not None and self.view.const(v) is not None)

    @cached_property
    def zeros(self) -> frozenset[str]:
        """Zero points of constants, and of nothing else, that are 0 throughout."""
        weights: set[str] = set()
        others: set[str] = set()
        for n in self.view.nodes:
            if n.op in (QUANTIZE, DEQUANTIZE) and len(n.inputs) > 2 and n.inputs[2] is not None:
                (others if self.view.const(n.inputs[0]) is None else weights).add(n.inputs[2])
        constants = ((v, self.view.const(v)) for v in weights - others)
        return frozenset(v for v, c in constants if c is not None and not c.any())

    @cached_property
    def dtypes(self) -> frozenset[str | None]:
        """Element types of the view's values."""
        return frozenset(value.dtype for value in self.view.values.values())

    @cached_property
    def functions(self) -> tuple[tuple[str, str], ...]:
        """Operators outside the default domain with their overloads."""
        return tuple(sorted({(n.op, n.overload) for n in self.view.nodes if "::" in n.op}))

    @cached_property
    def has_lens(self) -> bool:
        return DEQUANTIZE in self.operators or QUANTIZE in self.operators

    def forget(self, values: Iterable[str]) -> None:
        """Drop what was worked out about values whose maker or users changed."""
        for known in (self._keys, self._reals):
            for value in values:
                known.pop(value, None)

    def maker(self, value: str) -> ViewNode | None:
        index = self.view.producer.get(value)
        return None if index is None else self.view.nodes[index]

    # ---- the lens ----

    def lens(self, node: ViewNode) -> Quantisation | None:
        """What a Q or DQ node's constant parameters say; None where they are values, or in blocks."""
        if node.index in self._lenses:
            return self._lenses[node.index]
        key = (node.inputs[1:], node.attrs.get("axis"), node.attrs.get("block_size"))
        if key not in self._read:
            self._read[key] = self._read_lens(node)
        found = self._lenses[node.index] = self._read[key]
        return found

    def _read_lens(self, node: ViewNode) -> Quantisation | None:
        zero_name = node.inputs[2] if len(node.inputs) > 2 else None
        scale, zero = self.view.const(node.inputs[1]), self.view.const(zero_name)
        blocked = bool(node.attrs.get("block_size"))
        if scale is None or scale.ndim > 1 or blocked or (zero_name is not None and zero is None):
            return None
        axis = node.attrs.get("axis")
        return Quantisation.of(scale, zero, axis if isinstance(axis, int) else 1)

    def stored(self, value: Tensor) -> Stored | None:
        """The integers that `value` is the real of: through its DequantizeLinear, or itself where it holds integers."""
        if isinstance(value, Virtual):
            return self._stored_by(value.stored, value.quantisation, None)
        node = self.maker(value)
        if node is not None and node.op == DEQUANTIZE and node.inputs[0] is not None:
            quantisation = self.lens(node)
            return None if quantisation is None else self._stored_by(node.inputs[0], quantisation, node.index)
        own = self.view.values[value]
        if own.quantisation is None or own.dtype is None or own.dtype.startswith(("float", "bfloat")):
            return None
        return self._stored_by(value, own.quantisation, None)

    def _stored_by(self, name: str, quantisation: Quantisation, node: int | None) -> Stored | None:
        value = self.view.values[name]
        return None if value.dtype is None else Stored(name, value.dtype, quantisation, value.const, node)

    def quantisers(self, value: str) -> tuple[Quantiser, ...]:
        """The QuantizeLinear users of a real value, in order."""
        found = []
        for index in self.view.users.get(value, ()):
            node = self.view.nodes[index]
            if node.op != QUANTIZE or node.inputs[0] != value:
                continue
            quantisation, dtype = self.lens(node), self.view.values[node.outputs[0]].dtype
            if quantisation is not None and dtype is not None:
                found.append(Quantiser(index, node.outputs[0], dtype, quantisation))
        return tuple(found)

    # ---- values ----

    def const(self, value: Tensor) -> np.ndarray | None:
        """The real value where it is known at compile time, dequantised if need be."""
        if isinstance(value, Virtual):
            raw = self.view.const(value.stored)
            return None if raw is None else dequantise(raw, value.quantisation)
        if value not in self._reals:
            self._reals[value] = self._read_const(value)
        return self._reals[value]

    def _read_const(self, value: str) -> np.ndarray | None:
        plain = self.view.const(value)
        if plain is not None:
            return plain
        node = self.maker(value)
        if node is None or node.op != DEQUANTIZE:
            return None
        raw, quantisation = self.view.const(node.inputs[0]), self.lens(node)
        return None if raw is None or quantisation is None else dequantise(raw, quantisation)

    def is_const(self, value: Tensor) -> bool:
        if isinstance(value, Virtual):
            return self.view.const(value.stored) is not None
        if self.view.values[value].const is not None:
            return True
        node = self.maker(value)
        return node is not None and node.op == DEQUANTIZE and self.view.const(node.inputs[0]) is not None

    def dtype(self, value: Tensor) -> str | None:
        return "float32" if isinstance(value, Virtual) else self.view.values[value].dtype

    def shape(self, value: Tensor) -> tuple[Dim, ...] | None:
        return self.view.values[value.stored if isinstance(value, Virtual) else value].shape

    def rank(self, value: str) -> int | None:
        known = self.view.values.get(value)
        return None if known is None or known.shape is None else len(known.shape)

    # ---- sameness ----

    def same(self, a: object, b: object) -> bool:
        """One value: the same name, the same integers dequantised twice, equal constants, or equal attributes."""
        if a == b:
            return True
        if not isinstance(a, (str, Virtual)) or not isinstance(b, (str, Virtual)):
            return False
        if self._key(a) == self._key(b):
            return True
        return self._equal_constants(a, b)

    def _key(self, value: Tensor) -> Hashable:
        if isinstance(value, Virtual):
            return value
        if value not in self._keys:
            node = self.maker(value)
            quantisation = self.lens(node) if node is not None and node.op == DEQUANTIZE else None
            real = node is not None and quantisation is not None and node.inputs[0] is not None
            self._keys[value] = Virtual(node.inputs[0] or "", quantisation) if real and node and quantisation else value
        return self._keys[value]

    def _equal_constants(self, a: Tensor, b: Tensor) -> bool:
        x, y = self.const(a), self.const(b)
        return x is not None and y is not None and x.dtype == y.dtype and np.array_equal(x, y)


def dequantise(raw: np.ndarray, quantisation: Quantisation) -> np.ndarray:
    """real = scale * (stored - zero), float32, as ONNX DequantizeLinear computes it."""
    scale = np.asarray(quantisation.scale, dtype=np.float32)
    zero = np.asarray(quantisation.zero, dtype=np.int32)
    if quantisation.axis is not None and scale.size > 1:
        along = [-1 if i == quantisation.axis else 1 for i in range(raw.ndim)]
        scale, zero = scale.reshape(along), zero.reshape(along)
    else:
        scale, zero = scale.reshape(()), zero.reshape(-1)[0]
    result: np.ndarray = (raw.astype(np.int32) - zero).astype(np.float32) * scale
    return result
