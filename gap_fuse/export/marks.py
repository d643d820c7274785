"""@namespaced: authors mark their own high-level operators, modules by a name on the class, plain functions by marker
nodes that only `fusion_friendly_export` asks for and takes out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import count
from typing import Any, TypeVar

import onnx

from fusion_engine.view.subgraphs import reads
from gap_fuse.export.functions import renamed
from gap_fuse.export.keep import NAMESPACE, Rule, split_name
from gap_fuse.export.regions import Wiring, between
from gap_fuse.export.scopes import Instance, add_instance

DOMAIN = "gap_fuse.marks"
ENTER, LEAVE = "Enter", "Leave"
Marked = TypeVar("Marked", bound=Callable[..., Any])

_recording: ContextVar[Iterator[int] | None] = ContextVar("gap_fuse_marks", default=None)
"""The numbers of marked calls while fusion_friendly_export traces; None at any other time."""


def namespaced(name: str) -> Callable[[Marked], Marked]:
    """Mark a module class or a plain function as the operator `DOMAIN::NAME` for `fusion_friendly_export`.

    At any other time, and in any other exporter, nothing changes. A function's tensors must be its direct arguments and
    results. Raises GapFuseError for a name that is not DOMAIN::NAME.
    """
    split_name(name)

    def mark(target: Marked) -> Marked:
        if isinstance(target, type):
            setattr(target, NAMESPACE, name)
            return target
        return _marking(target, name)  # type: ignore[return-value]

    return mark


@contextmanager
def recording() -> Iterator[None]:
    """While open, calls of marked functions leave marker nodes in what torch traces."""
    token = _recording.set(count())
    try:
        yield
    finally:
        _recording.reset(token)


def resolved(model: onnx.ModelProto) -> tuple[onnx.ModelProto, tuple[Rule, ...]]:
    """A copy without marker nodes, where the nodes between them carry an instance of the function's name; and the rules
    that keep those instances."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    wiring = Wiring(copy.graph)
    calls = _calls(wiring)
    rules = []
    for k, (name, region) in enumerate(sorted(calls, key=lambda c: -len(c[1]))):  # the outer before what it holds
        domain, short = split_name(name)
        for n in region:
            add_instance(wiring[n], Instance(f"{name}#{k}", f"{domain}.{short}"))
        rules.append(Rule(f"{domain}.{short}", domain=domain, name=short))
    _unmark(copy.graph)
    return copy, tuple(dict.fromkeys(rules))


def _marking(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        numbers = _recording.get()
        if numbers is None:
            return function(*args, **kwargs)
        attributes = {"name": name, "call": next(numbers)}
        given = function(
            *(_marker(ENTER, a, attributes) for a in args),
            **{k: _marker(ENTER, a, attributes) for k, a in kwargs.items()},
        )
        if isinstance(given, tuple | list):
            return type(given)(_marker(LEAVE, g, attributes) for g in given)
        return _marker(LEAVE, given, attributes)

    return call


def _marker(kind: str, value: Any, attributes: dict[str, Any]) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    return torch.onnx.ops.symbolic(
        f"{DOMAIN}::{kind}", (value,), attributes, dtype=value.dtype, shape=value.shape, version=1
    )


def _calls(wiring: Wiring) -> list[tuple[str, frozenset[int]]]:
    """Each marked call's name and nodes, in order of the calls."""
    ends: dict[int, tuple[str, set[int], set[int]]] = {}
    for k, node in enumerate(wiring.nodes):
        if node is not None and node.domain == DOMAIN:
            fields = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            _, enters, leaves = ends.setdefault(fields["call"], (fields["name"].decode(), set(), set()))
            (enters if node.op_type == ENTER else leaves).add(k)
    return [(name, _inner(wiring, enters, leaves)) for _, (name, enters, leaves) in sorted(ends.items())]


def _inner(wiring: Wiring, enters: set[int], leaves: set[int]) -> frozenset[int]:
    return frozenset(k for k in between(wiring, enters, leaves) if wiring[k].domain != DOMAIN)


def _unmark(graph: onnx.GraphProto) -> None:
    """Take marker nodes out: what they gave is what they took. A value keeps the name the graph gives out."""
    outputs = {o.name for o in graph.output}
    fixed = outputs | {i.name for i in graph.input} | {t.name for t in graph.initializer}
    names: dict[str, str] = {}
    kept = []
    for node in graph.node:
        source = names.get(node.input[0], node.input[0]) if node.input else ""
        if node.domain != DOMAIN:
            kept.append(node)
        elif node.output[0] not in outputs:
            names[node.output[0]] = source
        elif source not in fixed:
            names[source] = node.output[0]
            fixed.add(node.output[0])
        else:
            kept.append(onnx.helper.make_node("Identity", [source], [node.output[0]]))
    final = {v: _last(names, v) for v in names}
    nodes = [renamed(n, final) for n in kept]
    del graph.node[:]
    graph.node.extend(nodes)
    made = {v for n in nodes for v in (*n.output, *reads(n))}
    infos = [v for v in graph.value_info if v.name in made and v.name not in outputs]
    del graph.value_info[:]
    graph.value_info.extend(infos)


def _last(names: dict[str, str], value: str) -> str:
    while value in names:
        value = names[value]
    return value
