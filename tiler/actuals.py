"""The operands of a call as its kernel sees them: types, shapes, storages, and the sizes that follow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_engine.expr import Expr, evaluate
from fusion_engine.graph import Call, FusedGraph, Storage
from fusion_engine.kernels.descriptor import Implementation, Kernel, OperandType
from fusion_engine.kernels.sizes import Sizes, solve_sizes


class DeclinedError(Exception):
    """Why an implementation does not take a call; becomes the returned reason."""


@dataclass(frozen=True, slots=True)
class Actual:
    """An operand of the call: its type in the signature, its buffer, where it lies."""

    name: str
    type: OperandType
    buffer: str
    dtype: str
    shape: tuple[int, ...]
    storage: Storage
    constant: bool
    part: int  # which part of a variadic operand
    role: str

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize


class Signature:
    """A call fitted to a kernel's signature under one implementation. Raises DeclinedError where it does not fit."""

    def __init__(
        self, kernel: Kernel, implementation: Implementation, graph: FusedGraph, call: Call, isa: Sequence[str] | None
    ) -> None:
        self.kernel, self.implementation, self.graph, self.call = kernel, implementation, graph, call
        self._check_isa(isa)
        self.actuals = self._actuals()
        self.sizes = self._solve()
        self.env: dict[str, Any] = self.sizes.environment
        self._check_when()

    def _check_isa(self, isa: Sequence[str] | None) -> None:
        lacking = [i for i in self.implementation.isa if isa is not None and i not in isa]
        if lacking:
            raise DeclinedError(f"the target lacks the instruction set {lacking[0]}")

    def _actuals(self) -> tuple[Actual, ...]:
        inputs, results = dict(self.call.operands), dict(self.call.results)
        found = [a for o in self.kernel.inputs for a in self._actual(o, inputs, "in")]
        return (*found, *(a for o in self.kernel.outputs for a in self._actual(o, results, "out")))

    def _actual(self, o: OperandType, given: Mapping[str, str], role: str) -> list[Actual]:
        count = sum(re.fullmatch(rf"{o.name}\d+", n) is not None for n in given) if o.variadic else 1
        wanted = [f"{o.name}{i}" for i in range(count)] if o.variadic else [o.name]
        return [self._place(o, n, i, given[n], role) for i, n in enumerate(wanted) if n in given]

    def _place(self, o: OperandType, name: str, part: int, buffer: str, role: str) -> Actual:
        b, storage = self.graph.buffer[buffer], self.graph.storage(buffer)
        constant = role == "in" and self.graph.buffer[storage.root].data is not None
        if o.const and not constant:
            raise DeclinedError(f"{name} must be a constant")
        return Actual(name, o, buffer, b.dtype, b.shape, storage, constant, part, "const" if constant else role)

    def _solve(self) -> Sizes:
        shapes = {a.name: a.shape for a in self.actuals}
        solved = solve_sizes(self.kernel, shapes, {a.name: a.dtype for a in self.actuals}, dict(self.call.attrs))
        if isinstance(solved, str):
            raise DeclinedError(solved)
        return solved

    def _check_when(self) -> None:
        for text, condition in self.implementation.when:
            if not bool(evaluate(condition, self.env)):
                raise DeclinedError(f"it needs {text}")

    def length(self, a: Actual, dim: str) -> int:
        groups = [d for d in a.type.dims if d.startswith("*")]
        if not dim.startswith("*"):
            return 1
        if len(groups) == 1:
            return len(a.shape) - len(a.type.dims) + 1
        bound = self.env[dim[1:]]
        return len(bound[a.part] if bound and isinstance(bound[0], tuple) else bound)

    def index(self, a: Actual) -> tuple[Expr | None, ...]:
        """The operand's index map; where two accesses differ, the whole extent."""
        maps = [m.index for m in self.kernel.access if m.operand == a.type.name]
        if not maps:
            return (None,) * len(a.type.dims)
        return tuple(column[0] if len(set(column)) == 1 else None for column in zip(*maps, strict=True))
