"""extract(): nodes of a view as the text of a pattern, with the types of what it captures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fusion_engine import GapFuseError, View
from fusion_engine.diagnostics import Diagnostic
from fusion_engine.matching.attributes import IMPLIED, POOLS, schema_defaults
from fusion_engine.matching.literals import plain
from fusion_engine.view import ViewNode
from fusion_engine.view.types import ViewValue
from gap_fuse.authoring.naming import short_name

INFIX = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
SMALL = 4  # elements of a constant that is written out


@dataclass(frozen=True, slots=True)
class Operand:
    """A captured tensor: its name in the pattern, and the value of the view."""

    name: str
    value: ViewValue

    @property
    def const(self) -> bool:
        return self.value.const is not None


@dataclass(frozen=True, slots=True, eq=False)
class Extract:
    """`lines` of a pattern that takes exactly `nodes`; `shared` are inner values that others read too."""

    nodes: tuple[ViewNode, ...]
    lines: tuple[str, ...]
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    shared: tuple[str, ...]
    view: View  # the nodes alone


def extract(view: View, nodes: Sequence[ViewNode], reserved: Collection[str] = ()) -> Extract:
    """The pattern of the selected nodes, under the model's own names as far as these can be names of a pattern and are
    not `reserved`. Raises GapFuseError for what no pattern can hold: a subgraph or a tensor as an
    attribute, a type that is not known, nothing selected but constants."""
    names = _Names(view, frozenset(n.index for n in nodes), reserved)
    lines = tuple(names.line(n) for n in nodes)
    results = tuple(Operand(names.of[v], view.values[v]) for v in names.results)
    operands = tuple(Operand(names.of[v], view.values[v]) for v in names.captured)
    for o in (*operands, *results):
        _check_type(o)
    return Extract(tuple(nodes), lines, operands, results, names.shared, _alone(view, nodes, operands, results))


def _check_type(o: Operand) -> None:
    if o.value.dtype is None or o.value.static_shape is None:
        message = f"the type of `{o.value.name}` is not known: {o.value.dtype or '?'} of shape {o.value.shape or '?'}"
        raise GapFuseError(Diagnostic(message, help="bind symbolic dimensions: --dim NAME=VALUE"))


class _Names:
    """Names of values in the order in which the lines need them."""

    def __init__(self, view: View, inside: frozenset[int], reserved: Collection[str]) -> None:
        self.view, self.inside, self.reserved = view, inside, reserved
        made = [o for n in sorted(inside) for o in view.nodes[n].outputs if o]
        read_inside = {i for n in inside for i in view.nodes[n].inputs}
        outside = [v for v in made if v in view.outputs or set(view.users.get(v, ())) - inside]
        self.results = tuple(v for v in made if v not in read_inside and (v in outside or v == made[-1]))
        self.of: dict[str, str] = {}
        self.captured: list[str] = []
        for v in self.results:
            self._name(v, "y")
        self._inner = [v for v in outside if v not in self.results]

    @property
    def shared(self) -> tuple[str, ...]:
        return tuple(self.of[v] for v in self._inner)

    def line(self, node: ViewNode) -> str:
        targets = [self._target(o) for o in node.outputs]
        while len(targets) > 1 and targets[-1] == "_":
            targets.pop()
        return f"{', '.join(targets)} = {self._call(node)}"

    def _target(self, value: str) -> str:
        known = value and (value in self.results or any(u in self.inside for u in self.view.users.get(value, ())))
        return self._name(value, "v") if known else "_"

    def _name(self, value: str, letter: str) -> str:
        if value not in self.of:
            self.of[value] = short_name(value, letter, {*self.of.values(), *self.reserved})
        return self.of[value]

    def _call(self, node: ViewNode) -> str:
        inputs = [self._input(i) for i in _trimmed(node.inputs)]
        attrs = _attributes(node)
        if node.op in INFIX and not attrs:
            return f" {INFIX[node.op]} ".join(inputs)
        callee = f'"{node.op}"' if "::" in node.op else node.op
        return f"{callee}({', '.join([*inputs, *attrs])})"

    def _input(self, value: str | None) -> str:
        if value is None:
            return "None"
        if value in self.of:
            return self.of[value]
        const = self.view.const(value)
        written = None if const is None else literal(const)
        if written is not None:
            return written
        self.captured.append(value)
        return self._name(value, "x" if const is None else "w")


def _trimmed(inputs: tuple[str | None, ...]) -> list[str | None]:
    kept = list(inputs)
    while kept and kept[-1] is None:
        kept.pop()
    return kept


# ---- literals, attributes ----


def literal(const: np.ndarray) -> str | None:
    """A small constant of rank 0 or 1 as a pattern writes it; None for any other."""
    if const.ndim > 1 or not 0 < const.size <= SMALL or const.dtype.kind not in "iuf" or np.isnan(const).any():
        return None
    parts = [_number(v) for v in const.reshape(-1)]
    return parts[0] if const.ndim == 0 else f"[{', '.join(parts)}]"


def _number(value: object) -> str:
    """The shortest text that the element type reads back as the same number."""
    if isinstance(value, (float, np.floating)):
        return str(np.float32(value) if not isinstance(value, np.floating) else value)
    return str(int(value)) if isinstance(value, (int, np.integer)) else str(value)


def _attributes(node: ViewNode) -> list[str]:
    """Attributes that are not at their default, as literals; those that only repeat a shape are left out."""
    defaults = dict(schema_defaults(node.op))
    skipped = IMPLIED - {"kernel_shape"} if node.op in POOLS else IMPLIED
    kept = ((k, plain(v)) for k, v in sorted(node.attrs.items()) if k not in skipped and v is not None)
    return [f"{k}={_attribute(node, k, v)}" for k, v in kept if v != defaults.get(k)]


def _attribute(node: ViewNode, name: str, value: object) -> str:
    match value:
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case int() | float():
            return _number(value)
        case tuple() if all(isinstance(v, (int, float)) for v in value):
            return f"[{', '.join(_number(v) for v in value)}]"
    what = " ".join(node.origins) or node.outputs[0]
    message = f"the attribute `{name}` of {node.op} `{what}` is nothing that a pattern can write"
    raise GapFuseError(Diagnostic(message, help="select nodes around it"))


# ---- the nodes as a view of their own ----


def _alone(view: View, nodes: Sequence[ViewNode], operands: Sequence[Operand], results: Sequence[Operand]) -> View:
    """Captures that are no constants become inputs."""
    own = [replace(n, index=i) for i, n in enumerate(nodes)]
    producer = {o: n.index for n in own for o in n.outputs if o}
    users: dict[str, tuple[int, ...]] = {}
    for n in own:
        for i in dict.fromkeys(i for i in n.inputs if i is not None):
            users[i] = (*users.get(i, ()), n.index)
    values: Mapping[str, ViewValue] = {v: view.values[v] for v in dict.fromkeys((*users, *producer))}
    inputs = tuple(o.value.name for o in operands if not o.const)
    outputs = tuple(r.value.name for r in results)
    return View("selected", view.opset, tuple(own), values, producer, users, inputs, outputs)
