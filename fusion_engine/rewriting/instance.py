"""One match and its rewrite: the nodes that would stand in its place, in normal form, or why they may not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_engine.covering.types import ValueRef
from fusion_engine.diagnostics import GapFuseError
from fusion_engine.language.rewrites import own_value
from fusion_engine.language.types import EName, Expression, NodeTemplate, Rewrite
from fusion_engine.language.vocabulary import Unknown, as_attribute, as_operand, evaluate_expression
from fusion_engine.matching.environment import NOWHERE, Environment
from fusion_engine.matching.solution import Solution
from fusion_engine.rewriting.workspace import Workspace
from fusion_engine.view.draft import Draft, Node
from fusion_engine.view.infer import Memo
from fusion_engine.view.rework import normal_form
from fusion_engine.view.types import AttrValue, ViewValue


class RefusedError(Exception):
    """This match is not rewritten, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """`nodes` in the order of making, `values` that are new; `results` maps values to what replaces them."""

    nodes: tuple[Node, ...]
    values: Mapping[str, ViewValue]
    results: Mapping[str, str]
    operands: tuple[str, ...]


def instance_of(space: Workspace, s: Solution, rewrite: Rewrite, env: Environment, memo: Memo) -> Instance:
    """The rewrite with the names of one match. Raises RefusedError."""
    made = ((n, o) for n, o in rewrite.names if n in s.results)
    names = {o.name: s.results[n] for n, o in made if isinstance(o, EName) and own_value(o)}
    writer = _Writer(space, s, env, names)
    nodes = [writer.node(template) for template in rewrite.nodes]
    given = {n: writer.value(o) for n, o in rewrite.names if n in s.results}
    try:
        draft = normal_form(nodes, writer.values, space.taken, memo)
    except GapFuseError as e:
        raise RefusedError(e.diagnostics[0].message) from e
    results = {s.results[n]: draft.resolve(value) or value for n, value in given.items()}
    _check_types(space, draft, results)
    new = {n: v for n, v in draft.values.items() if n not in writer.operands or n in draft.producer}
    return Instance(tuple(draft.nodes), new, results, tuple(writer.operands))


@dataclass(eq=False)
class _Writer:
    space: Workspace
    solution: Solution
    env: Environment
    names: dict[str, str]  # values of the rewrite itself

    def __post_init__(self) -> None:
        self.values: dict[str, ViewValue] = {}
        self.operands: list[str] = []
        self.root = next(iter(self.solution.results.values()))
        real = self.space.values[self.root].dtype or "float32"
        self.real = np.dtype(real if real.startswith("float") else "float32")
        origins = (o for i in sorted(self.solution.nodes) for o in self.space.nodes[i].origins)
        self.origins = tuple(dict.fromkeys(origins))
        self.maker = self.space.nodes[self.space.producer[self.root]]  # what the file says of it goes on

    def node(self, template: NodeTemplate) -> Node:
        inputs = [v for i in template.inputs for v in self._operands(i)]
        outputs = [self.names.setdefault(o, self._fresh(o[:-1])) for o in template.outputs]
        attrs = {name: self._attribute(e) for name, e in template.attrs}
        maker = self.maker
        return Node(template.op, inputs, outputs, attrs, self.origins, maker.scopes, metadata=maker.metadata)

    def value(self, expression: Expression) -> str:
        found = list(self._operands(expression))
        if len(found) != 1 or found[0] is None:
            raise RefusedError("a result is no single value")
        return found[0]

    def _operands(self, expression: Expression | None) -> Iterator[str | None]:
        if expression is None:
            yield None
        elif isinstance(expression, EName) and own_value(expression):
            yield self.names[expression.name]
        else:
            yield from self._outer(expression, evaluate_expression(expression, self.env))

    def _outer(self, expression: Expression, value: Any) -> Iterator[str | None]:
        """Captured values by name, several of a variadic capture one by one, and everything else as a constant."""
        name = getattr(value, "value", None)
        if isinstance(value, tuple) and value and hasattr(value[0], "value"):
            for part in value:
                yield from self._outer(expression, part)
            return
        operand = ValueRef(name) if isinstance(name, str) else as_operand(value)
        if isinstance(operand, Unknown):
            raise RefusedError(operand.reason)
        if operand is None:
            yield None
        elif isinstance(operand, ValueRef):
            yield self._read(operand.name)
        else:
            yield self._constant(np.asarray(operand), literal=not isinstance(value, np.ndarray))

    def _read(self, name: str) -> str:
        if name.startswith(NOWHERE):
            raise RefusedError(f"an operand exists only as the integers `{name[len(NOWHERE) :]}`")
        self.values[name] = self.space.values[name]
        self.operands.append(name)
        return name

    def _constant(self, data: np.ndarray, literal: bool) -> str:
        """Floats in the element type of the result, whole numbers that stand in the rule as int64."""
        array = data.astype(self.real) if data.dtype == np.float64 else data
        if literal and data.dtype.kind == "i":
            array = data.astype(np.int64)
        name = self._fresh("constant")
        self.values[name] = ViewValue(name, array.dtype.name, array.shape, array)
        return name

    def _attribute(self, expression: Expression) -> AttrValue:
        value = as_attribute(evaluate_expression(expression, self.env))
        if isinstance(value, Unknown):
            raise RefusedError(value.reason)
        return value

    def _fresh(self, what: str) -> str:
        name, n = f"{self.root}/{what}", 1
        while name in self.space.taken:
            n += 1
            name = f"{self.root}/{what}_{n}"
        self.space.taken.add(name)
        return name


def _check_types(space: Workspace, draft: Draft, results: Mapping[str, str]) -> None:
    """What replaces a result has its element type and shape, as far as both are known."""
    for old, new in results.items():
        had, has = space.values[old], draft.values.get(new) or space.values[new]
        if had.dtype is not None and has.dtype is not None and had.dtype != has.dtype:
            raise RefusedError(f"{old} would become {has.dtype}, it is {had.dtype}")
        if had.shape is None or has.shape is None:
            continue
        if len(had.shape) != len(has.shape) or any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(had.shape, has.shape, strict=True)
        ):
            raise RefusedError(f"{old} would have the shape {list(has.shape)}, it is {list(had.shape)}")
